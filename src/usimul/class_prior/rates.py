r"""The prior from a counted share of answers, up to p <-> 1 - p.

Every event that does not change when the classes swap names has a probability that is linear in p q: 1 - p q for
uncertain-similarity triplets and compared pairs, 1 - 2 p q for similar pairs, 2 p q for dissimilar ones
(`usimul.events`). From the product follow two priors,

.. math:: p = \tfrac12 \bigl(1 \pm \sqrt{1 - 4 p q}\bigr), \qquad\text{for triplets}\quad
          p = \tfrac12 \bigl(1 \pm \sqrt{4 Z - 3}\bigr).

The interval of the share, mapped by the same formula, is that of each root.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from usimul.class_prior.result import Interval, PriorEstimate
from usimul.events import EVENTS, Event
from usimul.intervals import wilson_interval
from usimul.supervision import (
    ComparedPairs,
    DissimilarPairs,
    PairAnswers,
    SimilarPairs,
    Supervision,
    TripletAnswers,
    Triplets,
)
from usimul.validation import InputError

__all__ = ["ASSUMPTIONS", "Rate", "counted_rate", "from_rate", "product_of_rate", "root_of_product"]

FloatArray = NDArray[np.float64]

ASSUMPTIONS = (
    "all tuples that were asked about are counted, whatever the answer was",
    "the points of a tuple are independent draws from the population whose prior is wanted",
    "the answers are right; a share of wrong ones moves the prior",
)

KEPT: dict[type[Supervision], str] = {
    Triplets: "triplet",
    SimilarPairs: "similar-pair",
    DissimilarPairs: "dissimilar-pair",
    ComparedPairs: "compared-pair",
}
"""Kinds that hold what was kept; the count of what was asked stands beside."""

ANSWERED: dict[type[Supervision], tuple[str, str]] = {
    PairAnswers: ("similar-pair", "share of similar pairs"),
    # "at least as close" holds unless the second differs from the first and the third does not
    TripletAnswers: ("triplet", "share of yes answers"),
}
"""Kinds that hold every answer."""


@dataclass(frozen=True)
class Rate:
    """How many of the tuples asked about the event held for."""

    what: str
    hits: int
    n: int
    event: Event

    def log_likelihood(self, priors: FloatArray, hits: NDArray[Any] | None = None) -> FloatArray:
        """Binomial log likelihood at each prior, up to a constant; of other counts along a leading axis."""
        share = np.array([self.event.probability(float(p)) for p in priors])
        k = np.asarray(self.hits if hits is None else hits, dtype=np.float64)[..., None]
        found: FloatArray = k * np.log(share) + (self.n - k) * np.log1p(-np.minimum(share, 1 - 1e-15))
        return found


def counted_rate(supervision: Supervision) -> Rate | None:
    """Return the share that can be counted, or None: no counts, or a world in which nothing was asked."""
    kind = type(supervision)
    if kind in ANSWERED:
        if supervision.values is None or supervision.n_tuples == 0:
            return None
        event, what = ANSWERED[kind]
        return Rate(what, int((supervision.values > 0).sum()), supervision.n_tuples, EVENTS[event])
    asked, accepted = supervision.n_asked, supervision.n_accepted
    if kind not in KEPT or not asked or accepted is None or supervision.world not in (None, "definition1"):
        return None
    return Rate("accepted share of the tuples asked about", accepted, asked, EVENTS[KEPT[kind]])


def product_of_rate(event: Event, rate: float) -> float:
    """Return the p q at which the event has this probability; it may lie outside [0, 1/4].

    >>> round(product_of_rate(EVENTS["triplet"], 0.76), 12)
    0.24
    """
    at_zero = event.probability(0.0)
    return (rate - at_zero) / (4.0 * (event.probability(0.5) - at_zero))


def root_of_product(product: float) -> float:
    """Return the smaller p with p (1 - p) equal to ``product``; beyond [0, 1/4] the nearest, 0 or 1/2.

    >>> round(root_of_product(0.24), 12)
    0.4
    """
    return 0.5 * (1.0 - math.sqrt(min(1.0, max(0.0, 1.0 - 4.0 * product))))


def from_rate(rate: Rate, side: str | None, level: float) -> PriorEstimate:
    """Estimate the prior from a counted share; refuse a share that no prior gives."""
    event, share = rate.event, rate.hits / rate.n
    wilson = wilson_interval(rate.hits, rate.n, level=level)
    ends = (wilson.low, wilson.high)
    low, high = sorted(root_of_product(product_of_rate(event, end)) for end in ends)
    bound = event.probability(0.5)
    if min(product_of_rate(event, end) for end in ends) > 0.25:
        word = "less" if event.probability(0.0) > bound else "more"
        raise InputError(
            f"no prior gives this {rate.what}: {rate.hits:,} of {rate.n:,}, {share:.4f} "
            f"({100 * level:g} % interval {ends[0]:.4f} to {ends[1]:.4f}), and at prior 1/2, where it is nearest, it "
            f"is {bound:g}. It cannot be {word} than that if the points of a tuple are independent and the answers "
            "right. Check that only answers of this question are counted, that every answer was counted once, and that "
            "tuples were drawn at random."
        )
    root = root_of_product(product_of_rate(event, share))
    roots, intervals = mirrored(root, (low, high))
    value, interval = chosen(roots, intervals, side)
    notes = []
    if product_of_rate(event, share) > 0.25:
        notes.append(f"the share {share:.4f} lies beyond {bound:g}, that of prior 1/2, by chance; 1/2 was taken")
    if high > 0.5 - 1e-9:
        notes.append(
            f"the interval of the share, {ends[0]:.4f} to {ends[1]:.4f}, crosses {bound:g}, which belongs to prior "
            "1/2, so the intervals of both roots meet there"
        )
    if root == 0.0:
        notes.append("every answer was the same, so only an end of the interval says something")
    return PriorEstimate(
        value=value,
        interval=interval,
        level=level,
        method="acceptance",
        roots=roots,
        root_intervals=intervals,
        side=side,
        assumptions=ASSUMPTIONS,
        notes=tuple(notes),
        details=(("answers", float(rate.n)), ("share", share)),
    )


def mirrored(root: float, interval: Interval) -> tuple[tuple[float, float], tuple[Interval, Interval]]:
    """Both roots and their intervals, from those of the smaller."""
    return (root, 1.0 - root), (interval, (1.0 - interval[1], 1.0 - interval[0]))


def chosen(
    roots: tuple[float, float], intervals: tuple[Interval, Interval], side: str | None
) -> tuple[float | None, Interval | None]:
    """Return the root and the interval of a side, None and None without one."""
    if side is None:
        return None, None
    place = 0 if side == "minority" else 1
    return roots[place], intervals[place]
