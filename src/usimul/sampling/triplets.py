"""Uncertain-similarity triplets in three worlds."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from numpy.typing import ArrayLike

from usimul.events import EVENTS
from usimul.sampling.pool import Pool, RandomState, sample_event
from usimul.supervision import WORLDS, Triplets
from usimul.validation import InputError, InputTypeError, check_choice, check_count, check_real

__all__ = ["sample_triplets"]

_WORLD_EVENTS = {"definition1": "triplet", "pair_plus_unlabeled": "shuffled-pair"}

RELEASE_PRIOR = 0.4
RELEASE_SHARES = (0.341, 0.834)
"""Shares of positives among triplet points and unlabeled points in the paper's released experiment, at prior 0.4."""


def sample_triplets(
    y: ArrayLike,
    n: int,
    *,
    n_unlabeled: int = 0,
    prior: float | None = None,
    world: str = "definition1",
    replace: bool = True,
    random_state: RandomState = None,
    release_shares: tuple[float, float] | None = None,
    wrong_yes: float = 0.0,
) -> Triplets:
    r"""Draw uncertain-similarity triplets, and unlabeled points, from a labeled pool.

    Three worlds say what "a triplet" is:

    ``definition1``
        Three independent points (x; x', x''), kept if and only if Y holds: y = y' or y = y''. What an annotator
        produces. With Z = P(Y) = 1 - p q,

        .. math:: P(x, x', x'' \mid Y) = P(x) P(x') P(x'') \, 1[y = y' \text{ or } y = y''] / Z.

        The anchor x is positive with probability p (1 - q^2) / Z; the companions follow P itself.
    ``pair_plus_unlabeled``
        A similar pair and one independent point, the two non-anchor slots shuffled. With pS = p^2 + q^2,

        .. math:: (x, x') \sim [p^2 P_+ P_+' + q^2 P_- P_-'] / p_S, \qquad x'' \sim P.
    ``release``
        What the paper's released experiment drew: no triplet is formed. All 3n points have an exact share s_US of
        positives, and the unlabeled points an exact share s_U that differs from the prior; both are shuffled. Only
        for reproducing the printed tables.

    In the first two worlds unlabeled points follow P. Points are uniform within their class, and the three rows of
    one triplet differ.

    Parameters
    ----------
    y
        Labels of the pool, +1 and -1.
    n
        Number of triplets.
    n_unlabeled
        Number of unlabeled points.
    prior
        Share of positives that labels are drawn with. None takes the share in ``y``.
    world
        One of the three worlds.
    replace
        Whether a point may occur in several tuples. If not, every point of the pool is used at most once over all
        triplets and unlabeled points.
    random_state
        Seed or generator.
    release_shares
        (s_US, s_U) for the world ``release``. None is known at prior 0.4 only: (0.341, 0.834).
    wrong_yes
        Share r of triplets for which the statement does not hold, in expectation. The others, and these, follow their
        laws exactly. Right tuples are always accepted, so that a share Z/(1 - r) of those asked about is.

    Returns
    -------
    Triplets
        With its world and pool size; ``definition1`` also counts how many triplets were asked about and accepted.

    See Also
    --------
    usimul.mixture.anchor_share : The anchor's share of positives under ``definition1``.
    usimul.mixture.pair_anchor_share : The same under ``pair_plus_unlabeled``.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.repeat([1, -1], [40, 60])
    >>> sup = sample_triplets(y, 100, n_unlabeled=50, random_state=0)
    >>> sup
    Triplets(100 tuples, 50 unlabeled, pool of 100, world 'definition1', 100 of 134 asked)
    >>> anchor, first, second = y[sup.rows].T
    >>> bool(np.all((anchor == first) | (anchor == second)))
    True
    """
    world = check_choice(world, WORLDS, "world")
    n, n_unlabeled = check_count(n, "n"), check_count(n_unlabeled, "n_unlabeled", low=0)
    if release_shares is not None and world != "release":
        raise InputError(
            f"`release_shares` belongs to world='release' only. Got it with world={world!r}; leave it out."
        )
    if wrong_yes and world == "release":
        raise InputError("`wrong_yes` has no meaning in world 'release', where nothing is asked. Leave it out.")
    pool = Pool(y, prior, replace=replace, random_state=random_state)
    if world == "release":
        share, share_u = _release_shares(release_shares, pool.prior)
        labels, labels_u = pool.exact_labels(share, n, 3), pool.exact_labels(share_u, n_unlabeled)
        rows, unlabeled = pool.rows(labels, labels_u)
        return Triplets(rows, unlabeled=unlabeled, n_points=pool.n_points, world=world)
    event = EVENTS[_WORLD_EVENTS[world]]
    triplets = sample_event(Triplets, event, pool, n, n_unlabeled=n_unlabeled, world=world, wrong_yes=wrong_yes)
    # Nobody is asked in the other world: its pairs are known to be similar before the third point joins them.
    return triplets if world == "definition1" else dataclasses.replace(triplets, n_asked=None, n_accepted=None)


def _release_shares(shares: Any, prior: float) -> tuple[float, float]:
    if shares is None:
        if not math.isclose(prior, RELEASE_PRIOR, abs_tol=1e-9):
            raise InputError(
                f"the shares of positives in the paper's released experiment are known at prior {RELEASE_PRIOR} only, "
                "because they follow from class counts and a hand-set option, not from the prior. "
                f"Got prior {prior:g}. Pass release_shares=(share among triplet points, share among unlabeled points), "
                "or use world='definition1'."
            )
        return RELEASE_SHARES
    if not isinstance(shares, (tuple, list)) or len(shares) != 2:
        raise InputTypeError(
            f"`release_shares` must be two numbers (triplet points, unlabeled points). Got {shares!r}."
        )
    first, second = (check_real(share, "release_shares", low=0.0, high=1.0) for share in shares)
    return first, second
