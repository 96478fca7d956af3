r"""Tuple-level estimators: the probability of the observed event is modelled from per-point outputs. Ours.

One observation is a triplet (x; x', x'') for which the event Y, "x shares its class with x' or x''", was seen to hold.
With :math:`h = \sigma(f(x))` the model's probability of the event is

.. math:: g = 1 - h(1-h')(1-h'') - (1-h)h'h'',

in general the sum over the admissible label tuples of the product of per-point probabilities. A classifier of triples,
"did Y hold" is learned from observed triplets (positives) and *all* triples of independent unlabeled points, among
which Y holds with probability Z = 1 - p q. The point classifier falls out.

``joint-plain`` minimises the Brier risk

.. math:: Z\,\mathrm{mean}_Y[(1-g)^2] + \bigl|\,E_{UUU}[g^2] - Z\,\mathrm{mean}_Y[g^2]\,\bigr| + (\bar h - p)^2.

The second moment needs no triples: with m2 = E[h^2], n2 = E[(1-h)^2], c = E[h(1-h)] over unlabeled points it is
the sum, over pairs of admissible label tuples, of m2^i n2^j c^k. Companions follow the unlabeled law and are used too.

``joint`` adds refinement: after a quarter of the steps, an exponential average of the weights gives each point its
posterior (triplet members *given Y*), and a cross-entropy to these soft targets, mixed by mixup, is added.

``joint-likelihood`` minimises :math:`-\mathrm{mean}_Y[\log g] + \log Z_f + 2 (\bar h - p)^2` with
:math:`Z_f = 1 - \bar h (1 - \bar h)`, in the log domain; a little better on noisy classes.

If a share r of the yes answers is wrong (``wrong_yes``), what was observed is another event, "the answer was yes", in
which a label tuple is accepted with probability 1 if Y holds for it, and :math:`\rho = r Z / ((1-r)(1-Z))` if not
(`usimul.events.noisy`). The likelihood is that of the observed event, with :math:`\rho + (1 - \rho) g` in place of g
and :math:`\rho + (1 - \rho) Z_f` in place of :math:`Z_f`, and the posterior of a triplet's members is the one given the
answer. The Brier risk stays that of Y itself: the kept triplets are :math:`\kappa P(\cdot \mid Y) + (1-\kappa) P`
with :math:`\kappa = 1 - r/(1-Z)` (`usimul.mixture.signal_kept`), so for every function of a triplet

.. math:: \mathrm{mean}_Y[\cdot] = \bigl(\mathrm{mean}_{yes}[\cdot] - (1-\kappa)\,E_{UUU}[\cdot]\bigr)/\kappa,

where :math:`E_{UUU}` of :math:`g^2` and of :math:`(1-g)^2` has its closed form: no bias comes in. Both parts
are non-negative in population and may be negative in a batch, so the correction is applied to both: raising g
on the wrong triplets too, which would fit them, makes the first part negative. Companions still follow the unlabeled
law.

Assumes independent points before the event is asked about. Works at every prior. All terms but the prior term are
unchanged when the two classes swap names, so which one is called positive is decided explicitly: from known points, if
there are any, else from the share of predicted positives and from the anchors' shift, both with standard errors. At
prior 1/2 nothing decides, and ``orientation_`` says "unknown".

In the world ``pair_plus_unlabeled`` the event is a mixture (y = y' or y = y'', each counted half), with the same code.

Options: ``correction`` of the two Brier parts (``abs``, ``relu``, ``none``); ``prior_weight``.

Examples
--------
>>> from usimul.methods import get_method
>>> get_method("joint").defined_at_half, get_method("joint").probability
(True, True)

Differs from the paper: the paper has pointwise estimators only; this one keeps the structure of the triplet.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from usimul.events import EVENTS, Event, noisy
from usimul.methods.base import Batch, Method, Objective, Orientation, Recipe, Run, register
from usimul.mixture import signal_kept
from usimul.risk import CORRECTIONS, Risk, correct
from usimul.supervision import Supervision, Triplets
from usimul.validation import InputError, check_choice, check_real

AVERAGE_DECAY = 0.998
WARM_UP = 0.25  # share of the steps before the averaged posterior is good enough to learn from
STUCK_SPREAD = 0.05  # standard deviation of h over plain points; the saddle h = p has none
SHARE_TOLERANCE = 0.05  # how far the share of predicted positives may be off for reasons other than sampling
DECIDED_Z = 3.0
CORRECTED = ("positive", "negative")  # parts; without noise the positive one is a mean of squares, never negative


class EventModel:
    """Torch side of an event: probabilities, moments and posteriors from scores, differentiable."""

    def __init__(self, event: Event, device: torch.device) -> None:
        self.event = event
        self._table = torch.as_tensor(event.table == 1, device=device)
        self._log_accepted = torch.as_tensor(np.log(event.accepted), dtype=torch.float32, device=device)
        counts = event.pair_counts()
        self._powers = torch.tensor(list(counts), dtype=torch.float32, device=device)
        self._counts = torch.tensor(list(counts.values()), dtype=torch.float32, device=device)

    def log_tuples(self, scores: Tensor) -> Tensor:
        """Log probability of each admissible label tuple (and of its observation), ``(n, n_tuples)``."""
        positive = functional.logsigmoid(scores)[:, None, :]
        negative = functional.logsigmoid(-scores)[:, None, :]
        return torch.where(self._table, positive, negative).sum(dim=-1) + self._log_accepted.to(scores.dtype)

    def log_probability(self, scores: Tensor) -> Tensor:
        """Log probability of the event, ``(n,)``; stable because nothing is subtracted."""
        return torch.logsumexp(self.log_tuples(scores), dim=1)

    def mean_probability(self, mean: Tensor) -> Tensor:
        """Probability of the event over independent points whose mean output is ``mean``."""
        by_tuple = torch.where(self._table, mean, 1.0 - mean).prod(dim=-1)
        return (by_tuple * self._log_accepted.to(mean.dtype).exp()).sum()

    def second_moment(self, h: Tensor) -> Tensor:
        """``E[g^2]`` over all tuples of independent points with outputs ``h``, in closed form."""
        rest = 1.0 - h
        moments = torch.stack([(h * h).mean(), (rest * rest).mean(), (h * rest).mean()])
        return (self._counts.to(h.dtype) * (moments ** self._powers.to(h.dtype)).prod(dim=1)).sum()

    def posterior(self, scores: Tensor) -> Tensor:
        """Probability that each member is positive given the event, ``(n, size)``."""
        weights = torch.softmax(self.log_tuples(scores), dim=1)
        return weights @ self._table.to(weights.dtype)


class JointObjective(Objective):
    """Risk of the event's probability, orientation, and (optionally) refinement."""

    def __init__(
        self,
        supervision: Supervision,
        prior: float,
        event: Event,
        *,
        likelihood: bool,
        refine: bool,
        correction: str,
        prior_weight: float,
        wrong_yes: float,
    ) -> None:
        self.event = event
        self.observed = noisy(event, wrong_yes, prior)
        self.kept = signal_kept(wrong_yes, event.probability(prior))
        self.prior = prior
        self.source = supervision.source
        self.likelihood = likelihood
        self.refine = refine
        self.correction = correction
        self.prior_weight = prior_weight
        self.known_labels = supervision.known_labels
        self.accepted = event.probability(prior)
        shares = event.marginals(prior)
        self.plain_columns = [i for i in range(event.size) if math.isclose(shares[i], prior, abs_tol=1e-12)]
        if not self.plain_columns and supervision.n_unlabeled == 0:
            raise InputError(
                f"in world {supervision.world!r} no position of the tuples follows the unlabeled law, so the joint "
                "methods need unlabeled points. Got none; pass unlabeled=<row indices>."
            )
        self._model: EventModel
        self._observed: EventModel
        self._average: nn.Module
        self._steps = 0
        self._spread = 0.0
        self._refining = False

    def begin(self, run: Run) -> None:
        """Start the weight average."""
        super().begin(run)
        device = next(run.model.parameters()).device
        self._model, self._observed = EventModel(self.event, device), EventModel(self.observed, device)
        self._average = copy.deepcopy(run.model).eval().requires_grad_(False)

    def step(self, batch: Batch) -> Risk:
        """Return the risk of the batch; parts are reported one by one."""
        tuples = batch.scores[self.source]
        plain = self._plain(batch.scores)
        h = torch.sigmoid(plain)
        mean = h.mean()
        self._spread = 0.9 * self._spread + 0.1 * float(h.detach().std(correction=0))
        off = (mean - self.prior).square()
        if self.likelihood:
            fit = -self._observed.log_probability(tuples).mean() + torch.log(self._observed.mean_probability(mean))
            parts = {"likelihood": fit, "prior": 2.0 * self.prior_weight * off}
            total = parts["likelihood"] + parts["prior"]
        else:
            g = self._model.log_probability(tuples).exp()
            second = self._model.second_moment(h)
            fits, misses = g.square().mean(), (1.0 - g).square().mean()
            if self.kept < 1.0:  # take out what the share of triplets that says nothing adds to the means
                rest = 1.0 - 2.0 * self._model.mean_probability(mean) + second
                fits = (fits - (1.0 - self.kept) * second) / self.kept
                misses = (misses - (1.0 - self.kept) * rest) / self.kept
            parts = {
                "positive": self.accepted * misses,
                "negative": second - self.accepted * fits,
                "prior": self.prior_weight * off,
            }
            positive, negative = (correct(parts[name], self.correction) for name in CORRECTED)
            total = positive + negative + parts["prior"]
        if self._refining:
            parts["refinement"] = self._refinement(batch)
            total = total + parts["refinement"]
        corrects = not self.likelihood and self.correction != "none"
        return Risk(total, parts, CORRECTED if corrects else ())

    def _plain(self, scores: Mapping[str, Tensor]) -> Tensor:
        """Scores of all points of the batch that follow the unlabeled law."""
        found = [scores[self.source][:, self.plain_columns].flatten()]
        if "unlabeled" in scores:
            found.append(scores["unlabeled"].flatten())
        return torch.cat(found)

    def _refinement(self, batch: Batch) -> Tensor:
        """Cross-entropy to the averaged model's posterior, inputs and targets mixed by mixup with Beta(1, 1)."""
        with torch.no_grad():
            flat = self._average(batch.inputs)
            parts = flat.split([scores.numel() for scores in batch.scores.values()])
            targets = torch.cat(
                [
                    self._observed.posterior(part.view_as(scores)).flatten()
                    if name == self.source
                    else torch.sigmoid(part)
                    for (name, scores), part in zip(batch.scores.items(), parts, strict=True)
                ]
            )
            other = torch.randperm(len(targets), device=targets.device)
            share = torch.rand(len(targets), dtype=targets.dtype, device=targets.device)
            inputs = torch.lerp(batch.inputs[other], batch.inputs, share[:, None])
            targets = torch.lerp(targets[other], targets, share)
        return functional.binary_cross_entropy_with_logits(self.run.model(inputs), targets)

    def after_step(self) -> None:
        """Update the average; after the warm-up, decide the orientation once and begin to refine."""
        self._steps += 1
        keep = min(AVERAGE_DECAY, (1 + self._steps) / (10 + self._steps))
        with torch.no_grad():
            torch._foreach_lerp_(list(self._average.parameters()), list(self.run.model.parameters()), 1.0 - keep)
            for held, current in zip(self._average.buffers(), self.run.model.buffers(), strict=True):
                held.copy_(current)
        warm = self._steps >= WARM_UP * self.run.n_steps and self._spread > STUCK_SPREAD
        if self.refine and warm and not self._refining:
            self._refining = True
            if self.orient(self.run.score()).flipped:  # all parts but the prior's are symmetric: training just goes on
                self.run.negate(self.run.model)
                self.run.negate(self._average)

    def output(self) -> nn.Module:
        """Return the averaged weights."""
        return self._average

    def is_stuck(self, scores: Mapping[str, NDArray[np.float64]]) -> bool:
        """Whether h is nearly constant: the saddle h = p, where every run starts."""
        plain = np.concatenate([s.ravel() for name, s in scores.items() if name != "known"])
        return float(np.std(1.0 / (1.0 + np.exp(-np.clip(plain, -500, 500))))) < STUCK_SPREAD

    def orient(self, scores: Mapping[str, NDArray[np.float64]]) -> Orientation:
        """Decide which class is positive from known points, else from two pieces of evidence with standard errors."""
        if self.known_labels is not None and "known" in scores:
            agreement = float(np.sum(self.known_labels * np.tanh(0.5 * scores["known"].ravel())))
            return Orientation("given", flipped=agreement < 0)
        side = float(np.sign(2.0 * self.prior - 1.0)) if abs(2.0 * self.prior - 1.0) > 1e-6 else 0.0
        if side == 0.0:
            return Orientation("unknown")
        positive = {name: np.asarray(s >= 0, dtype=np.float64) for name, s in scores.items()}
        tuples = positive[self.source]
        plain = [tuples[:, self.plain_columns].ravel()]
        if "unlabeled" in positive:
            plain.append(positive["unlabeled"].ravel())
        points = np.concatenate(plain)
        # First evidence: predicted positives must be on the prior's side of one half.
        z_share = side * (points.mean() - 0.5) / math.sqrt(0.25 / points.size + SHARE_TOLERANCE**2)
        # Second evidence: anchors are shifted away from the minority class, companions are not.
        shift = tuples[:, 0] - tuples[:, 1:].mean(axis=1)
        error = float(shift.std()) / math.sqrt(len(shift))
        z_shift = side * float(shift.mean()) / error if error > 0 else 0.0
        z = (z_share + z_shift) / math.sqrt(2.0)
        agree = z_share * z_shift > 0 or min(abs(z_share), abs(z_shift)) < 1.0
        return Orientation(
            "evidence" if agree and abs(z) >= DECIDED_Z else "unknown", flipped=bool(z < 0), z=float(abs(z))
        )


class JointMethod(Method):
    """Final: a tuple-level method for triplets."""

    def __init__(
        self, name: str, *, summary: str, formula: str, likelihood: bool = False, refine: bool = False
    ) -> None:
        options: dict[str, Any] = {"prior_weight": 1.0}
        if not likelihood:
            options["correction"] = "abs"
        super().__init__(
            name,
            summary=summary,
            supervision=Triplets,
            formula=formula,
            probability=True,
            corrects_wrong_yes=True,
            uses_unlabeled=True,
            worlds=("definition1", "pair_plus_unlabeled"),
            recipe=Recipe(
                epochs=20,
                min_steps=1500,
                batch_size=256,
                optimizer="adamw",
                lr=1e-3,
                weight_decay=1e-2,
                schedule="one-cycle",
                loss="built in",
            ),
            options=options,
        )
        self.likelihood = likelihood
        self.refine = refine

    def objective(
        self,
        supervision: Supervision,
        prior: float,
        *,
        loss: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Objective:
        """Return the event's risk for the world that the triplets come from."""
        if loss is not None:
            raise InputError(f"`loss` cannot be chosen for method {self.name!r}: its loss is built in. Got {loss!r}.")
        chosen = self.resolve_options(options)
        event = EVENTS["shuffled-pair" if supervision.world == "pair_plus_unlabeled" else "triplet"]
        return JointObjective(
            supervision,
            prior,
            event,
            likelihood=self.likelihood,
            refine=self.refine,
            correction=check_choice(chosen.get("correction", "none"), CORRECTIONS, "correction"),
            prior_weight=check_real(chosen["prior_weight"], "prior_weight", low=0.0),
            wrong_yes=chosen.get("wrong_yes", 0.0),
        )


_BRIER = "Z mean_Y[(1-g)^2] + |E_UUU[g^2] - Z mean_Y[g^2]| + (mean h - p)^2"

register(
    JointMethod(
        "joint",
        summary="tuple-level Brier risk with refinement",
        formula=f"{_BRIER} + cross-entropy to averaged posteriors",
        refine=True,
    ),
    module=__name__,
)
register(JointMethod("joint-plain", summary="tuple-level Brier risk", formula=_BRIER), module=__name__)
register(
    JointMethod(
        "joint-likelihood",
        summary="conditional likelihood of the triplets",
        formula="-mean_Y[log g] + log Z_f + 2 (mean h - p)^2,  Z_f = 1 - mean h (1 - mean h)",
        likelihood=True,
    ),
    module=__name__,
)
