r"""From labels to supervision: seeded draws of the answers that an annotator would have given.

Only experiments and tests know labels; whoever collects real answers needs none of this. Notation: p = ``prior``,
q = 1 - p, P+ and P- the laws of the two classes, P = p P+ + q P-. A point "of class +1" is drawn uniformly from the
rows of the pool with that label.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from usimul.events import EVENTS, Event
from usimul.supervision import WORLDS, Labels, Supervision, Triplets, Unlabeled
from usimul.validation import (
    InputError,
    InputTypeError,
    IntArray,
    check_choice,
    check_count,
    check_labels,
    check_prior,
    check_real,
    check_seed,
)

__all__ = ["draw", "sample_labels", "sample_triplets", "sample_unlabeled"]

RandomState = int | np.random.Generator | np.random.RandomState | None

Kind = TypeVar("Kind", bound=Supervision)

_WORLD_EVENTS = {"definition1": "triplet", "pair_plus_unlabeled": "shuffled-pair"}

RELEASE_PRIOR = 0.4
RELEASE_SHARES = (0.341, 0.834)
"""Shares of positives among triplet points and unlabeled points in the paper's released experiment, at prior 0.4."""


class _Pool:
    """The rows of each class: turns arrays of labels into arrays of rows."""

    def __init__(self, y: ArrayLike, prior: float | None, *, replace: bool, random_state: RandomState) -> None:
        labels = check_labels(y)
        self.n_points = int(labels.size)
        self.by_label = {label: np.flatnonzero(labels == label) for label in (1, -1)}
        self.prior = float(np.mean(labels == 1)) if prior is None else check_prior(prior)
        self.replace = replace
        self.rng = check_seed(random_state)

    def labels(self, *shape: int) -> IntArray:
        """Independent labels, +1 with probability ``prior``."""
        return np.where(self.rng.random(shape) < self.prior, 1, -1)

    def exact_labels(self, share: float, *shape: int) -> IntArray:
        """Shuffled labels with an exact (rounded) share of positives."""
        labels = np.full(math.prod(shape), -1, dtype=np.int64)
        labels[: round(share * labels.size)] = 1
        return self.rng.permutation(labels).reshape(shape)

    def event_labels(self, event: Event, n: int) -> tuple[IntArray, int]:
        """Independent label tuples, of which those that are observed under the event are kept until there are n.

        Returns the kept tuples and how many were drawn up to the last of them.
        """
        powers = 1 << np.arange(event.size)
        acceptance = np.zeros(1 << event.size)
        acceptance[event.table @ powers] = event.accepted
        kept: list[IntArray] = []
        n_kept = n_asked = 0
        while n_kept < n:
            labels = self.labels(math.ceil(1.05 * (n - n_kept) / event.probability(self.prior)) + 16, event.size)
            chance = acceptance[(labels > 0) @ powers]
            hits = np.flatnonzero(chance if event.acceptance is None else self.rng.random(len(labels)) < chance)
            hits = hits[: n - n_kept]
            kept.append(labels[hits])
            n_kept += hits.size
            n_asked += int(hits[-1]) + 1 if n_kept == n else len(labels)
        return np.concatenate(kept), n_asked

    def rows(self, *labels: IntArray) -> list[IntArray]:
        """Rows with the given labels, one array for each array of labels; no row twice within one tuple."""
        flat = np.concatenate([part.ravel() for part in labels])
        if self.replace:
            chosen = self._uniform(flat)
        else:
            chosen = np.empty(flat.size, dtype=np.int64)
            for label, available in self.by_label.items():
                wanted = flat == label
                needed = int(wanted.sum())
                if needed > available.size:
                    raise InputError(
                        f"sampling without replacement needs {needed} points of class {label:+d}, but the pool has "
                        f"{available.size}. Pass replace=True, ask for fewer points, or use a larger pool."
                    )
                chosen[wanted] = self.rng.permutation(available)[:needed]
        ends = np.cumsum([part.size for part in labels])[:-1]
        result = [part.reshape(like.shape) for part, like in zip(np.split(chosen, ends), labels, strict=True)]
        if self.replace:
            for rows, like in zip(result, labels, strict=True):
                if like.ndim == 2:
                    self._separate(rows, like)
        return result

    def _uniform(self, labels: IntArray) -> IntArray:
        chosen = np.empty(labels.shape, dtype=np.int64)
        for label, available in self.by_label.items():
            wanted = labels == label
            chosen[wanted] = available[self.rng.integers(available.size, size=int(wanted.sum()))]
        return chosen

    def _separate(self, rows: IntArray, labels: IntArray) -> None:
        """Redraw, in place, the points of every tuple that holds a row twice; its labels stay, so the law does too."""
        for label, available in self.by_label.items():
            most = int((labels == label).sum(axis=1).max(initial=0))
            if most > available.size:
                raise InputError(
                    f"one tuple needs {most} different points of class {label:+d}, but the pool has {available.size}. "
                    "Use a larger pool."
                )
        bad = np.arange(len(rows))
        while True:
            ordered = np.sort(rows[bad], axis=1)
            bad = bad[(ordered[:, 1:] == ordered[:, :-1]).any(axis=1)]
            if not bad.size:
                return
            rows[bad] = self._uniform(labels[bad])


def _sample_event(
    kind: type[Kind], event: Event, pool: _Pool, n: int, *, n_unlabeled: int, world: str | None = None
) -> Kind:
    """Ask about tuples of independent points and keep those of which the event is observed: any event, any kind."""
    labels, n_asked = pool.event_labels(event, n)
    rows, unlabeled = pool.rows(labels, pool.labels(n_unlabeled))
    return kind(rows, unlabeled=unlabeled, n_points=pool.n_points, world=world, n_asked=n_asked, n_accepted=n)


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
    pool = _Pool(y, prior, replace=replace, random_state=random_state)
    if world == "release":
        share, share_u = _release_shares(release_shares, pool.prior)
        labels, labels_u = pool.exact_labels(share, n, 3), pool.exact_labels(share_u, n_unlabeled)
        rows, unlabeled = pool.rows(labels, labels_u)
        return Triplets(rows, unlabeled=unlabeled, n_points=pool.n_points, world=world)
    triplets = _sample_event(Triplets, EVENTS[_WORLD_EVENTS[world]], pool, n, n_unlabeled=n_unlabeled, world=world)
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
    pool = _Pool(y, prior, replace=replace, random_state=random_state)
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
    pool = _Pool(y, prior, replace=replace, random_state=random_state)
    labels = pool.labels(pool.n_points if n is None else check_count(n, "n"))
    (rows,) = pool.rows(labels)
    return Labels(rows, values=labels.astype(np.float64), n_points=pool.n_points)


_SAMPLERS: dict[str, Callable[..., Supervision]] = {
    sampler.__name__: sampler for sampler in (sample_triplets, sample_labels, sample_unlabeled)
}


def draw(
    kind: type[Supervision],
    y: ArrayLike,
    n: int,
    *,
    n_unlabeled: int = 0,
    prior: float | None = None,
    random_state: RandomState = None,
) -> Supervision:
    """Draw supervision of a given kind from labels, with the defaults of its sampler.

    The sampler is the one that the class names in ``sampler``. Kinds without unlabeled points ignore ``n_unlabeled``.

    Examples
    --------
    >>> draw(Triplets, [1, -1, 1, -1, 1, -1], 4, n_unlabeled=2, random_state=0).world
    'definition1'
    """
    given: Any = kind
    if not (isinstance(given, type) and issubclass(given, Supervision)):
        raise InputTypeError(f"`kind` must be a supervision class, such as Triplets. Got {kind!r}.")
    if kind.sampler not in _SAMPLERS:
        known = ", ".join(sorted(cls.__name__ for cls in Supervision._registry.values() if cls.sampler in _SAMPLERS))
        raise InputError(
            f"{kind.__name__} cannot be drawn from labels; kinds that can: {known}. "
            f"Pass a {kind.__name__} object made from real answers instead of labels."
        )
    options: dict[str, Any] = {"prior": prior, "random_state": random_state}
    if issubclass(kind, Triplets):
        options["n_unlabeled"] = n_unlabeled
    return _SAMPLERS[kind.sampler](y, n, **options)
