r"""Triplet comparison: answers to "is x2 at least as close to x1 as x3?". The closest prior work to uncertain triplets.

One observation is a triple of independent points with its answer. "Yes" (probability Z = 1 - p q) means that x2 shares
its class with x1 or with x3: the event of an uncertain triplet with x2 as the anchor. Shares of positives: outer points
p after both answers; the middle point :math:`p (1 - q^2)/Z` after "yes" and q after "no". Among the unbiased weights
for these three laws those with the least sum of squares are taken:

.. math:: R = \sum_i \alpha^+_i E_i[\ell_+] + \alpha^-_i E_i[\ell_-].

Undefined at prior 1/2, where all three laws are equal.

Examples
--------
>>> from usimul.methods import get_method
>>> from usimul.supervision import TripletAnswers
>>> sup = TripletAnswers([[0, 1, 2], [3, 4, 5]], values=[1, -1])
>>> len(get_method("triplet-comparison").terms(sup, 0.3))
8

Differs from the paper: any model, loss and training settings.
"""

from __future__ import annotations

from collections.abc import Sequence

from usimul.methods.base import Paper, RiskMethod, register
from usimul.mixture import anchor_share, rows_of, solve
from usimul.risk import Term, class_terms
from usimul.supervision import Supervision, TripletAnswers


def triplet_comparison_terms(supervision: Supervision, prior: float) -> Sequence[Term]:
    """Weights for outer points (pooled over both answers) and for the middle point after each answer."""
    outer, yes, no = solve(rows_of(prior, anchor_share(prior), 1.0 - prior), prior)
    share = len(supervision.sources()["first"]) / supervision.n_tuples
    return class_terms(
        [share * outer, (1.0 - share) * outer, yes, no],
        [("first", (0, 2)), ("second", (0, 2)), ("first", (1,)), ("second", (1,))],
    )


register(
    RiskMethod(
        "triplet-comparison",
        triplet_comparison_terms,
        summary="triples with the answer which point is closer",
        supervision=TripletAnswers,
        formula="sum over outer, middle-yes, middle-no points of a+ mean[l+] + a- mean[l-], least sum of squares",
        paper=Paper(
            "Cui, Z., Charoenphakdee, N., Sato, I., Sugiyama, M.",
            "Classification from Triplet Comparison Data",
            "Neural Computation 32(3)",
            2020,
            "https://arxiv.org/abs/1907.10225",
        ),
        unbiased=("",),
        defined_at_half=False,
    ),
    module=__name__,
)
