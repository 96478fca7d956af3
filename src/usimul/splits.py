r"""Divide the pool first, then the tuples: no row of the training is in what judges it.

Tuples are edges of a hypergraph over the points. A side keeps the tuples that lie wholly inside it, so points that are
picked one by one with probability f keep :math:`f^3` of the triplets. Here connected components stay together, and
nothing is lost while they are small: with each point used once, every triplet is a component of its own. A large
component (they arise when triplets are more than a sixth of the points) is cut into blocks of equal size across as few
tuples as simple heuristics manage, and what is cut is dropped and counted.

**Why this does not bias the tuples.** No label is looked at, but which tuples exist follows from answers, so a rule
that prefers some components or points is not innocent: points in many accepted tuples are more often of the frequent
class. Therefore every component lands in every block with the same probability 1/k, whatever its size, and the k blocks
of a cut component are dealt at random. So each point, each unlabeled row and each tuple that is not cut is on the test
side with the same probability. Only the dropped tuples can bias, by at most their share (in total variation). A cut
that looked for communities could do worse in dense hypergraphs, because points of one class share more triplets; hence
points are dealt at random there, see `DENSE`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, depth_first_order

from usimul.supervision import Supervision
from usimul.validation import (
    InputError,
    InputTypeError,
    IntArray,
    LeakWarning,
    check_count,
    check_fraction,
    check_seed,
)

__all__ = ["FEW_POINTS", "MOST_DROPPED", "PoolKFold", "PoolSplit", "check_leak", "hold_out", "inside", "pool_split"]

Kind = TypeVar("Kind", bound=Supervision)

LARGE = 0.25  # of a block's tuples: a component that holds more is cut, or blocks would differ too much
MOST_BLOCKS = 20
DENSE = 4.0  # tuples of a point, on average, from which points of a large component are dealt at random
ROUNDS = 40
MOST_DROPPED = 0.1  # share of the tuples that a split of the points may cost; else tuples are split
FEW_POINTS = 100  # fewer are hardly divided without losing the tuples among them


@dataclass(frozen=True)
class PoolSplit:
    """Rows of the pool on either side, and what became of the tuples.

    Parameters
    ----------
    train, test
        Sorted row numbers of the pool; together they are the pool.
    n_train, n_test, n_dropped
        Tuples wholly inside the training side, wholly inside the test side, and across.
    """

    train: IntArray
    test: IntArray
    n_train: int
    n_test: int
    n_dropped: int

    @property
    def dropped_share(self) -> float:
        """Share of the tuples that neither side has."""
        return self.n_dropped / max(1, self.n_train + self.n_test + self.n_dropped)

    def __str__(self) -> str:
        return f"{self.n_train} tuples to train, {self.n_test} to test, {self.n_dropped} across dropped"


def pool_split(supervision: Supervision, fraction: float = 0.2, random_state: Any = None) -> PoolSplit:
    """Divide the pool of points in two; ``sup[split.train]`` and ``sup[split.test]`` then share no row.

    Parameters
    ----------
    supervision
        Must know the size of its pool (``n_points``).
    fraction
        Share of the points on the test side, brought to a fraction m/k with k of at most 20 (100 below 0.05 or above
        0.95), because k blocks are made and m of them drawn.
    random_state
        Seed.

    Examples
    --------
    >>> from usimul import Triplets
    >>> sup = Triplets(np.arange(30).reshape(10, 3), unlabeled=range(30, 40), n_points=40)
    >>> split = pool_split(sup, 0.2, random_state=0)
    >>> print(split)
    8 tuples to train, 2 to test, 0 across dropped
    >>> sup[split.test]
    Triplets(2 tuples, 2 unlabeled, pool of 8)
    """
    share = _simple(check_fraction(fraction, "fraction"))
    rng = check_seed(random_state)
    blocks = _blocks(_with_pool(supervision), share.denominator, rng)
    chosen = rng.permutation(share.denominator)[: share.numerator]
    return _split(supervision, np.isin(blocks, chosen))


class PoolKFold:
    """k folds of the pool for scikit-learn: in each, no test row is in a training tuple.

    ``split(X, sup)`` yields row numbers of the pool; scikit-learn then restricts the supervision to them. Use it as
    ``cv=`` of ``cross_val_score``, ``GridSearchCV`` and others; folds of single rows would keep 1/k^3 of the triplets.

    Parameters
    ----------
    n_splits
        Number of folds.
    random_state
        Seed; with an int, every call of ``split`` gives the same folds.

    Attributes
    ----------
    splits_
        The `PoolSplit` of each fold of the last call, with the numbers of tuples kept and dropped.

    Examples
    --------
    >>> from usimul import Triplets
    >>> sup = Triplets(np.arange(30).reshape(10, 3), n_points=30)
    >>> [(len(train), len(test)) for train, test in PoolKFold(5, random_state=0).split(None, sup)]
    [(24, 6), (24, 6), (24, 6), (24, 6), (24, 6)]
    """

    def __init__(self, n_splits: int = 5, *, random_state: Any = None) -> None:
        self.n_splits = check_count(n_splits, "n_splits", low=2)
        self.random_state = random_state

    def __repr__(self) -> str:
        return f"PoolKFold({self.n_splits}, random_state={self.random_state!r})"

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(self, X: Any, y: Supervision, groups: Any = None) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the rows of the training and of the test side of each fold."""
        blocks = _blocks(_with_pool(y), self.n_splits, check_seed(self.random_state))
        self.splits_ = [_split(y, blocks == block) for block in range(self.n_splits)]
        for split in self.splits_:
            yield split.train, split.test


def _simple(fraction: float) -> Fraction:
    """Return a fraction of few blocks.

    >>> [str(_simple(value)) for value in (0.2, 1 / 3, 0.137, 0.02, 0.98, 0.001)]
    ['1/5', '1/3', '2/15', '1/50', '49/50', '1/100']
    """
    rare = min(fraction, 1.0 - fraction)
    if rare >= 1 / MOST_BLOCKS:
        return Fraction(fraction).limit_denominator(MOST_BLOCKS)
    share = Fraction(1, min(100, round(1 / rare)))
    return share if fraction < 0.5 else Fraction(1) - share


def inside(supervision: Kind, rows: Any) -> Kind:
    """Keep tuples and unlabeled points wholly inside some rows of the pool; the pool and its numbering stay.

    ``sup[rows]`` does the same and renumbers, for an X that is cut too. Known labels all stay.
    """
    member = np.zeros(_with_pool(supervision).shape[0], dtype=bool)
    member[rows] = True
    unlabeled = slice(None) if supervision.unlabeled is None else member[supervision.unlabeled]
    return supervision.take(member[supervision.rows].all(axis=1), unlabeled)


def hold_out(supervision: Kind, fraction: float, seed: int) -> tuple[Kind, Kind, str]:
    """Split off what judges: ``"points"`` where few tuples are lost by dividing the pool, else ``"tuples"``.

    Returns both sides, which number the rows as before, and what was divided. Of points, no row that judges is in a
    tuple of the other side.

    >>> from usimul import Triplets
    >>> sup = Triplets(np.arange(300).reshape(100, 3), n_points=300)
    >>> hold_out(sup, 0.2, 0)[2]
    'points'
    """
    if _with_pool(supervision).shape[0] >= FEW_POINTS:
        split = pool_split(supervision, fraction, np.random.default_rng(seed))
        if split.n_test >= 2 and split.n_train and split.dropped_share <= MOST_DROPPED:
            return inside(supervision, split.train), inside(supervision, split.test), "points"
    return *supervision.split(fraction, np.random.default_rng(seed)), "tuples"


def check_leak(train: Supervision, test: Supervision) -> int:
    """Count the rows that occur on both sides, as part of a tuple or unlabeled, and warn if there are any.

    Both must number the rows of one pool. What ``sup[rows]`` gives is renumbered, so compare before, or use `inside`.

    >>> from usimul import Triplets
    >>> check_leak(Triplets([[0, 1, 2]]), Triplets([[3, 4, 5]]))
    0
    """
    for given in (train, test):
        if not isinstance(given, Supervision):
            raise InputTypeError(f"`check_leak` takes two supervision objects. Got {type(given).__name__}.")
    if None not in (train.n_points, test.n_points) and train.n_points != test.n_points:
        raise InputError(
            f"both sides must number the rows of one pool. Got pools of {train.n_points} and {test.n_points} points. "
            "Compare before sup[rows] renumbers them, or take the parts by usimul.splits.inside."
        )
    used, judged = _rows_of(train), _rows_of(test)
    shared = int(np.intersect1d(used, judged, assume_unique=True).size)
    if shared:
        warnings.warn(
            f"{shared} of the {judged.size} points that judge were trained on: an error estimated on them is too low "
            "where the network memorises points. Divide the pool first: usimul.splits.pool_split.",
            LeakWarning,
            stacklevel=2,
        )
    return shared


def _rows_of(sup: Supervision) -> IntArray:
    parts = [sup.rows.ravel()] if sup.unlabeled is None else [sup.rows.ravel(), sup.unlabeled]
    return np.unique(np.concatenate(parts))


def _with_pool(sup: object) -> Supervision:
    if not isinstance(sup, Supervision):
        raise InputTypeError(
            f"dividing a pool takes a supervision object, whose tuples say what belongs together. "
            f"Got {type(sup).__name__}. Pass it as y."
        )
    assert sup.shape  # raises if the size is not known
    return sup


def _split(sup: Supervision, testing: NDArray[np.bool_]) -> PoolSplit:
    count = testing[sup.rows].sum(axis=1)
    n_test, n_train = int((count == sup.width).sum()), int((count == 0).sum())
    return PoolSplit(
        np.flatnonzero(~testing), np.flatnonzero(testing), n_train, n_test, sup.n_tuples - n_train - n_test
    )


def _blocks(sup: Supervision, k: int, rng: np.random.Generator) -> IntArray:
    """Return the block, 0 to k - 1, of every point; every component has the same chance of every block."""
    (n_points,) = sup.shape
    if n_points < k:
        raise InputError(f"a pool of {n_points} points cannot be divided into {k} blocks. Take fewer.")
    graph = _incidence(sup.rows, n_points)
    n_parts, part = connected_components(graph, directed=False)
    part = part[:n_points]
    tuples = np.bincount(part[sup.rows[:, 0]], minlength=n_parts)
    points = np.bincount(part, minlength=n_parts)
    plain = np.bincount(part[sup.unlabeled], minlength=n_parts) if sup.unlabeled is not None else np.zeros(n_parts)
    large = (tuples > max(1.0, LARGE * sup.n_tuples / k)) & (points > k)

    # Alike components stand together; of each k in a row every block gets one, by a permutation of its own.
    small = np.flatnonzero(~large)
    small = small[np.lexsort((rng.random(small.size), -plain[small], -points[small], -tuples[small]))]
    dealt = np.argsort(rng.random((-(-small.size // k), k)), axis=1).ravel()[: small.size]
    block_of_part = np.zeros(n_parts, dtype=np.int64)
    block_of_part[small] = dealt
    blocks: IntArray = block_of_part[part]
    for number in np.flatnonzero(large):
        members = np.flatnonzero(part == number)
        place = np.full(n_points, -1)
        place[members] = np.arange(members.size)
        blocks[members] = _cut(place[sup.rows[part[sup.rows[:, 0]] == number]], members.size, k, rng)
    return blocks


def _incidence(rows: IntArray, n_points: int) -> Any:
    """Points and tuples as the nodes of one graph, a tuple joined to each of its points."""
    n, width = rows.shape
    ends = (rows.ravel(), n_points + np.repeat(np.arange(n), width))
    return csr_matrix((np.ones(rows.size, dtype=np.int8), ends), shape=(n_points + n,) * 2)


def _cut(rows: IntArray, n: int, k: int, rng: np.random.Generator) -> IntArray:
    """Divide one connected component into k blocks of equal size that cut few tuples."""
    even = rng.permutation(np.arange(n) * k // n)
    if rows.size / n > DENSE:
        return even
    # A path that walks down one branch after another, cut into k pieces, cuts few tuples of what is nearly a tree.
    order = depth_first_order(_incidence(rows, n), int(rng.integers(n)), directed=False, return_predecessors=False)
    blocks = np.empty(n, dtype=np.int64)
    blocks[order[order < n]] = rng.permutation(k)[np.arange(n) * k // n]
    best, least = blocks, _n_cut(rows, blocks)
    for _ in range(ROUNDS):
        blocks = _improve(rows, blocks, k, rng)
        if (found := _n_cut(rows, blocks)) < least:
            best, least = blocks, found
    return best


def _n_cut(rows: IntArray, blocks: IntArray) -> int:
    of_tuple = blocks[rows]
    return int((of_tuple != of_tuple[:, :1]).any(axis=1).sum())


def _improve(rows: IntArray, blocks: IntArray, k: int, rng: np.random.Generator) -> IntArray:
    """Exchange points between blocks, as many each way, where both gain; a random half may move at a time."""
    n, width = blocks.size, rows.shape[1]
    of_tuple = blocks[rows]
    liking = np.zeros(n * k)
    for column in range(width):
        others = np.delete(of_tuple, column, axis=1)
        agreed = (others == others[:, :1]).all(axis=1)
        liking += np.bincount(rows[agreed, column] * k + others[agreed, 0], minlength=n * k)
        for other in others.T:  # a weaker pull, so that tuples in three blocks draw together too
            liking += 0.3 / (width - 1) * np.bincount(rows[:, column] * k + other, minlength=n * k)
    table = liking.reshape(n, k) + 1e-3 * rng.random((n, k))
    wanted = table.argmax(axis=1)
    gain = table.max(axis=1) - table[np.arange(n), blocks]
    moving = np.flatnonzero((wanted != blocks) & (rng.random(n) < 0.5))
    moving = moving[np.argsort(-gain[moving])]
    # Rank the wishes between each two blocks by gain, either way by itself, and grant as many each way.
    here, there = blocks[moving], wanted[moving]
    pair = np.minimum(here, there) * k + np.maximum(here, there)
    way = 2 * pair + (here < there)
    order = np.argsort(way, kind="stable")
    counts = np.bincount(way, minlength=2 * k * k)
    rank = np.empty(moving.size, dtype=np.int64)
    rank[order] = np.arange(moving.size) - (np.cumsum(counts) - counts)[way[order]]
    granted = moving[rank < np.minimum(counts[0::2], counts[1::2])[pair]]
    moved = blocks.copy()
    moved[granted] = wanted[granted]
    return moved
