"""Events: statements about the labels of a tuple, each a table of admissible label tuples.

"x shares its class with x' or x''", "both points share their class", "x is at least as positive as x'" are rows of one
table, so probability, class shares, posteriors and moments are computed once, for any event. Labels are 1 (positive)
and 0 (negative) here; ``prior`` is the share of positives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from usimul.mixture import signal_kept
from usimul.validation import InputError, check_count

__all__ = ["EVENTS", "Event", "companions", "event_from_rule", "noisy"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Event:
    """A named set of admissible label tuples.

    Parameters
    ----------
    name
        How the event is called in tables and files.
    admissible
        Tuples of 0 and 1, all of one length, none twice.
    acceptance
        Probability of the observation for each admissible tuple; None means 1. With it, noisy answers and mixtures
        of events are events too.

    Examples
    --------
    >>> triplet = EVENTS["triplet"]
    >>> len(triplet.admissible), triplet.size
    (6, 3)
    >>> round(triplet.probability(0.4), 12)
    0.76
    >>> triplet.marginals(0.4).round(4)
    array([0.3368, 0.4   , 0.4   ])
    """

    name: str
    admissible: tuple[tuple[int, ...], ...]
    acceptance: tuple[float, ...] | None = None
    table: NDArray[np.int64] = field(init=False, repr=False, compare=False)
    accepted: FloatArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.admissible:
            raise InputError(f"event {self.name!r} admits no label tuple, so it can never be observed.")
        widths = {len(labels) for labels in self.admissible}
        if len(widths) != 1 or not set().union(*self.admissible) <= {0, 1}:
            raise InputError(f"event {self.name!r} must list tuples of 0 and 1 of one length. Got {self.admissible!r}.")
        if len(set(self.admissible)) != len(self.admissible):
            raise InputError(f"event {self.name!r} lists a label tuple twice.")
        table = np.array(self.admissible, dtype=np.int64)
        table.setflags(write=False)
        object.__setattr__(self, "table", table)
        accepted = np.ones(len(table)) if self.acceptance is None else np.array(self.acceptance, dtype=np.float64)
        if accepted.shape != (len(table),) or not ((accepted > 0) & (accepted <= 1)).all():
            raise InputError(
                f"`acceptance` of event {self.name!r} must hold {len(table)} probabilities in (0, 1]. "
                f"Got {self.acceptance!r}."
            )
        accepted.setflags(write=False)
        object.__setattr__(self, "accepted", accepted)

    @property
    def size(self) -> int:
        """Number of points in one tuple."""
        return int(self.table.shape[1])

    def weights(self, prior: float) -> FloatArray:
        """Probability of each admissible label tuple and of its being observed, for independent points."""
        n_positive = self.table.sum(axis=1)
        weights: FloatArray = self.accepted * prior**n_positive * (1.0 - prior) ** (self.size - n_positive)
        return weights

    def probability(self, prior: float) -> float:
        """Probability that the event holds for independent points."""
        return float(self.weights(prior).sum())

    def posterior(self, prior: float) -> FloatArray:
        """Probability of each admissible label tuple, given that the event holds."""
        weights = self.weights(prior)
        posterior: FloatArray = weights / weights.sum()
        return posterior

    def marginals(self, prior: float) -> FloatArray:
        """Share of positives at each position, given that the event holds."""
        shares: FloatArray = self.posterior(prior) @ self.table
        return shares

    def given(self, probabilities: ArrayLike) -> FloatArray:
        """Probability of the event when position i of tuple n is positive with probability ``[n, i]``."""
        total: FloatArray = self._tuple_probabilities(probabilities).sum(axis=-1)
        return total

    def member_posterior(self, probabilities: ArrayLike) -> FloatArray:
        """Probability that each member is positive given the event, for independent members, ``(n, size)``."""
        by_tuple = self._tuple_probabilities(probabilities)
        total = by_tuple.sum(axis=-1, keepdims=True)
        if np.any(total <= 0):
            raise InputError(f"event {self.name!r} is impossible under the given probabilities.")
        posterior: FloatArray = by_tuple / total @ self.table
        return posterior

    def _tuple_probabilities(self, probabilities: ArrayLike) -> FloatArray:
        positive = np.asarray(probabilities, dtype=np.float64)
        if positive.shape[-1:] != (self.size,):
            raise InputError(
                f"event {self.name!r} needs {self.size} probabilities a tuple. Got shape {positive.shape}."
            )
        chosen = np.where(self.table == 1, positive[..., None, :], 1.0 - positive[..., None, :])
        result: FloatArray = self.accepted * chosen.prod(axis=-1)
        return result

    def pair_counts(self) -> dict[tuple[int, int, int], float]:
        """Count ordered pairs of admissible tuples that agree on 1 in i places, agree on 0 in j, and differ in k.

        With ``m2 = E[h^2]``, ``n2 = E[(1-h)^2]``, ``c = E[h (1-h)]`` over points, the second moment of the event's
        probability over *all* tuples of independent points is ``sum of count * m2^i n2^j c^k``: no tuple is formed.
        Pairs count with the product of their acceptance probabilities.
        """
        counts: dict[tuple[int, int, int], float] = {}
        accepted = zip(self.admissible, self.accepted.tolist(), strict=True)
        for (first, weight), (second, other) in product(list(accepted), repeat=2):
            both = sum(a & b for a, b in zip(first, second, strict=True))
            none = sum((1 - a) & (1 - b) for a, b in zip(first, second, strict=True))
            key = (both, none, self.size - both - none)
            counts[key] = counts.get(key, 0.0) + weight * other
        return counts

    def moments(self, h: ArrayLike) -> tuple[float, float]:
        """Mean and second moment of the event's probability over all tuples of points with outputs ``h``."""
        values = np.asarray(h, dtype=np.float64)
        mean = float(values.mean())
        m2, n2, c = (float(np.mean(v)) for v in (values**2, (1.0 - values) ** 2, values * (1.0 - values)))
        second = sum(count * m2**i * n2**j * c**k for (i, j, k), count in self.pair_counts().items())
        return self.probability(mean), second


def event_from_rule(name: str, size: int, rule: Callable[[tuple[int, ...]], bool]) -> Event:
    """Build an event from a rule on label tuples.

    >>> event_from_rule("all-equal", 3, lambda y: len(set(y)) == 1).admissible
    ((0, 0, 0), (1, 1, 1))
    """
    return Event(name, tuple(labels for labels in product((0, 1), repeat=size) if rule(labels)))


def noisy(event: Event, wrong_yes: float, prior: float) -> Event:
    r"""Event "the answer was yes", when the statement does not hold for a share r = ``wrong_yes`` of those answers.

    A label tuple y that is observed under the event with probability a(y) among right answers, is now observed with
    a probability in proportion to

    .. math:: \frac{1-r}{Z} a(y) + \frac{r}{1-Z} (1 - a(y)),

    so that the observed tuples follow :math:`(1-r) P(y \mid Y) + r P(y \mid \bar Y)`. The scale is free and such that
    an answer to a statement that surely holds is always yes; the event's probability becomes Z/(1-r). Everything that
    an `Event` computes then holds for noisy answers. Given the labels, errors do not depend on the points.

    Examples
    --------
    >>> heard = noisy(EVENTS["triplet"], 0.1, 0.4)
    >>> len(heard.admissible), round(heard.probability(0.4), 4)
    (8, 0.8444)
    >>> right = sum(w for y, w in zip(heard.admissible, heard.posterior(0.4)) if y in EVENTS["triplet"].admissible)
    >>> round(float(right), 12)
    0.9
    >>> heard.marginals(0.4).round(4)  # the companions still follow the unlabeled law
    array([0.3632, 0.4   , 0.4   ])
    """
    holds = event.probability(prior)
    if signal_kept(wrong_yes, holds) == 1.0:
        return event
    ratio = wrong_yes * holds / ((1.0 - wrong_yes) * (1.0 - holds))  # P(yes | not Y) if P(yes | Y) = 1
    among_right = dict(zip(event.admissible, event.accepted.tolist(), strict=True))
    tuples = tuple(product((0, 1), repeat=event.size))
    accepted = [among_right.get(labels, 0.0) for labels in tuples]
    return Event(f"noisy-{event.name}", tuples, tuple(a + ratio * (1.0 - a) for a in accepted))


def companions(k: int) -> Event:
    """``x`` shares its class with at least one of k companions; k = 2 is the triplet, k = 1 the similar pair."""
    k = check_count(k, "k")
    return event_from_rule(f"one-of-{k}-companions", k + 1, lambda y: y[0] in y[1:])


def _shuffled_pair() -> Event:
    """Return "a similar pair and one more point, other slots shuffled": y = y' counts half, and so does y = y''."""
    tuples = tuple(y for y in product((0, 1), repeat=3) if y[0] in y[1:])
    return Event("shuffled-pair", tuples, tuple(0.5 * (y[0] == y[1]) + 0.5 * (y[0] == y[2]) for y in tuples))


EVENTS: dict[str, Event] = {
    event.name: event
    for event in (
        event_from_rule("triplet", 3, lambda y: y[0] in y[1:]),
        _shuffled_pair(),
        event_from_rule("similar-pair", 2, lambda y: y[0] == y[1]),
        event_from_rule("dissimilar-pair", 2, lambda y: y[0] != y[1]),
        event_from_rule("compared-pair", 2, lambda y: y[0] >= y[1]),
    )
}
"""The events of the supervision kinds, by name."""
