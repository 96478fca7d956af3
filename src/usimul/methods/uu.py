r"""UU learning: two sets of unlabeled points whose shares of positives are known.

One observation is a point of set 1, from :math:`\theta P_+ + (1-\theta) P_-`, or of set 2, with share
:math:`\theta' \ne \theta`. With :math:`G = \theta - \theta'`

.. math::
   R_+ = \frac{(1-\theta') p}{G} E_1[\ell_+] - \frac{(1-\theta) p}{G} E_2[\ell_+], \qquad
   R_- = \frac{\theta q}{G} E_2[\ell_-] - \frac{\theta' q}{G} E_1[\ell_-].

p is the prior of the risk, not the share of set 1 among all points. Works at every prior. ``uu-abs`` and ``uu-relu``
are the class-wise corrections of Lu et al. (2020), Mitigating Overfitting in Supervised Classification from Two
Unlabeled Datasets, AISTATS.

Examples
--------
>>> from usimul.methods import get_method
>>> from usimul.supervision import UnlabeledSets
>>> sup = UnlabeledSets([0, 1], values=[0.9, 0.1])
>>> [(t.source, t.label, round(t.weight, 4)) for t in get_method("uu").terms(sup, 0.5)]
[('first', 1, 0.5625), ('second', 1, -0.0625), ('first', -1, -0.0625), ('second', -1, 0.5625)]

Differs from the paper: any model; batches hold the two sets in proportion to their sizes.
"""

from __future__ import annotations

from collections.abc import Sequence

from usimul.methods.base import Paper, register_corrected
from usimul.mixture import rows_of, solve
from usimul.risk import Term, class_terms
from usimul.supervision import Supervision, UnlabeledSets


def uu_terms(supervision: Supervision, prior: float) -> Sequence[Term]:
    """Weights for the two sets."""
    assert isinstance(supervision, UnlabeledSets)
    weights = solve(rows_of(*supervision.shares), prior)
    return class_terms(weights, [("first", (0,)), ("second", (0,))])


register_corrected(
    {"uu": "none", "uu-abs": "abs", "uu-relu": "relu"},
    uu_terms,
    module=__name__,
    summary="two unlabeled sets of known shares",
    supervision=UnlabeledSets,
    formula="mean_1[(1-t2) p l+ - t2 q l-]/G + mean_2[-(1-t1) p l+ + t1 q l-]/G,  G = t1 - t2",
    paper=Paper(
        "Lu, N., Niu, G., Menon, A. K., Sugiyama, M.",
        "On the Minimal Supervision for Training Any Binary Classifier from Only Unlabeled Data",
        "ICLR",
        2019,
        "https://openreview.net/forum?id=B1xWcj0qYm",
    ),
    unbiased=("",),
)
