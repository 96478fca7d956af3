r"""Sconf learning: pairs with the probability that both points share their class.

One observation is an independent pair (x, x') from P x P with :math:`s = \eta\eta' + (1-\eta)(1-\eta')`. Because
:math:`E[s | x] = q + D \eta(x)`, D = p - q,

.. math::
   R_+ = \frac{E[(s - q)(\ell_+ + \ell_+')]}{2D} = p E_{P+}[\ell_+], \qquad
   R_- = \frac{E[(p - s)(\ell_- + \ell_-')]}{2D} = q E_{P-}[\ell_-].

``sconf-abs`` takes the absolute value and ``sconf-nn`` the positive part of each, D inside. Undefined at prior 1/2. The
confidences must be those of the law the pairs come from, at the stated prior: those of a classifier trained at another
prior have to be re-scaled first (`usimul.posterior`).

Examples
--------
>>> from usimul.methods import get_method
>>> from usimul.supervision import SimilarityConfidence
>>> sup = SimilarityConfidence([[0, 1]], values=[0.8])
>>> [(t.label, t.weight.round(decimals=3).tolist()) for t in get_method("sconf-unbiased").terms(sup, 0.7)]
[(1, [1.25]), (-1, [-0.25])]

Differs from the paper: in nothing but the choice of model and training settings.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from usimul.methods.base import Paper, register_corrected
from usimul.risk import Term
from usimul.supervision import SimilarityConfidence, Supervision


def sconf_terms(supervision: Supervision, prior: float) -> Sequence[Term]:
    """Weights by pair; the mean over both columns gives the factor 1/2."""
    s = torch.tensor(supervision.values)
    difference = 2.0 * prior - 1.0
    return [
        Term("pairs", (0, 1), +1, (s - (1.0 - prior)) / difference, "positive"),
        Term("pairs", (0, 1), -1, (prior - s) / difference, "negative"),
    ]


register_corrected(
    {"sconf-unbiased": "none", "sconf-abs": "abs", "sconf-nn": "relu"},
    sconf_terms,
    module=__name__,
    summary="pairs with similarity confidence",
    supervision=SimilarityConfidence,
    formula="mean[(s - q)(l+ + l+') + (p - s)(l- + l-')]/(2D)",
    paper=Paper(
        "Cao, Y., Feng, L., Xu, Y., An, B., Niu, G., Sugiyama, M.",
        "Learning from Similarity-Confidence Data",
        "ICML",
        2021,
        "https://proceedings.mlr.press/v139/cao21b.html",
    ),
    unbiased=("",),
    defined_at_half=False,
)
