r"""USimUL exactly as printed: the published estimator, which is biased for the triplets that its paper defines.

One observation is a triplet (x; x', x'') of which x shares its class with x' or x'', plus unlabeled points. Eq. 8-9:

.. math::
   R = \frac{Z}{2D} \bar E_{US}[\ell_+ - \ell_-] + \bar E_{U}\Bigl[\frac{-q \ell_+ + p \ell_-}{D}\Bigr],
   \qquad Z = 1 - p q, \quad D = p - q,

where the first mean pools all three points of every triplet. These are the weights that the one solver gives for the
mixing row ``2 (p^2, q^2)/Z`` of Lemma 3, which is no probability law: it sums to 1.37 at prior 0.4. The risk is
unbiased in none of the worlds. For definition-1 triplets its minimiser predicts the minority class everywhere.

``usimul-abs`` and ``usimul-relu`` apply |.| and max(0, .) to the *total* risk of a mini-batch (Eq. 11, appendix H).

Undefined at prior 1/2.

Examples
--------
>>> from usimul.methods import get_method
>>> from usimul.supervision import Triplets
>>> sup = Triplets([[0, 1, 2]], unlabeled=[3])
>>> terms = get_method("usimul").terms(sup, 0.4)
>>> [(t.source, t.label, round(t.weight, 6)) for t in terms]
[('triplets', 1, -1.9), ('unlabeled', 1, 3.0), ('triplets', -1, 1.9), ('unlabeled', -1, -2.0)]

Differs from the paper: in nothing. The paper's released experiment does not sample such triplets; see the world
``release``.
"""

from __future__ import annotations

from collections.abc import Sequence

from usimul.methods.base import Paper, Recipe, RiskMethod, register
from usimul.mixture import printed_triplet_row, solve
from usimul.risk import Term
from usimul.supervision import Supervision, Triplets

PAPER = Paper(
    authors="Wei, M., Li, Z., Ying, P., Xu, X.",
    title="Learning from Uncertain Similarity and Unlabeled Data",
    venue="AAAI",
    year=2026,
    link="https://arxiv.org/abs/2509.11984",
)


def printed_terms(supervision: Supervision, prior: float) -> Sequence[Term]:
    """Terms of Eq. 8, all in one part because the paper corrects the total."""
    weights = solve([printed_triplet_row(prior), (prior, 1.0 - prior)], prior)
    return [
        Term(source, columns, label, float(weights[row, side]), "total")
        for side, label in enumerate((+1, -1))
        for row, (source, columns) in enumerate((("triplets", (0, 1, 2)), ("unlabeled", (0,))))
    ]


for _name, _correction, _summary in (
    ("usimul", "none", "as printed (Eq. 8), no correction"),
    ("usimul-abs", "abs", "as printed (Eq. 11), absolute value of the total"),
    ("usimul-relu", "relu", "as printed (Eq. 11), positive part of the total"),
):
    register(
        RiskMethod(
            _name,
            printed_terms,
            correction=_correction,
            summary=_summary,
            supervision=Triplets,
            formula="Z/(2D) mean_US[l+ - l-] + mean_U[-q l+ + p l-]/D",
            paper=PAPER,
            unbiased=(),
            defined_at_half=False,
            needs_unlabeled=True,
            recipe=Recipe(loss="square"),
        ),
        module=__name__,
    )
