"""Does a predictor carry information? Said in words, from its scores alone: the one place that decides."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from usimul.validation import InputError, check_prior

__all__ = ["degenerate", "degenerate_share"]

NEARLY_CONSTANT = 0.05  # of the smaller class's share: fewer predictions than that carry no information
WRONG_FOR_SURE = 0.5  # of the smaller class's share: so many errors follow from the share of positives alone
FLAT = 1e-6  # spread of the scores, relative to their size

ADVICE = "Try method 'joint', more tuples, or more epochs."


def degenerate(scores: ArrayLike, prior: float | None = None) -> str | None:
    """Words for a predictor without information, or None.

    Checks, in this order: all scores are the same; (nearly) all points get one class; the share of predicted positives
    is so far from the prior, beyond three standard errors of sampling, that half of what a constant prediction gets
    wrong is wrong for sure. The last two compare with the prior, so the points must be drawn at it; None leaves it at
    what needs no prior.

    Parameters
    ----------
    scores
        Scores of points, of which at least 0 means positive.
    prior
        Share of positives among these points.

    Examples
    --------
    >>> degenerate([-1.0, 0.5, 2.0, -3.0], 0.4)
    >>> degenerate([0.2, 0.2, 0.2], 0.4)
    "all scores are the same (0.2), all points positive, which carries no information. Try method 'joint', ..."
    """
    values = np.asarray(scores, dtype=np.float64).ravel()
    if np.isnan(values).any():
        raise InputError(f"scores must be numbers. Got {np.isnan(values).sum()} NaN among {values.size} scores.")
    if not values.size:
        return None
    low, high = float(values.min()), float(values.max())
    if values.size > 1 and high - low <= FLAT * max(abs(low), abs(high)):
        which = "positive" if high >= 0 else "negative"
        return f"all scores are the same ({high:.4g}), all points {which}, which carries no information. {ADVICE}"
    return degenerate_share(float(np.mean(values >= 0)), prior, values.size)


def degenerate_share(share: float, prior: float | None, n: int | None = None) -> str | None:
    """`degenerate` from the share of predicted positives among ``n`` points; without ``n`` the last check is left out.

    A classifier that calls a share s positive where p are is wrong on at least abs(s - p) of the points. What three
    standard errors of the share of positives among n points explain is never held against it.

    >>> degenerate_share(0.01, 0.4)[:46]
    'the classifier calls nearly all points negativ'
    >>> print(degenerate_share(0.75, 0.4, 1000))
    the classifier calls 0.750 of 1,000 points positive where the prior says 0.4, so at least 0.30 of them are wrong
    whatever the rest is like; always saying negative has 0.40 wrong. Try method 'joint', more tuples, or more epochs.
    """
    smaller = 0.0 if prior is None else min(check_prior(prior), 1.0 - prior)
    by_chance = 0.0 if prior is None or n is None else 3.0 * math.sqrt(prior * (1.0 - prior) / n)
    if prior is not None and abs(share - prior) <= by_chance:
        return None
    limit = NEARLY_CONSTANT * smaller
    if not limit < share < 1.0 - limit:
        which = "positive" if share > 0.5 else "negative"
        return (
            f"the classifier calls {'all' if share in (0.0, 1.0) else 'nearly all'} points {which}, so it carries no "
            f"information; an estimate of its error says little more than the prior does. {ADVICE}"
        )
    if prior is None or n is None:
        return None
    least = abs(share - prior) - by_chance
    if least < WRONG_FOR_SURE * smaller:
        return None
    return (
        f"the classifier calls {share:.3f} of {n:,} points positive where the prior says {prior:g}, so at least "
        f"{least:.2f} of them are wrong whatever the rest is like; always saying "
        f"{'positive' if prior > 0.5 else 'negative'} has {smaller:.2f} wrong. {ADVICE}"
    )
