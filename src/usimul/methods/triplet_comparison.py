r"""Triplet comparison: answers to "is x2 at least as close to x1 as x3?". The closest prior work to uncertain triplets.

One observation is a triple of independent points with its answer. "Yes" (probability Z = 1 - p q) means that x2 shares
its class with x1 or with x3: the event of an uncertain triplet with x2 as the anchor. Shares of positives: outer points
p after both answers; the middle point :math:`p (1 - q^2)/Z` after "yes" and q after "no". Among the unbiased weights
for these three laws those with the least sum of squares are taken:

.. math:: R = \sum_i \alpha^+_i E_i[\ell_+] + \alpha^-_i E_i[\ell_-].

If a share r of the yes answers is wrong (``wrong_yes``), both answers are taken to be given wrongly equally often,
:math:`e = r Z / (r Z + (1-r) p q)`; the shares of the middle points move towards p, those of the outer ones stay p.

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
from usimul.mixture import acceptance_probability, anchor_share, noisy_share, rows_of, signal_kept, solve
from usimul.noise import wrong_no_share
from usimul.risk import Term, class_terms
from usimul.supervision import Supervision, TripletAnswers


def triplet_comparison_terms(supervision: Supervision, prior: float, wrong_yes: float = 0.0) -> Sequence[Term]:
    """Weights for outer points (pooled over both answers) and for the middle point after each answer."""
    holds = acceptance_probability(prior)
    after_yes = noisy_share(anchor_share(prior), prior, signal_kept(wrong_yes, holds))
    after_no = noisy_share(1.0 - prior, prior, signal_kept(wrong_no_share(wrong_yes, holds), 1.0 - holds))
    outer, yes, no = solve(rows_of(prior, after_yes, after_no), prior)
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
        corrects_wrong_yes=True,
    ),
    module=__name__,
)
