r"""Probabilities from scores: one temperature, found without labels or with them, and how well they hold on labels.

A temperature T > 0 turns a score f into the probability ``sigmoid(f / T)``. It moves no score across 0, so no
prediction changes; and it cannot mend scores that are shifted or not monotone (Guo, Pleiss, Sun, Weinberger 2017, for
labels).

Without labels, T is the one under which the tuples are most likely: with :math:`h = \sigma(f/T)`, g(t) the probability
of the observed event given the h of its points, and :math:`Z_T` its probability for independent points of mean output
:math:`\bar h`,

.. math:: \hat T = \arg\min_T \; -\mathrm{mean}_t \log g_T(t) + \log Z_T.

Where the posterior is ``sigmoid(f / T)`` for some T, that T is the minimum in the population (Gibbs' inequality: g/Z is
the density of tuples relative to independent points). Ours; the likelihood is that of method ``joint-likelihood``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from usimul.events import Event
from usimul.intervals import Estimate, mean_interval, wilson_interval
from usimul.validation import InputError, UsimulError, check_count

__all__ = [
    "Bin",
    "Calibration",
    "CalibrationErrorEstimate",
    "NoTemperatureError",
    "calibration_error",
    "losses_of_probabilities",
    "probabilities",
    "reliability",
    "temperature_from_labels",
    "temperature_from_tuples",
]

FloatArray = NDArray[np.float64]

LOWEST, HIGHEST = 1.0 / 100.0, 100.0  # temperatures that are looked at
FEWEST = 20  # tuples or labels from which on one number can be found
RESAMPLES = 400


class NoTemperatureError(UsimulError, ArithmeticError):
    """The data do not determine a temperature."""


@dataclass(frozen=True)
class Calibration:
    """How scores become probabilities: ``sigmoid(score / temperature)``, and what the temperature comes from.

    Parameters
    ----------
    kind
        ``"none"``: the scores as they were trained, temperature 1. ``"label-free"``: from tuples. ``"labels"``.
    temperature
        Above 1 makes probabilities less sure.
    n
        Tuples or labels that it was found from.
    """

    kind: str = "none"
    temperature: float = 1.0
    n: int = 0

    KINDS: ClassVar[tuple[str, ...]] = ("none", "label-free", "labels")

    def explain(self) -> str:
        """Words for tables and cards.

        >>> Calibration("label-free", 2.5, 1000).explain()
        'calibrated without labels: temperature 2.5, from 1,000 tuples'
        """
        if self.kind == "none":
            return "not calibrated: sigmoid of the score, temperature 1"
        source = {"label-free": "without labels", "labels": "on labels"}[self.kind]
        return f"calibrated {source}: temperature {self.temperature:.3g}, from {self.n:,} " + (
            "tuples" if self.kind == "label-free" else "labels"
        )


def probabilities(scores: ArrayLike, temperature: float = 1.0) -> FloatArray:
    """``sigmoid(score / temperature)``, without overflow."""
    found: FloatArray = 1.0 / (1.0 + np.exp(-np.clip(np.asarray(scores, dtype=np.float64) / temperature, -700, 700)))
    return found


def _log_sigmoid(values: FloatArray) -> FloatArray:
    return -np.logaddexp(0.0, -values)


def temperature_from_tuples(scores: ArrayLike, plain: ArrayLike, event: Event) -> Calibration:
    """Find the temperature under which the observed tuples are most likely.

    Parameters
    ----------
    scores
        Scores of the tuples' points, ``(n, event.size)``.
    plain
        Scores of points that follow the law of all points: unlabeled ones, and companions where they follow it.
    event
        What was observed of each tuple.

    Raises
    ------
    NoTemperatureError
        If no temperature between 1/100 and 100 is best: the scores separate the tuples perfectly, or not at all.
    """
    tuples, points = np.asarray(scores, dtype=np.float64), np.asarray(plain, dtype=np.float64).ravel()
    if tuples.ndim != 2 or tuples.shape[1] != event.size:
        raise InputError(f"scores of tuples must have shape (n, {event.size}). Got {tuples.shape}.")
    if len(tuples) < FEWEST or points.size < FEWEST:
        raise InputError(
            f"a temperature needs at least {FEWEST} tuples and {FEWEST} unlabeled points. "
            f"Got {len(tuples)} and {points.size}. Ask for more."
        )
    table, log_accepted = event.table == 1, np.log(event.accepted)

    def risk(temperature: float) -> float:
        yes, no = _log_sigmoid(tuples / temperature), _log_sigmoid(-tuples / temperature)
        by_labels = np.where(table, yes[:, None, :], no[:, None, :]).sum(axis=2) + log_accepted
        log_g = np.logaddexp.reduce(by_labels, axis=1)
        normaliser = event.probability(float(probabilities(points, temperature).mean()))
        return -float(log_g.mean()) + math.log(normaliser)

    return Calibration("label-free", _least(risk, "tuples"), len(tuples))


def temperature_from_labels(scores: ArrayLike, positive: ArrayLike) -> Calibration:
    """Find the temperature of least log loss on labels; ``positive`` says of each point whether it is."""
    values, sign = np.asarray(scores, dtype=np.float64).ravel(), np.where(np.asarray(positive, dtype=bool), 1.0, -1.0)
    if values.shape != sign.shape:
        raise InputError(f"there must be one label for each score. Got {sign.shape} labels, {values.shape} scores.")
    if values.size < FEWEST:
        raise InputError(f"a temperature needs at least {FEWEST} labels. Got {values.size}.")
    risk = _least(lambda t: -float(_log_sigmoid(sign * values / t).mean()), "labels")
    return Calibration("labels", risk, values.size)


def _least(risk: Callable[[float], float], what: str) -> float:
    """Return the best temperature: a grid of logarithms, and golden sections around its best place."""
    grid = np.linspace(math.log(LOWEST), math.log(HIGHEST), 41)
    values = [risk(math.exp(x)) for x in grid]
    at = int(np.argmin(values))
    if at in (0, len(grid) - 1) or max(values) - values[at] < 1e-12:
        side = (
            "no temperature differs from another"
            if max(values) - values[at] < 1e-12
            else (f"the best is {'at most' if at == 0 else 'at least'} {math.exp(grid[at]):g}")
        )
        raise NoTemperatureError(
            f"these {what} determine no temperature: {side}. That happens if the classifier is right on all of them "
            "(ask for more, over new points), if its scores carry no information, or if the classes are swapped."
        )
    ratio = 0.5 * (math.sqrt(5.0) - 1.0)
    low, high = float(grid[at - 1]), float(grid[at + 1])
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = risk(math.exp(left)), risk(math.exp(right))
    for _ in range(22):  # to 1e-5 of the logarithm
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = risk(math.exp(left))
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = risk(math.exp(right))
    return math.exp(0.5 * (low + high))


# --- how well probabilities hold, on labels -----------------------------------------------------------------------


@dataclass(frozen=True)
class Bin:
    """Points of similar predicted probability: how many, what was predicted on average, and what was so."""

    n: int
    predicted: float
    observed: Estimate


def reliability(predicted: ArrayLike, positive: ArrayLike, *, n_bins: int = 10) -> list[Bin]:
    """Sort points by predicted probability into bins of equal size, and count the positives in each.

    At least twenty points go into a bin; equal probabilities stay together.

    >>> [(b.n, round(b.observed.value, 2)) for b in reliability([0.1] * 30 + [0.9] * 30, [0] * 30 + [1] * 30)]
    [(30, 0.0), (30, 1.0)]
    """
    p, y = np.asarray(predicted, dtype=np.float64), np.asarray(positive, dtype=bool)
    found = []
    for part in _bins(p, check_count(n_bins, "n_bins")):
        found.append(Bin(len(part), float(p[part].mean()), wilson_interval(int(y[part].sum()), len(part))))
    return found


def _bins(p: FloatArray, n_bins: int) -> list[NDArray[np.intp]]:
    order = np.argsort(p, kind="stable")
    wanted = max(1, min(n_bins, len(p) // 20))
    ordered = p[order]
    cuts = {int(np.searchsorted(ordered, ordered[round(i * len(p) / wanted)])) for i in range(1, wanted)}
    return [part for part in np.split(order, sorted(cuts - {0})) if len(part)]


@dataclass(frozen=True)
class CalibrationErrorEstimate:
    """Expected calibration error: its value, interval, and what perfect probabilities would show on so few points."""

    error: Estimate
    by_chance: float


def calibration_error(
    predicted: ArrayLike, positive: ArrayLike, *, n_bins: int = 10, random_state: int = 0
) -> CalibrationErrorEstimate:
    """Mean distance between predicted and observed shares over the bins of `reliability`, weighted by their size.

    The interval is a bootstrap over points within bins. Few points show some error even if every probability is right;
    how much is simulated, and stated beside it.
    """
    p, y = np.asarray(predicted, dtype=np.float64), np.asarray(positive, dtype=bool)
    parts = _bins(p, n_bins)
    rng = np.random.default_rng(random_state)
    n = len(p)
    expected = np.array([p[part].mean() for part in parts])
    sizes = np.array([len(part) for part in parts])
    shares = np.array([y[part].mean() for part in parts])
    value = float((sizes * np.abs(shares - expected)).sum() / n)
    resampled = rng.binomial(sizes, shares, size=(RESAMPLES, len(parts))) / sizes
    # Labels drawn anew around the observed shares: distances grow by noise twice, so it is reflected (basic bootstrap).
    errors = (sizes * np.abs(resampled - expected)).sum(axis=1) / n
    low, high = np.quantile(errors, [0.025, 0.975])
    spread = np.array([math.sqrt(float((p[part] * (1.0 - p[part])).sum())) / len(part) for part in parts])
    perfect = rng.normal(expected, spread, size=(RESAMPLES, len(parts)))
    by_chance = float((sizes * np.abs(perfect - expected)).sum(axis=1).mean() / n)
    low, high = max(0.0, 2.0 * value - float(high)), max(0.0, 2.0 * value - float(low))
    return CalibrationErrorEstimate(Estimate(value, min(low, value), max(high, value), n), by_chance)


def losses_of_probabilities(predicted: ArrayLike, positive: ArrayLike) -> tuple[Estimate, Estimate]:
    """Brier score and log loss of probabilities on labels, with intervals.

    >>> brier, log = losses_of_probabilities([0.9, 0.2], [1, 0])
    >>> round(brier.value, 3), round(log.value, 3)
    (0.025, 0.164)
    """
    p, y = np.asarray(predicted, dtype=np.float64), np.asarray(positive, dtype=bool)
    kept = np.clip(np.where(y, p, 1.0 - p), 1e-15, 1.0)
    return mean_interval((p - y) ** 2), mean_interval(-np.log(kept))
