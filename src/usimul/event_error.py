r"""The error rate and its interval without labels, from the likelihood of what a classifier says inside tuples.

With t = P(predicted positive | y = +1) and f = P(predicted positive | y = -1), points independent given their labels
and the prior p known, the probability of every combination of predictions inside a tuple follows from the event that
the tuple was observed under:

.. math:: P(s \mid Y) = \sum_{y} P(y \mid Y) \prod_i P(s_i \mid y_i),

and an unlabeled point is predicted positive with probability p t + q f. Two parameters, so the likelihood of all counts
is known in full. The interval holds every error rate p (1 - t) + q f that the likelihood ratio does not refuse (Wilks
1938). It uses all that tuples tell, not only products of two predictions, and no normal law of the estimate, which near
an error of 0 has none. `benchmarks/results/coverage.md` compares it on real data with the normal interval of
`usimul.weak_risk.second_moment_risk`, which is longer and covers slightly more often.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from usimul.events import EVENTS, Event
from usimul.supervision import ComparedPairs, DissimilarPairs, SimilarPairs, Supervision, Triplets
from usimul.validation import InputError, check_fraction, check_prior

__all__ = ["ErrorEstimate", "event_error", "event_error_of_counts", "observed_event", "pattern_counts"]

FloatArray = NDArray[np.float64]

PLACES, ZOOMS = 21, 4  # places looked at in one dimension, and how often their neighbourhood is looked at again


@dataclass(frozen=True)
class ErrorEstimate:
    """An error rate estimated without labels, with an interval.

    Like every label-free estimate it holds for points like those of the tuples, drawn at the stated prior: of points
    that were trained on it is too low.
    """

    value: float
    low: float
    high: float
    level: float
    n_tuples: int
    kind: str = "likelihood"
    standard_error: float | None = None

    @property
    def says_nothing(self) -> bool:
        """Whether the interval holds every error rate."""
        return self.low <= 0.0 and self.high >= 1.0

    def __str__(self) -> str:
        return f"{self.value:.4f}, {self.level:.0%} interval {self.low:.4f} to {self.high:.4f} ({self.kind})"


def observed_event(supervision: Supervision) -> Event | None:
    """Return the event that the tuples were observed under; None for kinds that are no single event.

    >>> observed_event(SimilarPairs([[0, 1]])).name
    'similar-pair'
    """
    if isinstance(supervision, Triplets):
        name = {"definition1": "triplet", "pair_plus_unlabeled": "shuffled-pair"}.get(
            supervision.world or "definition1"
        )
    else:
        kinds = {SimilarPairs: "similar-pair", DissimilarPairs: "dissimilar-pair", ComparedPairs: "compared-pair"}
        name = kinds.get(type(supervision))
    return None if name is None else EVENTS[name]


def pattern_counts(scores: ArrayLike, event: Event) -> NDArray[np.int64]:
    """Count the combinations of predictions inside tuples; the first point is the highest binary digit.

    >>> pattern_counts([[1.0, -1.0], [2.0, 3.0]], EVENTS["similar-pair"])
    array([0, 0, 1, 1])
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != event.size or len(values) < 2:
        raise InputError(f"scores of tuples must have shape (n, {event.size}) with n >= 2. Got {values.shape}.")
    if np.isnan(values).any():
        raise InputError(f"scores must be numbers. Got {np.isnan(values).sum()} NaN among {values.size} scores.")
    powers = 1 << np.arange(event.size)[::-1]
    return np.bincount((values >= 0) @ powers, minlength=1 << event.size)


def event_error(
    scores: ArrayLike, unlabeled: ArrayLike | None, prior: float, event: Event, *, level: float = 0.95
) -> ErrorEstimate:
    """Estimate the error rate, with an interval, from scores of tuples and of unlabeled points.

    Parameters
    ----------
    scores
        Scores of tuples, ``(n, event.size)``.
    unlabeled
        Scores of unlabeled points, or None.
    prior
        Share of positives among the points that tuples and unlabeled points were drawn from.
    event
        What was observed of each tuple, see `observed_event`.
    level
        Probability that the interval covers the error rate, if the model holds.

    Notes
    -----
    Only classifiers on the better side of chance are considered, t >= f: products inside tuples cannot tell a
    classifier from its opposite. Tuples count as independent; the same few points in many tuples make the interval too
    short as a statement on new points.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.where(rng.random((4000, 3)) < 0.4, 1, -1)
    >>> y = y[(y[:, 0] == y[:, 1]) | (y[:, 0] == y[:, 2])]
    >>> said = np.where(rng.random(y.shape) < 0.1, -y, y)  # one in ten is wrong
    >>> found = event_error(said, None, 0.4, EVENTS["triplet"])
    >>> found.low < 0.1 < found.high
    True
    """
    counts = pattern_counts(scores, event)
    plain = np.zeros(0) if unlabeled is None else np.asarray(unlabeled, dtype=np.float64).ravel()
    if np.isnan(plain).any():
        raise InputError(f"scores must be numbers. Got {np.isnan(plain).sum()} NaN among unlabeled points.")
    n_positive = int((plain >= 0).sum())
    return event_error_of_counts(counts, (plain.size - n_positive, n_positive), prior, event, level=level)


def event_error_of_counts(
    patterns: ArrayLike, unlabeled: tuple[int, int], prior: float, event: Event, *, level: float = 0.95
) -> ErrorEstimate:
    """Estimate as `event_error` does from `pattern_counts` and the numbers of unlabeled points (negative, positive)."""
    p, level = check_prior(prior), check_fraction(level, "level")
    counts = np.asarray(patterns, dtype=np.float64)
    profile = _Profile(counts, unlabeled, p, event)
    highest = max(p, 1.0 - p)
    value, best = _maximum(profile, 0.0, highest)
    cut = best - 0.5 * NormalDist().inv_cdf(0.5 + 0.5 * level) ** 2
    low, high = _edge(profile, value, 0.0, cut), _edge(profile, value, highest, cut)
    return ErrorEstimate(value, low, high, level, int(counts.sum()))


class _Profile:
    """Log likelihood of an error rate, at the best t and f that give it."""

    def __init__(self, counts: FloatArray, unlabeled: tuple[int, int], prior: float, event: Event) -> None:
        self.p, self.q = prior, 1.0 - prior
        self.weights = event.posterior(prior)
        self.table = event.table
        self.seen = np.flatnonzero(counts)
        self.counts = counts[self.seen]
        self.unlabeled = unlabeled

    def __call__(self, errors: FloatArray) -> FloatArray:
        p, q = self.p, self.q
        # On the line p (1 - t) + q f = error: 0 <= f <= 1 and t >= f bound t.
        low = np.maximum(0.0, 1.0 - errors / p)
        high = np.minimum(1.0, 1.0 + (q - errors) / p)
        if q > p:
            low = np.maximum(low, (errors - p) / (q - p))
        elif q < p:
            high = np.minimum(high, (p - errors) / (p - q))
        high = np.maximum(low, high)
        first, last = low, high
        places = np.linspace(0.0, 1.0, PLACES)
        best = np.full(errors.shape, -np.inf)
        for _ in range(ZOOMS):
            t = low[:, None] + (high - low)[:, None] * places
            f = np.clip((errors[:, None] - p + p * t) / q, 0.0, 1.0)
            found = self.log_likelihood(t, f)
            at = found.argmax(axis=1)
            row = np.arange(len(errors))
            best = np.maximum(best, found[row, at])
            step = (high - low) / (PLACES - 1)
            low, high = np.maximum(first, t[row, at] - step), np.minimum(last, t[row, at] + step)
        return best

    def log_likelihood(self, t: FloatArray, f: FloatArray) -> FloatArray:
        said = {1: np.stack([1.0 - t, t]), 0: np.stack([1.0 - f, f])}  # by label, then prediction
        total: FloatArray = np.zeros((len(self.seen), *t.shape))
        for labels, weight in zip(self.table.tolist(), self.weights, strict=True):
            for place, pattern in enumerate(self.seen.tolist()):
                product = weight
                for position, label in enumerate(labels):
                    product = product * said[label][pattern >> (len(labels) - 1 - position) & 1]
                total[place] += product
        share = np.clip(self.p * t + self.q * f, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            found: FloatArray = np.tensordot(self.counts, np.log(total), axes=1)
            for n, chance in zip(self.unlabeled, (1.0 - share, share), strict=True):
                if n:
                    found = found + n * np.log(chance)
        return found


def _maximum(profile: _Profile, low: float, high: float) -> tuple[float, float]:
    first, last = low, high
    value, best = low, -np.inf
    for _ in range(ZOOMS):
        places = np.linspace(low, high, PLACES)
        found = profile(places)
        at = int(found.argmax())
        if found[at] > best:
            value, best = float(places[at]), float(found[at])
        step = (high - low) / (PLACES - 1)
        low, high = max(first, value - step), min(last, value + step)
    return value, best


def _edge(profile: _Profile, inside: float, end: float, cut: float) -> float:
    """Last place between ``inside`` and ``end`` whose likelihood reaches the cut; what lies between counts as well."""
    for _ in range(ZOOMS):
        places = np.linspace(inside, end, PLACES)
        kept = np.flatnonzero(profile(places) >= cut)
        last = int(kept[-1]) if kept.size else 0
        if last == PLACES - 1:
            return end
        inside, end = float(places[last]), float(places[last + 1])
    return inside if abs(inside) < 1e-9 else end  # on the outer side
