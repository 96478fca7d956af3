"""What each source says about the prior as a log likelihood over one grid, so that sources add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from usimul.class_prior.latent import Counts, Profile, interpolated_peak, profile, redrawn
from usimul.class_prior.rates import Rate
from usimul.class_prior.result import Interval
from usimul.events import Event
from usimul.validation import IntArray

__all__ = ["GRID", "LabelCurve", "RateCurve", "Source", "TupleCurve", "bootstrap_peaks", "peak", "profile_interval"]

FloatArray = NDArray[np.float64]

GRID = np.arange(1, 101) / 200
"""Priors of the rarer class: steps of 1/200 up to 1/2."""

DEEP = 12.0  # log likelihood below the maximum where no bootstrap draw will have its own
INFORMED = 0.999  # bins that fit no better than one law for both classes, by this quantile, say nothing
COARSE = 24  # places of the grid that draws are judged at


class Source(Protocol):
    """A log likelihood over the places ``GRID`` (or, for labels, over any priors), and bootstrap draws of it."""

    def heights(self, priors: FloatArray) -> FloatArray:
        """Log likelihood at each prior."""

    def draws(self, priors: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Log likelihoods of ``n`` bootstrap draws, ``(n, len(priors))``."""


class RateCurve:
    """A counted share of answers; the same at p and 1 - p."""

    def __init__(self, rate: Rate) -> None:
        self.rate = rate

    def heights(self, priors: FloatArray) -> FloatArray:
        """Binomial log likelihood."""
        return self.rate.log_likelihood(priors)

    def draws(self, priors: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Of counts drawn anew with the observed share."""
        hits = rng.binomial(self.rate.n, self.rate.hits / self.rate.n, size=n)
        return self.rate.log_likelihood(priors, hits)


class LabelCurve:
    """Labels of points drawn at random; not the same at p and 1 - p."""

    def __init__(self, positive: int, n: int) -> None:
        self.positive = positive
        self.n = n

    def heights(self, priors: FloatArray) -> FloatArray:
        """Binomial log likelihood."""
        return self._heights(np.asarray(self.positive), priors)

    def draws(self, priors: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Of counts drawn anew with the observed share, drawn a little towards 1/2 as few labels ask for."""
        share = (self.positive + 0.5) / (self.n + 1.0)
        return self._heights(rng.binomial(self.n, share, size=n), priors)

    def _heights(self, positive: NDArray[np.int64], priors: FloatArray) -> FloatArray:
        k = positive[..., None].astype(np.float64)
        found: FloatArray = k * np.log(priors) + (self.n - k) * np.log1p(-priors)
        return found


@dataclass
class TupleCurve:
    """Counts of bins, by the latent-class model; the same at p and 1 - p."""

    counts: Counts
    event: Event

    def __post_init__(self) -> None:
        self.fitted: Profile = profile(self.counts, self.event, GRID)
        self.informative = self._gain() > float(chi2.ppf(INFORMED, self.counts.n_bins))

    def _gain(self) -> float:
        """Twice the log likelihood above that of one law for both classes, which fits every prior alike."""
        cells, points = self.counts.tuples, self.counts.points
        by_place = np.stack([cells.sum(axis=axes) for axes in ((1, 2), (0, 2), (0, 1))])
        seen = by_place.sum(axis=0) + points
        alike = float((seen * np.log(np.maximum(seen / seen.sum(), 1e-300))).sum())
        return 2.0 * (float(self.fitted.log_likelihood.max()) - alike)

    def heights(self, priors: FloatArray) -> FloatArray:
        """Profile log likelihood, at priors of the grid or mirrored ones."""
        return self.fitted.log_likelihood[_place(priors)] * self.informative

    def laws(self, prior: float) -> FloatArray:
        """Laws of the bins of the rarer class and of the other, fitted at the place of the grid nearest to a prior."""
        theta = self.fitted.theta[int(_place(np.array([prior]))[0])]
        laws: FloatArray = theta / theta.sum(axis=-1, keepdims=True)
        return laws

    def draws(self, priors: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Of tuples and points drawn anew."""
        if not self.informative:
            return np.zeros((n, len(priors)))
        cells, plain = self.counts.tuples, self.counts.points
        places = _place(priors)
        part = Profile(GRID[places], self.fitted.log_likelihood[places], self.fitted.theta[places])
        return redrawn(part, self.event, _multinomial(cells.ravel(), n, rng), _multinomial(plain, n, rng))


def _place(priors: FloatArray) -> IntArray:
    found: IntArray = np.rint(np.minimum(priors, 1.0 - priors) * 200).astype(np.int64) - 1
    return found


def _multinomial(counts: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    total = counts.sum()
    if total == 0:
        return np.zeros((n, counts.size))
    found: FloatArray = rng.multinomial(int(total), counts / total, size=n).astype(np.float64)
    return found


def peak(priors: FloatArray, heights: FloatArray) -> float:
    """Where the likelihood is largest, between places of the grid too."""
    return float(interpolated_peak(priors, heights))


def bootstrap_peaks(
    sources: list[Source], priors: FloatArray, heights: FloatArray, n: int, rng: np.random.Generator
) -> FloatArray:
    """Peaks of the summed log likelihoods of ``n`` bootstrap draws."""
    inside = np.flatnonzero(heights >= heights.max() - DEEP)
    # Two places more on each side, and at least five in all, so that a parabola fits at the ends.
    first, last = max(0, inside[0] - 2), min(len(priors) - 1, inside[-1] + 2)
    stride = max(1, -(-(last - first) // COARSE))
    some = priors[first : last + 1 : stride]
    if len(some) < 3:
        some = priors[max(0, last - 2) : last + 1]
    total = np.sum([source.draws(some, n, rng) for source in sources], axis=0)
    return interpolated_peak(some, total)


def profile_interval(priors: FloatArray, heights: FloatArray, level: float) -> Interval:
    """Return the priors around the peak of which the log likelihood lies less than half a chi-square quantile below."""
    floor = heights.max() - 0.5 * float(chi2.ppf(level, 1))
    best = int(np.argmax(heights))
    ends = []
    for step in (-1, 1):
        at = best
        while 0 <= at + step < len(priors) and heights[at + step] >= floor:
            at += step
        beyond = at + step
        if 0 <= beyond < len(priors):
            part = (heights[at] - floor) / (heights[at] - heights[beyond])
            ends.append(float(priors[at] + part * (priors[beyond] - priors[at])))
        else:
            ends.append(float(priors[at]))
    return ends[0], ends[1]
