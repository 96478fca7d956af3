r"""PC-AUC: compared pairs as a ranking task, and a threshold chosen after training.

One observation is a pair (x, x') of which x is at least as positive as x': two independent points, kept unless y = -1
and y' = +1. The score is trained to rank the x of a batch above the x', over all cross pairs of the batch:

.. math:: J = \frac{1}{n^2} \sum_{i,j} \phi(f(x_i) - f(x'_j)).

With Z = 1 - p q and :math:`\gamma = p q / Z`, for every :math:`\phi` with :math:`\phi(m) + \phi(-m) = K` (the sigmoid
loss, K = 1; the 0-1 loss with ties counted half, K = 1),

.. math:: E[\phi] = \gamma\, E_{P_+ \times P_-}[\phi] + (1 - \gamma) K / 2,

so the share of pairs in order is linear in the area under the ROC curve: ``PC-AUC = gamma AUC + (1 - gamma)/2``; see
`estimate_auc`. The other losses are valid for ranking as well, but not linear. No prior enters training.

J does not see a constant added to f, so a threshold t is chosen from the training scores, and predictions are +1 if
and only if f(x) >= t. It takes the prior.

Works at every prior.

Options: ``pairs``: ``"cross"``, or ``"within"`` for i = j only. ``threshold``: ``"pooled_quantile"``, the share
:math:`(p + p^2)/(2Z)` of all points of the pairs, which is their share of positives, lies above t; ``"pcomp_risk"``, t
minimises the Pcomp estimate of the error rate; ``"unlabeled_quantile"``, a share p of the unlabeled points lies above.

Examples
--------
>>> from usimul.methods import get_method
>>> get_method("pc-auc").options
{'pairs': 'cross', 'threshold': 'pooled_quantile'}
>>> scores = np.array([[2.0, 1.0], [0.0, 3.0], [4.0, -1.0], [1.0, 0.5]])
>>> round(estimate_auc(scores, 0.4), 4)
0.9948
>>> round(pooled_quantile(scores, 0.4), 4), pcomp_risk(scores, 0.4)
(1.4211, 3.5)

Differs from the paper: derived from its abstract, since neither code nor the full text was at hand. How the paper
turns a ranking into classes is unknown: all three thresholds are ours, and so is the default loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from usimul.losses import Loss, get_loss
from usimul.methods.base import Batch, Method, Objective, Paper, Recipe, register
from usimul.metrics import area_under_curve
from usimul.mixture import acceptance_probability
from usimul.risk import Risk
from usimul.supervision import ComparedPairs, Supervision
from usimul.validation import InputError, check_choice

PAIRS = ("cross", "within")
THRESHOLDS = ("pooled_quantile", "pcomp_risk", "unlabeled_quantile")

PAPER = Paper(
    authors="Shi, H., Xie, M., Huang, S.",
    title="Robust AUC Maximization for Classification with Pairwise Confidence Comparisons",
    venue="Frontiers of Computer Science 18",
    year=2024,
    link="https://doi.org/10.1007/s11704-023-2709-5",
)

FloatArray = NDArray[np.float64]


def estimate_auc(scores: ArrayLike, prior: float, *, pairs: str = "cross") -> float:
    """Estimate the area under the ROC curve from scores ``(n, 2)`` of compared pairs, by one sort.

    Unbiased for pairs that were not trained on, hence not confined to [0, 1].
    """
    first, second = np.asarray(scores, dtype=np.float64).T
    if check_choice(pairs, PAIRS, "pairs") == "within":
        in_order = float(np.mean((first > second) + 0.5 * (first == second)))
    else:
        in_order = area_under_curve(np.repeat([1, -1], len(first)), np.concatenate([first, second]))
    gamma = prior * (1.0 - prior) / acceptance_probability(prior)
    return (in_order - 0.5 * (1.0 - gamma)) / gamma


def pooled_quantile(scores: ArrayLike, prior: float) -> float:
    """Return the threshold above which the expected share of positives among the points of the pairs lies."""
    share = (prior + prior**2) / (2.0 * acceptance_probability(prior))
    return float(np.quantile(np.asarray(scores, dtype=np.float64), 1.0 - share))


def pcomp_risk(scores: ArrayLike, prior: float) -> float:
    """Return the threshold with the least Pcomp estimate of the error rate, by one sort.

    The estimate is ``mean[1(f(x) < t) - p 1(f(x) >= t)] + mean[1(f(x') >= t) - q 1(f(x') < t)]``. Each x that t passes
    adds (1 + p)/n to it, each x' takes (1 + q)/n away. The threshold lies midway between two scores, or outside of all.
    """
    table = np.asarray(scores, dtype=np.float64)
    values, place = np.unique(table, return_inverse=True)
    change = np.tile([1.0 + prior, prior - 2.0], len(table))
    risk = np.concatenate([[0.0], np.cumsum(np.bincount(place.ravel(), weights=change))])
    margin = max(1.0, float(values[-1] - values[0]))
    between = 0.5 * (values[1:] + values[:-1])
    return float(np.concatenate([[values[0] - margin], between, [values[-1] + margin]])[np.argmin(risk)])


class RankingObjective(Objective):
    """Loss of the differences between the x and the x' of a batch."""

    only_ranks = True

    def __init__(self, prior: float, loss: Loss, pairs: str, rule: str) -> None:
        self.prior = prior
        self.loss = loss
        self.pairs = pairs
        self.rule = rule

    def step(self, batch: Batch) -> Risk:
        """Return the ranking risk of the batch."""
        first, second = batch.scores["compared"].unbind(dim=1)
        difference = first - second if self.pairs == "within" else first[:, None] - second[None, :]
        risk = self.loss(difference, +1).mean()
        return Risk(risk, {"ranking": risk})

    def threshold(self, scores: Mapping[str, FloatArray]) -> float:
        """Return the score that separates the classes, by the chosen rule; 0 if there are no scores."""
        used = scores["unlabeled" if self.rule == "unlabeled_quantile" else "compared"]
        if used.size == 0:
            return 0.0
        if self.rule == "unlabeled_quantile":
            return float(np.quantile(used, 1.0 - self.prior))
        return pcomp_risk(used, self.prior) if self.rule == "pcomp_risk" else pooled_quantile(used, self.prior)


class RankingMethod(Method):
    """Final: PC-AUC."""

    def __init__(self) -> None:
        super().__init__(
            "pc-auc",
            summary="compared pairs: ranking, with a threshold chosen afterwards",
            supervision=ComparedPairs,
            formula="mean_ij l(f(x_i) - f(x'_j), +1)",
            paper=PAPER,
            recipe=Recipe(),
            options={"pairs": "cross", "threshold": "pooled_quantile"},
        )

    def objective(
        self,
        supervision: Supervision,
        prior: float,
        *,
        loss: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Objective:
        """Return the ranking risk; the prior only enters the threshold."""
        chosen = self.resolve_options(options)
        pairs = check_choice(chosen["pairs"], PAIRS, "pairs")
        rule = check_choice(chosen["threshold"], THRESHOLDS, "threshold")
        if rule == "unlabeled_quantile" and supervision.n_unlabeled == 0:
            raise InputError(
                f"method {self.name!r} needs unlabeled points for threshold='unlabeled_quantile'. Got none. "
                "Pass unlabeled=<row indices> to the supervision, or use threshold='pooled_quantile'."
            )
        return RankingObjective(prior, get_loss(loss or self.recipe.loss), pairs, rule)


register(RankingMethod(), module=__name__)
