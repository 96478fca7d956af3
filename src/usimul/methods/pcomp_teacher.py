r"""Pcomp-Teacher: compared pairs read as noisy labels, pruned, re-weighted, and steadied by an averaged teacher.

One observation is a pair (x, x') of which x is at least as positive as x': two independent points, kept unless y = -1
and y' = +1. With Z = 1 - p q, x is positive with probability p/Z and x' with :math:`p^2/Z`.

Reading x as labelled +1 and x' as labelled -1, the noise rates are :math:`\rho_+ = P(\text{labelled} - \mid y = +1) =
p/(1+p)` and :math:`\rho_- = q/(1+q)`. Doubtful points are pruned by the current scores, and a teacher, the exponential
average of the weights, keeps the scores of all points steady:

.. math::
   R = \frac{v_+}{n} \sum_{i \in A_+} \ell_+(f(x_i)) + \frac{v_-}{n} \sum_{i \in A_-} \ell_-(f(x'_i))
   + \lambda\, r(t)\, \frac{1}{2n} \sum_{x, x'} \bigl(\sigma(f(x)) - \sigma(f_{ema}(x))\bigr)^2.

After step t the teacher's weights are :math:`w_{ema} \leftarrow a_t w_{ema} + (1 - a_t) w` with
:math:`a_t = \min(1 - 1/(t+1), \alpha)`. The student predicts. Before that, for a share ``warm_up`` of the steps, the
corrected Pcomp risk |R+| + |R-| is minimised:

.. math:: R_+ = E[\ell_+(f(x))] - q E[\ell_+(f(x'))], \qquad R_- = E[\ell_-(f(x'))] - p E[\ell_-(f(x))].

Works at every prior. The second stage is no unbiased risk; with perfect pruning ``weights="exact"`` would make it one.

Options: ``warm_up``, share of the steps. ``selection``: ``"rank"``, A+ is the share p/Z of the batch's x that score
highest, A- the share q/Z of its x' that score lowest; ``"sign"``, A+ holds the x that score above 0, A- the other x',
which without a warm-up collapses to one class now and then. ``weights``: ``"rp"``, :math:`v_\pm = 1/(1 - \rho_\pm)`,
that is 1 + p and 1 + q; ``"exact"``, both Z (ours). ``alpha``; ``lam``; ``ramp``: ``"none"``, r = 1, or
``"exponential"``, :math:`r = e^{-5 (1 - t/T)^2}` with T steps in all.

Examples
--------
>>> from usimul.methods import get_method
>>> method = get_method("pcomp-teacher")
>>> method.supervision.__name__, method.options["selection"], method.unbiased
('ComparedPairs', 'rank', ())

Differs from the paper: no code of the authors is known. The warm-up, the ramp, the divisor n, and the squared distance
of probabilities are our choices; noise rates and weights are derived from the law of the pairs. Without the warm-up,
training on the pairs alone collapses to one class for some seeds.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from usimul.losses import Loss, get_loss
from usimul.methods.base import Batch, Method, Objective, Paper, Recipe, Run, register
from usimul.mixture import acceptance_probability, compared_shares, rows_of, solve
from usimul.risk import Risk, Term, class_terms, evaluate
from usimul.supervision import ComparedPairs, Supervision
from usimul.validation import check_choice, check_real

SELECTIONS = ("rank", "sign")
WEIGHTS = ("rp", "exact")
RAMPS = ("none", "exponential")

PAPER = Paper(
    authors="Feng, L., Shu, S., Lu, N., Han, B., Xu, M., Niu, G., An, B., Sugiyama, M.",
    title="Pointwise Binary Classification with Pairwise Confidence Comparisons",
    venue="ICML",
    year=2021,
    link="https://proceedings.mlr.press/v139/feng21d.html",
)


@dataclass(frozen=True)
class Settings:
    """The options, checked."""

    warm_up: float
    selection: str
    weights: str
    alpha: float
    lam: float
    ramp: str

    def __post_init__(self) -> None:
        check_real(self.warm_up, "warm_up", low=0.0, high=1.0)
        check_choice(self.selection, SELECTIONS, "selection")
        check_choice(self.weights, WEIGHTS, "weights")
        check_real(self.alpha, "alpha", low=0.0, high=1.0, closed="left")
        check_real(self.lam, "lam", low=0.0)
        check_choice(self.ramp, RAMPS, "ramp")


def warm_up_terms(prior: float) -> Sequence[Term]:
    """Terms of the Pcomp risk."""
    weights = solve(rows_of(*compared_shares(prior)), prior)
    return class_terms(weights, [("compared", (0,)), ("compared", (1,))])


class TeacherObjective(Objective):
    """Pcomp-ABS first, then pruned pairs and an averaged teacher."""

    def __init__(self, prior: float, loss: Loss, settings: Settings) -> None:
        self.loss = loss
        self.settings = settings
        accepted = acceptance_probability(prior)
        self.terms = warm_up_terms(prior)
        self.shares = prior / accepted, (1.0 - prior) / accepted
        self.weights = (accepted, accepted) if settings.weights == "exact" else (1.0 + prior, 2.0 - prior)
        self.teacher: nn.Module
        self._steps = 0

    def begin(self, run: Run) -> None:
        """Start the teacher at the student's weights."""
        super().begin(run)
        self.teacher = copy.deepcopy(run.model).eval().requires_grad_(False)

    def step(self, batch: Batch) -> Risk:
        """Return the risk of the stage that training is in."""
        if self._steps < self.settings.warm_up * self.run.n_steps:
            return evaluate(self.terms, batch.scores, self.loss, "abs")
        scores = batch.scores["compared"]
        parts = self.supervised(scores)
        with torch.no_grad():
            target = self.teacher(_inputs_of("compared", batch)).view_as(scores)
        distance = (torch.sigmoid(scores) - torch.sigmoid(target)).square().mean()
        parts["consistency"] = self.settings.lam * self.ramp() * distance
        return Risk(torch.stack(list(parts.values())).sum(), parts)

    def supervised(self, scores: Tensor) -> dict[str, Tensor]:
        """Weighted losses of the points that survive pruning, divided by n; 0 where none does."""
        first, second = scores.unbind(dim=1)
        if self.settings.selection == "sign":
            kept_first, kept_second = first > 0, second <= 0
        else:
            kept_first, kept_second = _highest(first, self.shares[0]), _highest(-second, self.shares[1])
        return {
            "positive": self.weights[0] * self.loss(first[kept_first], +1).sum() / len(scores),
            "negative": self.weights[1] * self.loss(second[kept_second], -1).sum() / len(scores),
        }

    def ramp(self) -> float:
        """Share of the consistency weight that applies at this step."""
        if self.settings.ramp == "none":
            return 1.0
        return math.exp(-5.0 * (1.0 - self._steps / self.run.n_steps) ** 2)

    def after_step(self) -> None:
        """Let the teacher follow."""
        self._steps += 1
        keep = min(1.0 - 1.0 / (self._steps + 1.0), self.settings.alpha)
        with torch.no_grad():
            for old, new in zip(self.teacher.parameters(), self.run.model.parameters(), strict=True):
                old.lerp_(new, 1.0 - keep)
            for held, current in zip(self.teacher.buffers(), self.run.model.buffers(), strict=True):
                held.copy_(current)


def _highest(scores: Tensor, share: float) -> Tensor:
    """Return the positions of the highest scores."""
    return torch.topk(scores.detach(), round(share * len(scores)), sorted=False).indices


def _inputs_of(source: str, batch: Batch) -> Tensor:
    """Return the inputs of one source's points."""
    start = 0
    for name, scores in batch.scores.items():
        if name == source:
            break
        start += scores.numel()
    return batch.inputs[start : start + batch.scores[source].numel()]


class TeacherMethod(Method):
    """Final: Pcomp-Teacher."""

    def __init__(self) -> None:
        super().__init__(
            "pcomp-teacher",
            summary="compared pairs: rank pruning and an averaged teacher",
            supervision=ComparedPairs,
            formula="(1+p)/n sum_A+ l+ + (1+q)/n sum_A- l-' + lam mean (h - h_ema)^2, after |R+| + |R-| of Pcomp",
            paper=PAPER,
            recipe=Recipe(),
            options={"warm_up": 0.15, "selection": "rank", "weights": "rp", "alpha": 0.97, "lam": 10.0, "ramp": "none"},
        )

    def objective(
        self,
        supervision: Supervision,
        prior: float,
        *,
        loss: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Objective:
        """Return the two-stage objective."""
        settings = Settings(**self.resolve_options(options))
        return TeacherObjective(prior, get_loss(loss or self.recipe.loss), settings)


register(TeacherMethod(), module=__name__)
