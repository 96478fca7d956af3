r"""ConfDiff learning: pairs with the difference of their class probabilities.

One observation is an independent pair (x, x') from P x P with :math:`c = \eta(x') - \eta(x)`, second minus first.
Because :math:`E[c | x] = p - \eta(x)`, four partial risks are class parts:

.. math::
   E[(p - c) \ell_+] = E[(p + c) \ell_+'] = p E_{P+}[\ell_+], \qquad
   E[(q + c) \ell_-] = E[(q - c) \ell_-'] = q E_{P-}[\ell_-],

and R is half of their sum. ``confdiff-abs`` and ``confdiff-relu`` correct each of the four batch means. Works at every
prior. The differences must belong to the law of the pairs: see ``sconf`` on re-scaling.

Examples
--------
>>> from usimul.methods import get_method
>>> from usimul.supervision import ConfidenceDifference
>>> sup = ConfidenceDifference([[0, 1]], values=[0.5])
>>> terms = get_method("confdiff-abs").terms(sup, 0.4)
>>> [(t.columns, t.label, t.weight.round(decimals=3).tolist()) for t in terms]
[((0,), 1, [-0.05]), ((0,), -1, [0.55]), ((1,), 1, [0.45]), ((1,), -1, [0.05])]

Differs from the paper: confidences are re-scaled to the stated prior where they come from an auxiliary classifier; the
paper's released code does not do so, and its risk is then that of another prior.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from usimul.methods.base import Paper, register_corrected
from usimul.risk import Term
from usimul.supervision import ConfidenceDifference, Supervision


def confdiff_terms(supervision: Supervision, prior: float) -> Sequence[Term]:
    """Weights by pair; corrections commute with the factor 1/2."""
    c = torch.tensor(supervision.values)
    p, q = prior, 1.0 - prior
    return [
        Term("pairs", (0,), +1, 0.5 * (p - c), "first positive"),
        Term("pairs", (0,), -1, 0.5 * (q + c), "first negative"),
        Term("pairs", (1,), +1, 0.5 * (p + c), "second positive"),
        Term("pairs", (1,), -1, 0.5 * (q - c), "second negative"),
    ]


register_corrected(
    {"confdiff-unbiased": "none", "confdiff-relu": "relu", "confdiff-abs": "abs"},
    confdiff_terms,
    module=__name__,
    summary="pairs with confidence difference",
    supervision=ConfidenceDifference,
    formula="mean[(p - c) l+ + (q + c) l- + (p + c) l+' + (q - c) l-']/2",
    paper=Paper(
        "Wang, W., Feng, L., Jiang, Y., Niu, G., Zhang, M.-L., Sugiyama, M.",
        "Binary Classification with Confidence Difference",
        "NeurIPS",
        2023,
        "https://arxiv.org/abs/2310.05632",
    ),
    unbiased=("",),
)
