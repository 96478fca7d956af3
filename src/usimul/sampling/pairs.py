r"""Pairs and answered triplets: what the compared methods learn from.

Notation: p = prior, q = 1 - p, Z = 1 - p q, pS = p^2 + q^2. All pairs are drawn by rejection from independent points,
so that the stated law holds without counting classes by hand.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from usimul.events import EVENTS, Event
from usimul.mixture import signal_kept
from usimul.noise import flip_rate_of
from usimul.sampling.pool import Pool, RandomState, sample_event
from usimul.supervision import (
    ComparedPairs,
    ConfidenceDifference,
    DissimilarPairs,
    PairAnswers,
    SimilarityConfidence,
    SimilarPairs,
    TripletAnswers,
)
from usimul.validation import InputError, IntArray, check_count

__all__ = [
    "sample_compared_pairs",
    "sample_confidence_difference",
    "sample_dissimilar_pairs",
    "sample_pair_answers",
    "sample_similar_pairs",
    "sample_similarity_confidence",
    "sample_triplet_answers",
]

FloatArray = NDArray[np.float64]


def sample_similar_pairs(
    y: ArrayLike,
    n: int,
    *,
    n_unlabeled: int = 0,
    prior: float | None = None,
    replace: bool = True,
    random_state: RandomState = None,
    wrong_yes: float = 0.0,
) -> SimilarPairs:
    r"""Draw similar pairs, :math:`[p^2 P_+ P_+' + q^2 P_- P_-']/p_S`, and unlabeled points.

    A share ``wrong_yes`` of the pairs is expected to be dissimilar.

    Examples
    --------
    >>> sample_similar_pairs([1, -1, -1, 1], 3, n_unlabeled=2, random_state=0).n_accepted
    3
    """
    n, n_unlabeled = check_count(n, "n"), check_count(n_unlabeled, "n_unlabeled", low=0)
    pool = Pool(y, prior, replace=replace, random_state=random_state)
    return sample_event(SimilarPairs, EVENTS["similar-pair"], pool, n, n_unlabeled=n_unlabeled, wrong_yes=wrong_yes)


def sample_dissimilar_pairs(
    y: ArrayLike,
    n: int,
    *,
    n_unlabeled: int = 0,
    prior: float | None = None,
    replace: bool = True,
    random_state: RandomState = None,
    wrong_yes: float = 0.0,
) -> DissimilarPairs:
    r"""Draw dissimilar pairs, :math:`[P_+ P_-' + P_- P_+']/2`, and unlabeled points.

    A share ``wrong_yes`` of the pairs is expected to be similar.
    """
    n, n_unlabeled = check_count(n, "n"), check_count(n_unlabeled, "n_unlabeled", low=0)
    pool = Pool(y, prior, replace=replace, random_state=random_state)
    return sample_event(
        DissimilarPairs, EVENTS["dissimilar-pair"], pool, n, n_unlabeled=n_unlabeled, wrong_yes=wrong_yes
    )


def sample_compared_pairs(
    y: ArrayLike,
    n: int,
    *,
    n_unlabeled: int = 0,
    prior: float | None = None,
    replace: bool = True,
    random_state: RandomState = None,
    wrong_yes: float = 0.0,
) -> ComparedPairs:
    r"""Draw compared pairs, :math:`[p^2 P_+ P_+' + p q P_+ P_-' + q^2 P_- P_-']/Z`, and unlabeled points.

    Independent pairs of which those with labels (-, +) are thrown away. Turning those around instead (as some public
    code does) has another law, for which the Pcomp risk is biased. A share ``wrong_yes`` of the pairs is expected to
    have labels (-, +) after all.
    """
    n, n_unlabeled = check_count(n, "n"), check_count(n_unlabeled, "n_unlabeled", low=0)
    pool = Pool(y, prior, replace=replace, random_state=random_state)
    return sample_event(ComparedPairs, EVENTS["compared-pair"], pool, n, n_unlabeled=n_unlabeled, wrong_yes=wrong_yes)


def sample_pair_answers(
    y: ArrayLike,
    n: int,
    *,
    prior: float | None = None,
    replace: bool = True,
    random_state: RandomState = None,
    wrong_yes: float = 0.0,
) -> PairAnswers:
    """Draw independent pairs, and answer whether the two points share their class.

    With a share ``wrong_yes`` of wrong similar answers, dissimilar ones are wrong at the same rate of flips.

    Examples
    --------
    >>> sup = sample_pair_answers([1, -1, -1, 1, -1], 4, random_state=0)
    >>> sorted(sup.sources())
    ['dissimilar', 'similar']
    """
    rows, labels, pool = _independent(y, n, 2, prior, replace, random_state)
    values = np.where(labels[:, 0] == labels[:, 1], 1.0, -1.0)
    values = _flip(values, EVENTS["similar-pair"], pool, wrong_yes)
    return PairAnswers(rows, values=values, n_points=pool.n_points)


def sample_triplet_answers(
    y: ArrayLike,
    n: int,
    *,
    prior: float | None = None,
    replace: bool = True,
    random_state: RandomState = None,
    wrong_yes: float = 0.0,
) -> TripletAnswers:
    """Draw independent triples and answer "is x2 at least as close to x1 as x3?", closeness being the same class.

    With a share ``wrong_yes`` of wrong yes answers, no answers are wrong at the same rate of flips.
    """
    rows, labels, pool = _independent(y, n, 3, prior, replace, random_state)
    first, second, third = labels.T
    values = np.where((first == third) & (first != second), -1.0, 1.0)
    values = _flip(values, EVENTS["triplet"], pool, wrong_yes)
    return TripletAnswers(rows, values=values, n_points=pool.n_points)


def sample_similarity_confidence(
    y: ArrayLike,
    n: int,
    *,
    posterior: ArrayLike,
    prior: float | None = None,
    replace: bool = True,
    random_state: RandomState = None,
) -> SimilarityConfidence:
    r"""Draw independent pairs with :math:`s = \eta \eta' + (1-\eta)(1-\eta')`, the probability of a shared class.

    Parameters
    ----------
    y
        Labels of the pool; they shape the draw only.
    n
        Number of pairs.
    posterior
        ``P(y = +1 | x)`` of every point of the pool; see `usimul.posterior` for ways to get it.
    prior, replace, random_state
        As for the other samplers.

    Examples
    --------
    >>> eta = [0.9, 0.9, 0.2, 0.2]
    >>> sup = sample_similarity_confidence([1, 1, -1, -1], 50, posterior=eta, random_state=0)
    >>> np.unique(sup.values.round(2))
    array([0.26, 0.68, 0.82])
    """
    eta = check_posterior(posterior, len(np.asarray(y)))
    rows, _, pool = _independent(y, n, 2, prior, replace, random_state)
    first, second = eta[rows].T
    values = np.clip(first * second + (1.0 - first) * (1.0 - second), 0.0, 1.0)
    return SimilarityConfidence(rows, values=values, n_points=pool.n_points)


def sample_confidence_difference(
    y: ArrayLike,
    n: int,
    *,
    posterior: ArrayLike,
    prior: float | None = None,
    replace: bool = True,
    random_state: RandomState = None,
) -> ConfidenceDifference:
    r"""Draw independent pairs with :math:`c = \eta' - \eta`, second minus first."""
    eta = check_posterior(posterior, len(np.asarray(y)))
    rows, _, pool = _independent(y, n, 2, prior, replace, random_state)
    return ConfidenceDifference(rows, values=eta[rows[:, 1]] - eta[rows[:, 0]], n_points=pool.n_points)


def check_posterior(posterior: ArrayLike, n_points: int) -> FloatArray:
    """Return one probability for each point of the pool."""
    eta = np.asarray(posterior, dtype=np.float64)
    if eta.shape != (n_points,):
        raise InputError(f"`posterior` must hold one probability for each of {n_points} points. Got shape {eta.shape}.")
    bad = np.flatnonzero(~((eta >= 0) & (eta <= 1)))
    if bad.size:
        raise InputError(
            f"`posterior` must lie in [0, 1] and be finite. Got {eta[bad[0]]} at position {int(bad[0])} "
            f"({bad.size} such)."
        )
    return eta


def _independent(
    y: ArrayLike, n: int, width: int, prior: float | None, replace: bool, random_state: RandomState
) -> tuple[IntArray, IntArray, Pool]:
    n = check_count(n, "n")
    pool = Pool(y, prior, replace=replace, random_state=random_state)
    labels = pool.labels(n, width)
    (rows,) = pool.rows(labels)
    return rows, labels, pool


def _flip(values: FloatArray, statement: Event, pool: Pool, wrong_yes: float) -> FloatArray:
    """Turn answers around at the rate of flips that makes a share ``wrong_yes`` of the yes answers wrong."""
    holds = statement.probability(pool.prior)
    if signal_kept(wrong_yes, holds) == 1.0:
        return values
    return np.where(pool.rng.random(values.shape) < flip_rate_of(wrong_yes, holds), -values, values)
