r"""The corrected pointwise estimator: unbiased for the triplets that the paper defines. Ours.

One observation is a triplet (x; x', x''). In the world ``definition1`` the anchor x follows
:math:`a P_+ + (1-a) P_-` with :math:`a = p (1-q^2)/Z`, and the companions x', x'' follow the unlabeled law exactly.
With c = Z/D (D = p - q, Z = 1 - p q) the two class parts are

.. math::
   R_+ = c\,E_A[\ell_+] + (p - c)\,E_P[\ell_+] = p E_{P+}[\ell_+], \qquad
   R_- = -c\,E_A[\ell_-] + (q + c)\,E_P[\ell_-] = q E_{P-}[\ell_-],

where :math:`E_P` is estimated by :math:`(1-\lambda)` times the mean over unlabeled points plus :math:`\lambda` times
the mean over companions. ``usimul-exact-abs`` and ``-relu`` correct each class part, non-negative in population.

If a share r of the yes answers is wrong (``wrong_yes``), the anchors' share is only :math:`\kappa = 1 - r/(1-Z)` times
as far from p, and the companions still follow the unlabeled law: c becomes :math:`Z/(\kappa D)`, all else stays.

In the world ``pair_plus_unlabeled`` c = pS/D with pS = p^2 + q^2 in place of Z, and lambda = 0:
companions are no plain draws there.

Option ``lam``: ``"sizes"`` (default) weighs all plain draws equally, lambda = 2N/(2N + N_U); ``"optimal"`` re-estimates
the variance-optimal value after every epoch; a number in [0, 1] fixes it. At 1 no unlabeled points are needed.

Undefined at prior 1/2, and noisy near it: the error grows like Z/\|D\|. Prefer ``joint``.

Examples
--------
>>> from usimul.methods import get_method
>>> from usimul.supervision import Triplets
>>> sup = Triplets([[0, 1, 2]], unlabeled=[3, 4])
>>> [(t.source, t.columns, t.label, round(t.weight, 3)) for t in get_method("usimul-exact").terms(sup, 0.4)][:3]
[('triplets', (0,), 1, -3.8), ('triplets', (1, 2), 1, 2.1), ('unlabeled', (0,), 1, 2.1)]

Differs from the paper: weights from the true law of each position instead of Lemma 3; correction of each class part
instead of the total.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from usimul.losses import Loss, get_loss
from usimul.methods.base import Batch, Method, Objective, Recipe, RiskObjective, register
from usimul.mixture import (
    acceptance_probability,
    anchor_share,
    noisy_share,
    pair_anchor_share,
    rows_of,
    signal_kept,
    similar_probability,
    solve,
)
from usimul.risk import Risk, Term
from usimul.supervision import Supervision, Triplets
from usimul.validation import InputError, check_real


def position_aware_terms(supervision: Supervision, prior: float, lam: float, wrong_yes: float = 0.0) -> Sequence[Term]:
    """Terms of the position-aware risk with a share ``lam`` of the plain mean taken from the companions."""
    in_pairs = supervision.world == "pair_plus_unlabeled"
    share = pair_anchor_share(prior) if in_pairs else anchor_share(prior)
    holds = similar_probability(prior) if in_pairs else acceptance_probability(prior)
    share = noisy_share(share, prior, signal_kept(wrong_yes, holds))
    weights = solve(rows_of(share, prior), prior)
    sources: list[tuple[str, tuple[int, ...], int, float]] = [("triplets", (0,), 0, 1.0)]
    if lam > 0:
        sources.append(("triplets", (1, 2), 1, lam))
    if lam < 1:
        sources.append(("unlabeled", (0,), 1, 1.0 - lam))
    return [
        Term(source, columns, label, factor * float(weights[row, side]), part)
        for side, (label, part) in enumerate(((+1, "positive"), (-1, "negative")))
        for source, columns, row, factor in sources
    ]


def default_lam(supervision: Supervision) -> float:
    """Share of companions among all points that follow the unlabeled law."""
    if supervision.world == "pair_plus_unlabeled":
        return 0.0
    return 2 * supervision.n_tuples / (2 * supervision.n_tuples + supervision.n_unlabeled)


class OptimalLamObjective(Objective):
    """Terms whose lambda follows the sample moments of d = l+ - l- in the last epoch, never of the current batch."""

    def __init__(
        self, supervision: Supervision, prior: float, loss: Loss, correction: str, wrong_yes: float = 0.0
    ) -> None:
        self.supervision = supervision
        self.prior = prior
        self.wrong_yes = wrong_yes
        self.risk = RiskObjective([], loss, correction)
        self._seen: list[Tensor] = []
        self._use(default_lam(supervision))

    def _use(self, lam: float) -> None:
        self.lam = lam
        self.risk.terms = list(position_aware_terms(self.supervision, self.prior, lam, self.wrong_yes))

    def step(self, batch: Batch) -> Risk:
        """Evaluate the terms and note the batch's moments."""
        with torch.no_grad():
            d = self.risk.loss(batch.scores["triplets"], +1) - self.risk.loss(batch.scores["triplets"], -1)
            d_u = self.risk.loss(batch.scores["unlabeled"], +1) - self.risk.loss(batch.scores["unlabeled"], -1)
            companions = d[:, 1:].mean(dim=1)
            covariance = ((d[:, 0] - d[:, 0].mean()) * (companions - companions.mean())).mean()
            self._seen.append(torch.stack([d_u.var(correction=0), covariance, companions.var(correction=0)]))
        return self.risk.step(batch)

    def end_epoch(self) -> None:
        """Set lambda to (s2/N_U + C/N) / (s2/N_U + V/N)."""
        plain, covariance, companions = (float(v) for v in torch.stack(self._seen).mean(dim=0))
        self._seen.clear()
        n, n_u = self.supervision.n_tuples, self.supervision.n_unlabeled
        below = plain / n_u + companions / n
        if below > 0:
            self._use(min(1.0, max(0.0, (plain / n_u + covariance / n) / below)))


class PositionAwareMethod(Method):
    """Final: the position-aware risk with its lambda."""

    def __init__(self, name: str, correction: str, summary: str) -> None:
        super().__init__(
            name,
            summary=summary,
            supervision=Triplets,
            formula="c mean_A[l+ - l-] + mean_P[(p - c) l+ + (q + c) l-],  c = Z/D",
            unbiased=("definition1", "pair_plus_unlabeled"),
            defined_at_half=False,
            uses_unlabeled=True,
            corrects_wrong_yes=True,
            # Few large batches and strong decay: the weights magnify noise, and a net that may fit it does.
            recipe=Recipe(loss="sigmoid", batch_size=1024, min_steps=800, optimizer="adamw", lr=2e-4, weight_decay=5.0),
            options={"lam": "sizes"},
        )
        self.correction = correction

    def terms(
        self, supervision: Supervision, prior: float, lam: float | str = "sizes", wrong_yes: float = 0.0
    ) -> Sequence[Term]:
        """Return the risk's terms for a fixed lambda."""
        if isinstance(lam, str) and lam not in ("sizes", "optimal"):
            raise InputError(f"`lam` must be 'sizes', 'optimal', or a number in [0, 1]. Got {lam!r}.")
        share = default_lam(supervision) if isinstance(lam, str) else check_real(lam, "lam", low=0.0, high=1.0)
        if share > 0 and supervision.world == "pair_plus_unlabeled":
            raise InputError(
                f"`lam` must be 0 in world 'pair_plus_unlabeled', where companions are no plain draws. Got {lam!r}."
            )
        if share < 1 and supervision.n_unlabeled == 0:
            raise InputError(
                f"method {self.name!r} needs unlabeled points, unless lam=1 in world 'definition1'. "
                f"Got none, and lam={share:g}."
            )
        return position_aware_terms(supervision, prior, share, wrong_yes)

    def objective(
        self,
        supervision: Supervision,
        prior: float,
        *,
        loss: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Objective:
        """Return the terms with a fixed lambda, or with one that follows the sample moments."""
        chosen = self.resolve_options(options)
        lam, wrong_yes = chosen["lam"], chosen.get("wrong_yes", 0.0)
        function = get_loss(loss or self.recipe.loss)
        terms = self.terms(supervision, prior, lam, wrong_yes)
        adaptive = lam == "optimal" and 0.0 < default_lam(supervision) < 1.0
        if adaptive:
            return OptimalLamObjective(supervision, prior, function, self.correction, wrong_yes)
        return RiskObjective(terms, function, self.correction)


for _name, _correction, _summary in (
    ("usimul-exact", "none", "corrected weights, no correction"),
    ("usimul-exact-abs", "abs", "corrected weights, absolute value of each class part"),
    ("usimul-exact-relu", "relu", "corrected weights, positive part of each class part"),
):
    register(PositionAwareMethod(_name, _correction, _summary), module=__name__)
