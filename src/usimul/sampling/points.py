"""Single points: unlabeled, labeled, and in two sets with known shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from usimul.sampling.pool import Pool, RandomState
from usimul.supervision import Labels, Unlabeled, UnlabeledSets
from usimul.validation import InputError, InputTypeError, check_count, check_labels, check_real

__all__ = ["sample_labels", "sample_unlabeled", "sample_unlabeled_sets"]


def sample_unlabeled(
    y: ArrayLike, n: int, *, prior: float | None = None, replace: bool = True, random_state: RandomState = None
) -> Unlabeled:
    r"""Draw unlabeled points from a labeled pool: :math:`x \sim p P_+ + q P_-`.

    Parameters
    ----------
    y
        Labels of the pool, +1 and -1; they shape the draw and are not part of the result.
    n
        Number of points.
    prior
        Share of positives that labels are drawn with. None takes the share in ``y``.
    replace
        Whether a point may occur twice.
    random_state
        Seed or generator.

    Examples
    --------
    >>> sample_unlabeled([1, -1, -1, 1], 3, random_state=0)
    Unlabeled(3 tuples, pool of 4)
    """
    n = check_count(n, "n")
    pool = Pool(y, prior, replace=replace, random_state=random_state)
    (rows,) = pool.rows(pool.labels(n))
    return Unlabeled(rows, n_points=pool.n_points)


def sample_labels(
    y: ArrayLike,
    n: int | None = None,
    *,
    prior: float | None = None,
    replace: bool = True,
    random_state: RandomState = None,
) -> Labels:
    r"""Draw points together with their labels, for the reference that is trained on labels.

    The law is :math:`P(x, y = +1) = p P_+(x)`, :math:`P(x, y = -1) = q P_-(x)`.

    Parameters
    ----------
    y
        Labels of the pool, +1 and -1.
    n
        Number of points. None takes as many as the pool has.
    prior
        Share of positives that labels are drawn with. None takes the share in ``y``; with ``n`` None as well nothing
        is drawn, and every point of the pool occurs once.
    replace
        Whether a point may occur twice.
    random_state
        Seed or generator.

    Examples
    --------
    >>> sample_labels([1, -1, -1]).values
    array([ 1., -1., -1.])
    >>> sample_labels([1, -1, -1], 5, prior=0.5, random_state=0)
    Labels(5 tuples, pool of 3)
    """
    if n is None and prior is None:
        labels = check_labels(y)
        return Labels(np.arange(labels.size), values=labels.astype(np.float64), n_points=int(labels.size))
    pool = Pool(y, prior, replace=replace, random_state=random_state)
    labels = pool.labels(pool.n_points if n is None else check_count(n, "n"))
    (rows,) = pool.rows(labels)
    return Labels(rows, values=labels.astype(np.float64), n_points=pool.n_points)


def sample_unlabeled_sets(
    y: ArrayLike,
    n: int,
    *,
    shares: tuple[float, float] = (0.9, 0.1),
    prior: float | None = None,
    replace: bool = True,
    random_state: RandomState = None,
) -> UnlabeledSets:
    r"""Draw two sets of unlabeled points with known shares of positives, half of the points each.

    The law of set i is :math:`\theta_i P_+ + (1 - \theta_i) P_-`. ``prior`` plays no part in it and is accepted so that
    all samplers are called alike.

    Examples
    --------
    >>> sample_unlabeled_sets([1, -1, -1, 1], 6, random_state=0).shares
    (0.9, 0.1)
    """
    n = check_count(n, "n", low=2)
    given: Any = shares
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise InputTypeError(f"`shares` must be two numbers, one for each set. Got {shares!r}.")
    high, low = (check_real(share, "shares", low=0.0, high=1.0) for share in given)
    if high == low:
        raise InputError(
            f"`shares` of the two sets must differ, or they say nothing about the classes. Got {shares!r}."
        )
    pool = Pool(y, prior, replace=replace, random_state=random_state)
    theta = np.where(np.arange(n) < (n + 1) // 2, high, low)
    labels = np.where(pool.rng.random(n) < theta, 1, -1)
    (rows,) = pool.rows(labels)
    return UnlabeledSets(rows, values=theta, n_points=pool.n_points)
