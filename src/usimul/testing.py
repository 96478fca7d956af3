r"""Contract checks for methods, the package's own and yours: what a method's record claims is proved by enumeration.

A `DiscreteWorld` is an urn of labelled balls, each at one of a few points. For a kind of supervision, `enumerate_world`
lists every draw that the kind's definition allows, each equally likely. So a plain mean over the list is an exact
expectation under the weak law, and a mean over the balls is the exact risk. No class share, event or weight of this
package is used on the way.

Examples
--------
>>> from usimul.methods import get_method
>>> urn = DiscreteWorld.random(0.4, random_state=0)
>>> bool(bias(get_method("usimul-exact"), urn, "definition1") < 1e-10)
True
>>> bool(bias(get_method("usimul"), urn, "definition1") < 0.1)
False
>>> check_method(get_method("usimul-exact"))

To check methods for a kind of supervision of your own, add its law to `LAWS`: a function of the urn that lists the
draws. The checks raise AssertionError, and say what was expected and what came.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from usimul.losses import LOSSES, get_loss
from usimul.methods.base import Batch, Method, Objective, Run
from usimul.models import build_model, negate_output
from usimul.risk import CORRECTIONS, Risk, Term, evaluate
from usimul.supervision import (
    ComparedPairs,
    ConfidenceDifference,
    DissimilarPairs,
    Labels,
    PairAnswers,
    SimilarityConfidence,
    SimilarPairs,
    Supervision,
    TripletAnswers,
    Triplets,
    UnlabeledSets,
)
from usimul.training import check_recipe, score_sources
from usimul.validation import InputError, InputTypeError, IntArray

__all__ = [
    "CHECKS",
    "LAWS",
    "PRIORS",
    "DiscreteWorld",
    "Enumerated",
    "batch_of",
    "bias",
    "check_biased",
    "check_correction",
    "check_deterministic",
    "check_dtypes",
    "check_gradients",
    "check_half",
    "check_mass",
    "check_method",
    "check_objective",
    "check_record",
    "check_supervision_type",
    "check_symmetry",
    "check_unbiased",
    "enumerate_world",
    "worlds_of",
]

FloatArray = NDArray[np.float64]

PRIORS = (0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Priors of the exact checks; multiples of 1/20, the size of the urns."""

EXACT = 1e-10
N_TABLES = 3


def _require(condition: bool, method: Method, message: str) -> None:
    if not condition:
        raise AssertionError(f"method {method.name!r}: {message}")


# --- worlds -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DiscreteWorld:
    """An urn of labelled balls; drawing with replacement gives independent points with their labels.

    Parameters
    ----------
    points
        Where each ball lies: a number from 0 to ``n_points - 1``.
    labels
        The label of each ball, +1 or -1.
    n_points
        How many points there are.
    """

    points: IntArray
    labels: IntArray
    n_points: int

    @classmethod
    def random(
        cls, prior: float, *, n_points: int = 6, n_balls: int = 20, random_state: int | np.random.Generator = 0
    ) -> DiscreteWorld:
        """Return an urn with random class laws; ``prior * n_balls`` must be a whole number."""
        rng = np.random.default_rng(random_state)
        n_positive = round(prior * n_balls)
        if abs(n_positive - prior * n_balls) > 1e-9 or not 0 < n_positive < n_balls:
            raise InputError(f"`prior` must be a multiple of 1/{n_balls} strictly between 0 and 1. Got {prior!r}.")
        laws = rng.dirichlet(np.ones(n_points), size=2)
        positive = rng.choice(n_points, size=n_positive, p=laws[0])
        negative = rng.choice(n_points, size=n_balls - n_positive, p=laws[1])
        labels = np.repeat(np.array([1, -1]), [n_positive, n_balls - n_positive])
        return cls(np.concatenate([positive, negative]), labels, n_points)

    @property
    def prior(self) -> float:
        """Share of positive balls."""
        return float((self.labels > 0).mean())

    @property
    def law(self) -> FloatArray:
        """Probability of each point, P."""
        return np.bincount(self.points, minlength=self.n_points) / self.points.size

    @property
    def class_laws(self) -> tuple[FloatArray, FloatArray]:
        """Probability of each point in the two classes, P+ and P-."""
        positive, negative = (self.points[self.labels == y] for y in (1, -1))
        return (
            np.bincount(positive, minlength=self.n_points) / positive.size,
            np.bincount(negative, minlength=self.n_points) / negative.size,
        )

    @property
    def eta(self) -> FloatArray:
        """Share of positive balls at each point, ``P(y = +1 | x)``; 1/2 at a point without balls."""
        count = np.bincount(self.points, minlength=self.n_points)
        positive = np.bincount(self.points[self.labels > 0], minlength=self.n_points)
        return np.where(count > 0, positive / np.maximum(count, 1), 0.5)

    def draws(self, width: int) -> IntArray:
        """Return every ordered draw of ``width`` balls with replacement, one a line."""
        grid = np.indices((self.points.size,) * width).reshape(width, -1)
        return np.ascontiguousarray(grid.T)

    def risk(self, losses: FloatArray) -> tuple[float, float]:
        """Class parts ``(p E+[l+], q E-[l-])`` of the true risk, for ``losses`` of shape ``(2, n_points)``."""
        at_balls = np.where(self.labels > 0, losses[0, self.points], losses[1, self.points])
        positive = float(at_balls[self.labels > 0].sum()) / self.points.size
        return positive, float(at_balls.sum()) / self.points.size - positive


@dataclass(frozen=True, eq=False)
class Enumerated:
    """Every equally likely observation in a world, as one supervision, and the labels that nobody sees.

    Row r of the pool is the point ``r % n_points``: the pool holds one copy of the points for each position of a
    tuple, because independent draws may hit one point twice and the rows of a tuple must differ.
    """

    world: DiscreteWorld
    supervision: Supervision
    labels: IntArray

    @property
    def points(self) -> IntArray:
        """Points of each tuple, ``(n, width)``."""
        return self.supervision.rows % self.world.n_points


def _observe(
    urn: DiscreteWorld,
    kind: type[Supervision],
    balls: IntArray,
    *,
    values: FloatArray | None = None,
    plain: bool = True,
    sampling: str | None = None,
) -> Enumerated:
    width = balls.shape[1]
    supervision = kind(
        urn.points[balls] + urn.n_points * np.arange(width),
        unlabeled=urn.points if plain else None,
        values=values,
        n_points=urn.n_points * width,
        world=sampling,
    )
    return Enumerated(urn, supervision, urn.labels[balls])


def _definition1(urn: DiscreteWorld) -> Enumerated:
    """Keep three independent draws if and only if the first shares its class with the second or the third."""
    balls = urn.draws(3)
    y = urn.labels[balls]
    kept = balls[(y[:, 0] == y[:, 1]) | (y[:, 0] == y[:, 2])]
    return _observe(urn, Triplets, kept, sampling="definition1")


def _pair_plus_unlabeled(urn: DiscreteWorld) -> Enumerated:
    """List similar pairs with one independent draw each, partner and extra draw in either order."""
    balls = urn.draws(3)
    pairs = balls[urn.labels[balls[:, 0]] == urn.labels[balls[:, 1]]]
    both = np.concatenate([pairs, pairs[:, [0, 2, 1]]])
    return _observe(urn, Triplets, both, sampling="pair_plus_unlabeled")


def _similar(urn: DiscreteWorld) -> Enumerated:
    balls = urn.draws(2)
    return _observe(urn, SimilarPairs, balls[urn.labels[balls[:, 0]] == urn.labels[balls[:, 1]]])


def _dissimilar(urn: DiscreteWorld) -> Enumerated:
    balls = urn.draws(2)
    return _observe(urn, DissimilarPairs, balls[urn.labels[balls[:, 0]] != urn.labels[balls[:, 1]]])


def _compared(urn: DiscreteWorld) -> Enumerated:
    balls = urn.draws(2)
    return _observe(urn, ComparedPairs, balls[urn.labels[balls[:, 0]] >= urn.labels[balls[:, 1]]])


def _similarity_confidence(urn: DiscreteWorld) -> Enumerated:
    balls = urn.draws(2)
    first, second = urn.eta[urn.points[balls]].T
    return _observe(urn, SimilarityConfidence, balls, values=first * second + (1 - first) * (1 - second))


def _confidence_difference(urn: DiscreteWorld) -> Enumerated:
    balls = urn.draws(2)
    first, second = urn.eta[urn.points[balls]].T
    return _observe(urn, ConfidenceDifference, balls, values=second - first)


def _labeled(urn: DiscreteWorld) -> Enumerated:
    return _observe(urn, Labels, urn.draws(1), values=urn.labels.astype(np.float64), plain=False)


def _pair_answers(urn: DiscreteWorld) -> Enumerated:
    balls = urn.draws(2)
    y = urn.labels[balls]
    answers = np.where(y[:, 0] == y[:, 1], 1.0, -1.0)
    return _observe(urn, PairAnswers, balls, values=answers, plain=False)


def _triplet_answers(urn: DiscreteWorld) -> Enumerated:
    """List all triples; the third is strictly closer to the first than the second is, or not."""
    balls = urn.draws(3)
    y = urn.labels[balls]
    answers = np.where((y[:, 0] == y[:, 2]) & (y[:, 0] != y[:, 1]), -1.0, 1.0)
    return _observe(urn, TripletAnswers, balls, values=answers, plain=False)


def _unlabeled_sets(urn: DiscreteWorld) -> Enumerated:
    """List one set in which positive balls count three times, and one in which negative balls count twice."""
    positive = urn.labels > 0
    first, second = (np.repeat(np.arange(positive.size), np.where(positive, *times)) for times in ((3, 1), (1, 2)))
    values = np.repeat([positive[first].mean(), positive[second].mean()], [first.size, second.size])
    return _observe(urn, UnlabeledSets, np.concatenate([first, second])[:, None], values=values, plain=False)


LAWS: dict[tuple[type[Supervision], str], Callable[[DiscreteWorld], Enumerated]] = {
    (Triplets, "definition1"): _definition1,
    (Triplets, "pair_plus_unlabeled"): _pair_plus_unlabeled,
    (SimilarPairs, ""): _similar,
    (DissimilarPairs, ""): _dissimilar,
    (ComparedPairs, ""): _compared,
    (SimilarityConfidence, ""): _similarity_confidence,
    (ConfidenceDifference, ""): _confidence_difference,
    (PairAnswers, ""): _pair_answers,
    (TripletAnswers, ""): _triplet_answers,
    (UnlabeledSets, ""): _unlabeled_sets,
    (Labels, ""): _labeled,
}
"""How each kind of supervision arises in each world of sampling (``""`` for kinds that know only one)."""


def _columns(*order: int, negated: bool = False) -> Callable[[Supervision], Supervision]:
    """Reorder the positions of every tuple; ``negated`` flips the sign of its value."""

    def change(supervision: Supervision) -> Supervision:
        values = supervision.values
        rows = supervision.rows[:, list(order)]
        return replace(supervision, rows=rows, values=-values if negated and values is not None else values)

    return change


def _complements(supervision: Supervision) -> Supervision:
    return replace(supervision, values=None if supervision.values is None else 1.0 - supervision.values)


def _as_is(supervision: Supervision) -> Supervision:
    return supervision


REORDERED: dict[type[Supervision], Callable[[Supervision], Supervision]] = {
    Triplets: _columns(0, 2, 1),
    SimilarPairs: _columns(1, 0),
    DissimilarPairs: _columns(1, 0),
    SimilarityConfidence: _columns(1, 0),
    ConfidenceDifference: _columns(1, 0, negated=True),
    PairAnswers: _columns(1, 0),
    TripletAnswers: _columns(2, 1, 0),
}
"""The same observations written in another order, for the kinds whose order is free."""

RENAMED: dict[type[Supervision], Callable[[Supervision], Supervision]] = {
    ComparedPairs: _columns(1, 0),
    ConfidenceDifference: _columns(0, 1, negated=True),
    Labels: _columns(0, negated=True),
    UnlabeledSets: _complements,
}
"""The same observations after the two classes swapped names, for the kinds that are not the same then."""


def enumerate_world(world: DiscreteWorld, kind: type[Supervision], sampling: str = "") -> Enumerated:
    """Return every equally likely observation of ``kind``.

    >>> found = enumerate_world(DiscreteWorld.random(0.4), Triplets, "definition1")
    >>> found.supervision.n_tuples / 20**3  # 1 - p q
    0.76
    """
    if (kind, sampling) not in LAWS:
        raise InputError(
            f"usimul.testing.LAWS has no law for {kind.__name__} in world {sampling!r}; it has: "
            f"{', '.join(f'{k.__name__} {w!r}' for k, w in LAWS)}. Add a function that lists its draws."
        )
    return LAWS[kind, sampling](world)


def worlds_of(method: Method) -> tuple[str, ...]:
    """Return the worlds of sampling in which the method's kind of supervision can be enumerated."""
    found = tuple(sampling for kind, sampling in LAWS if kind is method.supervision)
    if not found:
        raise InputError(
            f"usimul.testing.LAWS has no law for {method.supervision.__name__}, which method {method.name!r} takes. "
            "Add a function that lists its draws."
        )
    return found


# --- running a method ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _float64() -> Iterator[None]:
    """Let weights that are made as tensors keep all their digits."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _terms(method: Method, supervision: Supervision, prior: float, options: Mapping[str, Any] | None) -> list[Term]:
    build = getattr(method, "terms", None)
    _require(build is not None, method, "claims an unbiased risk, so it must show it: a function `terms`.")
    assert build is not None
    known = inspect.signature(build).parameters
    chosen = {name: value for name, value in method.resolve_options(options).items() if name in known}
    with _float64():
        return list(build(supervision, prior, **chosen))


def _risk_of(terms: Sequence[Term], found: Enumerated, losses: FloatArray) -> Risk:
    """Exact weak risk for arbitrary losses: the scores are the numbers of the points, the loss looks them up."""
    table = torch.from_numpy(losses)
    n_points = found.world.n_points
    rows = found.supervision.sources()
    scores = {name: torch.tensor(r % n_points, dtype=torch.float64) for name, r in rows.items()}
    return evaluate(terms, scores, lambda point, label: table[0 if label > 0 else 1][point.long()])


def bias(
    method: Method,
    world: DiscreteWorld,
    sampling: str = "",
    *,
    options: Mapping[str, Any] | None = None,
    random_state: int = 0,
) -> float:
    """Largest deviation of the method's uncorrected population risk from the true one, over arbitrary losses.

    Where the method has parts named positive and negative, each must also equal its class part.
    """
    found = enumerate_world(world, method.supervision, sampling)
    terms = _terms(method, found.supervision, world.prior, options)
    rng = np.random.default_rng(random_state)
    worst = 0.0
    for _ in range(N_TABLES):
        losses = rng.uniform(0.0, 2.0, size=(2, world.n_points))
        risk = _risk_of(terms, found, losses)
        positive, negative = world.risk(losses)
        worst = max(worst, abs(float(risk.raw) - positive - negative))
        if set(risk.parts) == {"positive", "negative"}:
            worst = max(worst, abs(float(risk.parts["positive"]) - positive))
            worst = max(worst, abs(float(risk.parts["negative"]) - negative))
    return worst


def _defined(method: Method, priors: Sequence[float]) -> list[float]:
    return [p for p in priors if method.defined_at_half or p != 0.5]


def _losses(method: Method) -> list[str | None]:
    """All losses where the user may choose, else only the built-in one."""
    return [*LOSSES] if method.recipe.loss in LOSSES else [None]


def _settings(method: Method) -> list[dict[str, Any]]:
    """Option settings worth a check of their own."""
    return [{"correction": name} for name in CORRECTIONS] if "correction" in method.options else [{}]


def batch_of(supervision: Supervision, by_point: Tensor, features: Tensor | None = None) -> Batch:
    """Return one step with all of a supervision's tuples, given the score of every point of the pool.

    ``by_point`` may be shorter than the pool: row r has the score of point ``r % len(by_point)``.
    """
    n_points = len(by_point)
    points = {name: torch.tensor(rows % n_points) for name, rows in supervision.sources().items()}
    flat = torch.cat([by_point[p.flatten()] for p in points.values()])
    split = torch.split(flat, [p.numel() for p in points.values()])
    scores = {name: part.view(p.shape) for (name, p), part in zip(points.items(), split, strict=True)}
    inputs = flat.detach()[:, None] if features is None else features[torch.cat([p.flatten() for p in points.values()])]
    return Batch(inputs, flat, scores, {name: torch.arange(len(p)) for name, p in points.items()})


class _Trial:
    """An objective at work on a small model, with all that a real training gives it."""

    def __init__(
        self,
        objective: Objective,
        supervision: Supervision,
        features: Tensor,
        model: nn.Module,
        n_steps: int = 6,
    ) -> None:
        self.objective, self.supervision, self.features, self.model = objective, supervision, features, model
        n_points = len(features)
        sources = {name: rows % n_points for name, rows in supervision.sources().items()}
        self.n_steps = n_steps
        objective.begin(
            Run(
                model,
                n_steps,
                score=lambda: score_sources(objective.output(), features, sources),
                negate=negate_output,
            )
        )

    def total(self, *_: Tensor) -> Tensor:
        """Risk of the whole supervision; what is drawn at random inside a step is the same in every call.

        gradcheck passes the model's parameters, which it changes in place.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return self.objective.step(batch_of(self.supervision, self.model(self.features), self.features)).total

    def train(self) -> None:
        """Take all the steps, so that whatever an objective begins late has begun."""
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.02)
        for _ in range(self.n_steps):
            optimizer.zero_grad()
            self.total().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            self.objective.after_step()
        self.objective.end_epoch()


def _step(
    method: Method,
    supervision: Supervision,
    prior: float,
    by_point: Tensor,
    *,
    loss: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Risk:
    """Risk of one step of a fresh objective, from scores alone."""
    objective = method.objective(supervision, prior, loss=loss, options=options)
    features = torch.zeros(len(by_point), 2, dtype=by_point.dtype)
    model = build_model("linear", 2, seed=0).to(by_point.dtype)
    _Trial(objective, supervision, features, model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return objective.step(batch_of(supervision, by_point, features))


def _some(found: Enumerated, rng: np.random.Generator, n: int) -> Supervision:
    """Return a few tuples and a few unlabeled points of an enumerated world, no source empty."""
    supervision = found.supervision
    while True:
        tuples = rng.integers(supervision.n_tuples, size=n)
        with contextlib.suppress(InputError):
            few = supervision.take(tuples, rng.integers(max(1, supervision.n_unlabeled), size=n))
            if few.sources():
                return few


def _cases(
    method: Method, priors: Sequence[float], random_state: int
) -> Iterator[tuple[str, float, Enumerated, Tensor, np.random.Generator]]:
    """Worlds of the method's kind at some priors, each with random scores by point."""
    rng = np.random.default_rng(random_state)
    for sampling in worlds_of(method):
        for prior in _defined(method, priors):
            urn = DiscreteWorld.random(prior, random_state=rng)
            found = enumerate_world(urn, method.supervision, sampling)
            yield sampling, prior, found, torch.from_numpy(rng.normal(scale=2.0, size=urn.n_points)), rng


# --- checks -------------------------------------------------------------------------------------------------------


def check_unbiased(method: Method, worlds: Sequence[str] | None = None, priors: Sequence[float] = PRIORS) -> None:
    """Check that the population risk is the true one in every world that the record names, and parts class parts."""
    for sampling in method.unbiased if worlds is None else worlds:
        for prior in _defined(method, priors):
            urn = DiscreteWorld.random(prior, random_state=round(1000 * prior))
            worst = bias(method, urn, sampling)
            _require(
                worst < EXACT,
                method,
                f"claims an unbiased risk in world {sampling!r}, but is off by {worst:.3g} at prior {prior:g}. "
                "Check its weights, or drop the world from `unbiased`.",
            )


def check_mass(method: Method, worlds: Sequence[str] | None = None, priors: Sequence[float] = PRIORS) -> None:
    """Check that the losses (l+, l-) = (1, 0) cost p and (0, 1) cost q: the shortest test of a set of weights."""
    for sampling in method.unbiased if worlds is None else worlds:
        for prior in _defined(method, priors):
            urn = DiscreteWorld.random(prior)
            found = enumerate_world(urn, method.supervision, sampling)
            terms = _terms(method, found.supervision, prior, None)
            for constants, truth in (((1.0, 0.0), prior), ((0.0, 1.0), 1.0 - prior)):
                losses = np.repeat(np.array(constants)[:, None], urn.n_points, axis=1)
                mass = float(_risk_of(terms, found, losses).raw)
                _require(
                    abs(mass - truth) < EXACT,
                    method,
                    f"constant losses {constants} must cost {truth:g} in world {sampling!r}. Got {mass:.12g}.",
                )


def check_biased(method: Method) -> None:
    """Check that the risk is indeed biased where the record claims nothing: a record must not be out of date."""
    if not hasattr(method, "terms"):
        return
    for sampling in (w for w in worlds_of(method) if w not in method.unbiased):
        for prior in _defined(method, PRIORS):
            urn = DiscreteWorld.random(prior, random_state=round(1000 * prior))
            try:
                found = bias(method, urn, sampling)
            except InputError:  # refusing a world is honest too
                continue
            _require(
                found > 1e-3,
                method,
                f"is unbiased in world {sampling!r} at prior {prior:g} (off by {found:.3g}), "
                "but its record does not say so. Add the world to `unbiased`.",
            )


def check_objective(method: Method) -> None:
    """Check that a step minimises the very risk that `terms` shows."""
    if not hasattr(method, "terms"):
        return
    for sampling, prior, found, by_point, _ in _cases(method, (0.2, 0.5, 0.6), 1):
        for loss in _losses(method):
            risk = _step(method, found.supervision, prior, by_point, loss=loss)
            terms = _terms(method, found.supervision, prior, None)
            scores = batch_of(found.supervision, by_point).scores
            shown = evaluate(terms, scores, get_loss(loss or method.recipe.loss))
            _require(
                set(risk.parts) == set(shown.parts)
                and all(torch.allclose(risk.parts[k], shown.parts[k], rtol=1e-6, atol=1e-6) for k in shown.parts),
                method,
                f"trains another risk than its terms say, in world {sampling!r} with loss {loss!r}.",
            )


def check_correction(method: Method) -> None:
    """Check that a correction never lowers a risk, leaves non-negative parts alone, and does what its name says."""
    for sampling, prior, found, by_point, rng in _cases(method, (0.2, 0.6), 2):
        for _ in range(5):
            few = _some(found, rng, 3)
            for loss in _losses(method):
                for options in _settings(method):
                    risk = _step(method, few, prior, by_point, loss=loss, options=options)
                    total, raw, where = float(risk.total), float(risk.raw), f"in world {sampling!r}, loss {loss!r}"
                    _require(
                        total >= raw - 1e-9, method, f"its correction lowers the risk {raw:g} to {total:g} {where}."
                    )
                    if not risk.negative:
                        _require(
                            abs(total - raw) < 1e-9,
                            method,
                            f"no part is negative, but the risk {raw:g} became {total:g} {where}.",
                        )
                    declared = options.get("correction", getattr(method, "correction", None))
                    if declared in CORRECTIONS and hasattr(method, "terms"):
                        apply = {"none": lambda r: r, "relu": lambda r: max(0.0, r), "abs": abs}[declared]
                        truth = sum(apply(float(part)) for part in risk.parts.values())
                        _require(
                            abs(total - truth) < 1e-9,
                            method,
                            f"correction {declared!r} of the parts gives {truth:g}, the step {total:g} {where}.",
                        )


def check_gradients(
    method: Method, loss: str | None = None, options: Mapping[str, Any] | None = None, *, random_state: int = 0
) -> None:
    """Check the gradients of a step against finite differences in float64: at the start, and after a short training.

    Without ``loss`` and ``options``, all losses and corrections that a user may choose are checked.
    """
    if loss is None and options is None:
        for name in _losses(method):
            for setting in _settings(method):
                _check_gradients(method, name, setting, random_state)
    else:
        _check_gradients(method, loss, options, random_state)


def _check_gradients(method: Method, loss: str | None, options: Mapping[str, Any] | None, random_state: int) -> None:
    rng = np.random.default_rng(random_state)
    for sampling in worlds_of(method):
        for hidden in (False, True):
            urn = DiscreteWorld.random(0.4, random_state=rng)
            few = _some(enumerate_world(urn, method.supervision, sampling), rng, 8)
            features = torch.from_numpy(rng.normal(scale=2.0, size=(urn.n_points, 2)))
            model = build_model(_tanh_net if hidden else "linear", 2, seed=random_state).double()
            trial = _Trial(method.objective(few, 0.4, loss=loss, options=options), few, features, model)
            for stage in ("at the start", "after training"):
                parameters = tuple(model.parameters())
                right = torch.autograd.gradcheck(trial.total, parameters, raise_exception=False, fast_mode=True)
                where = f"in world {sampling!r} with loss {loss!r}, options {dict(options or {})}, {stage}"
                _require(right, method, f"gradients differ from finite differences {where}.")
                trial.train()


def _tanh_net() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))


def check_symmetry(method: Method) -> None:
    """Check that the order of tuples means nothing, free positions may be swapped, and neither class is special."""
    for sampling, prior, found, by_point, rng in _cases(method, (0.2, 0.5, 0.6), 3):
        few = _some(found, rng, 12)
        changed = {
            "another order of the tuples": (
                few.take(rng.permutation(few.n_tuples), rng.permutation(max(1, few.n_unlabeled))),
                prior,
                by_point,
            ),
            "another order inside the tuples": (REORDERED.get(method.supervision, _as_is)(few), prior, by_point),
            "swapping the names of the classes": (
                RENAMED.get(method.supervision, _as_is)(few),
                1.0 - prior,
                -by_point,
            ),
        }
        for loss in _losses(method):
            expected = float(_step(method, few, prior, by_point, loss=loss).total)
            for what, (other, its_prior, its_scores) in changed.items():
                got = float(_step(method, other, its_prior, its_scores, loss=loss).total)
                _require(
                    abs(got - expected) < 1e-6 * (1.0 + abs(expected)),
                    method,
                    f"{what} changes the risk from {expected:.9g} to {got:.9g}, in world {sampling!r}, loss {loss!r}.",
                )


def check_half(method: Method) -> None:
    """Check that prior 1/2 is refused if the record says so, and gives a finite risk otherwise."""
    for sampling in worlds_of(method):
        found = enumerate_world(DiscreteWorld.random(0.5), method.supervision, sampling)
        try:
            method.check(found.supervision, 0.5)
        except InputError as error:
            _require(not method.defined_at_half, method, f"refuses prior 0.5, but claims to work there: {error}")
            continue
        _require(method.defined_at_half, method, "accepts prior 0.5, but its record says it is undefined there.")
        by_point = torch.linspace(-2, 2, found.world.n_points, dtype=torch.float64)
        total = _step(method, found.supervision, 0.5, by_point).total
        _require(bool(torch.isfinite(total)), method, f"its risk at prior 0.5 is {float(total)}.")


def check_supervision_type(method: Method) -> None:
    """Check that another kind, an empty set, and missing unlabeled points are refused, where they are needed."""
    sampling = worlds_of(method)[0]
    urn = DiscreteWorld.random(0.4)
    supervision = enumerate_world(urn, method.supervision, sampling).supervision
    others: list[object] = [law(urn).supervision for (kind, _), law in LAWS.items() if kind is not method.supervision]
    for other in [*others, supervision.rows, None]:
        if isinstance(other, method.supervision):
            continue
        _refuses(method, other, InputTypeError, f"learns from {method.supervision.__name__}")
    _refuses(method, supervision.take(np.empty(0, dtype=np.int64)), InputError, "an empty set of tuples")
    method.check(supervision, 0.4)
    if supervision.n_unlabeled == 0:
        return
    alone = replace(supervision, unlabeled=None)
    if method.needs_unlabeled:
        _refuses(method, alone, InputError, "needs unlabeled points")
        return
    method.check(alone, 0.4)
    for world in worlds_of(method):
        alone = replace(enumerate_world(urn, method.supervision, world).supervision, unlabeled=None)
        try:
            total = _step(method, alone, 0.4, torch.linspace(-2, 2, urn.n_points, dtype=torch.float64)).total
        except InputError:  # needed in this world only, and says so
            continue
        except Exception as error:
            raise AssertionError(
                f"method {method.name!r}: fails without unlabeled points in world {world!r} ({error!r}), "
                "but its record does not say that it needs them."
            ) from error
        _require(bool(torch.isfinite(total)), method, f"its risk without unlabeled points is {float(total)}.")


def _refuses(method: Method, supervision: object, error: type[Exception], why: str) -> None:
    try:
        method.check(supervision, 0.4)
    except error:
        return
    raise AssertionError(f"method {method.name!r}: {why}, but `check` accepts {supervision!r}.")


def check_record(method: Method) -> None:
    """Check that a user can be shown the record: a name, a short summary, a documented formula, a running example."""
    _require(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", method.name) is not None, method, "its name must be kebab-case.")
    _require(0 < len(method.summary) <= 80, method, f"its summary must have 1 to 80 characters: {method.summary!r}.")
    _require(bool(method.formula.strip()), method, "its formula is empty.")
    strangers = set(method.unbiased) - set(method.supervision.worlds or ("",))
    _require(not strangers, method, f"`unbiased` names worlds that its kind does not have: {sorted(strangers)}.")
    refused = set(method.unbiased) - set(method.worlds or ("",))
    _require(not refused, method, f"is unbiased in worlds that it refuses: {sorted(refused)}. Add them to `worlds`.")
    _require(
        method.recipe.loss in (*LOSSES, "built in"), method, f"its recipe has the unknown loss {method.recipe.loss!r}."
    )
    check_recipe(method.recipe)
    doc = method.doc
    _require(".. math::" in doc or method.formula in doc, method, "the docstring of its module has no formula.")
    _require(
        "Differs from the paper" in doc or "reference" in doc,
        method,
        "the docstring of its module must say how it differs from the paper ('Differs from the paper: ...').",
    )
    names = dict(vars(importlib.import_module(method.module)))
    example = doctest.DocTestParser().get_doctest(doc, names, method.name, None, None)
    _require(bool(example.examples), method, "the docstring of its module has no runnable example.")
    output: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    failed = runner.run(example, out=output.append).failed
    _require(failed == 0, method, f"the example in the docstring of its module fails:\n{''.join(output)}")


def check_deterministic(method: Method) -> None:
    """Check that fresh objectives give the same bits, and that training leaves the record as it was."""
    for _, prior, found, by_point, rng in _cases(method, (0.4,), 4):
        few = _some(found, rng, 8)
        before = dict(vars(method))
        first = _step(method, few, prior, by_point)
        features = torch.from_numpy(rng.normal(scale=2.0, size=(found.world.n_points, 2)))
        model = build_model("linear", 2, seed=0).double()
        _Trial(method.objective(few, prior), few, features, model).train()
        again = _step(method, few, prior, by_point)
        _require(torch.equal(first.total, again.total), method, f"gave {first.total!r}, then {again.total!r}.")
        _require(vars(method) == before, method, "training changed its record; keep state in the objective.")


def check_dtypes(method: Method) -> None:
    """Check that float32 scores give a float32 risk, which some devices need, close to the one in float64."""
    for sampling, prior, found, by_point, rng in _cases(method, (0.4,), 5):
        few = _some(found, rng, 16)
        double, single = (_step(method, few, prior, s).total for s in (by_point, by_point.float()))
        _require(single.dtype == torch.float32, method, f"turns float32 scores into a risk of {single.dtype}.")
        _require(double.dtype == torch.float64, method, f"turns float64 scores into a risk of {double.dtype}.")
        gap = abs(float(single) - float(double))
        _require(gap < 1e-4 * (1.0 + abs(float(double))), method, f"float32 is off by {gap:g} in world {sampling!r}.")


CHECKS: tuple[Callable[[Method], None], ...] = (
    check_record,
    check_supervision_type,
    check_half,
    check_unbiased,
    check_mass,
    check_biased,
    check_objective,
    check_correction,
    check_symmetry,
    check_dtypes,
    check_deterministic,
    check_gradients,
)
"""Every check of a method."""


def check_method(method: Method) -> None:
    """Run every check; a method must be registered, because its module's docstring is its documentation.

    Raises
    ------
    AssertionError
        With the first claim that does not hold.
    """
    for check in CHECKS:
        check(method)
