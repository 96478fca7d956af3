"""From the forms in which other libraries hold pairs and triplets to points and row numbers.

metric-learn and similar libraries hold row numbers beside a pool, or copies of the points themselves.
`pool_of_copies` and `pool_of_frames` find the pool behind copies; `pairs_with_signs` and `nearer_triplets` say what the
tuples mean here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from usimul.points import ID, Points, check_ids, read_points
from usimul.supervision import DissimilarPairs, SimilarPairs, TripletAnswers, Triplets
from usimul.validation import InputError, IntArray, Problems, check_labels_subset, check_rows

__all__ = ["nearer_triplets", "pairs_with_signs", "pool_of_copies", "pool_of_frames"]


def pairs_with_signs(
    pairs: ArrayLike, y: ArrayLike, *, n_points: int | None = None
) -> tuple[SimilarPairs, DissimilarPairs]:
    """Split pairs of row numbers by their sign: +1 for the same class, -1 for different ones.

    If the pairs were drawn independently and each was asked about, ``PairAnswers(pairs, values=y)`` says more.

    >>> similar, dissimilar = pairs_with_signs([[0, 1], [2, 3], [4, 5]], [1, -1, 1], n_points=6)
    >>> similar.rows.tolist(), dissimilar.rows.tolist()
    ([[0, 1], [4, 5]], [[2, 3]])
    """
    rows = check_rows(pairs, "pairs", width=2, n_points=n_points)
    signs = check_labels_subset(y, "y", n=len(rows))
    return SimilarPairs(rows[signs > 0], n_points=n_points), DissimilarPairs(rows[signs < 0], n_points=n_points)


def nearer_triplets(
    triplets: ArrayLike, answers: ArrayLike | None = None, *, n_points: int | None = None
) -> Triplets | TripletAnswers:
    """Read comparisons (a, b, c), "a is nearer to b than to c", as statements about classes.

    With two classes as the only distance, "b is at least as near to a as c" fails exactly if a and c share a class that
    b has not. So b shares its class with a or with c, and nothing more follows: it is the event of an
    uncertain-similarity triplet whose anchor is b, the positive.

    Parameters
    ----------
    triplets
        Row numbers, ``(n, 3)``. Without ``answers``, as in metric-learn: anchor, positive, negative.
    answers
        +1 where the point in the second column was found at least as near as the one in the third, -1 where it was not;
        then the columns are in the order in which they were asked about.
    n_points
        Size of the pool.

    Returns
    -------
    Triplets or TripletAnswers
        With answers the exact record, `TripletAnswers`. Without them `Triplets` of (positive, anchor, negative).

    Notes
    -----
    Prefer ``answers`` if they are known. A list in which each answered triple was brought into the order anchor,
    positive, negative holds those with y_a = y_b != y_c twice as often, beside the others, as kept triplets of the
    world ``definition1`` do: they come from both orders of asking, the others from one. And if positives and negatives
    were picked by label, anchor and positive are similar pairs, anchor and negative dissimilar ones, which says more:
    use those kinds. The world of the result therefore stays unset.

    Examples
    --------
    >>> nearer_triplets([[0, 1, 2]]).rows.tolist()
    [[1, 0, 2]]
    >>> nearer_triplets([[0, 1, 2], [0, 2, 1]], [1, -1])
    TripletAnswers(2 tuples)
    """
    rows = check_rows(triplets, "triplets", width=3, n_points=n_points)
    if answers is None:
        return Triplets(rows[:, [1, 0, 2]], n_points=n_points)
    signs = check_labels_subset(answers, "answers", n=len(rows)).astype(np.float64)
    return TripletAnswers(rows, values=signs, n_points=n_points)


def pool_of_copies(tuples: ArrayLike) -> tuple[NDArray[Any], IntArray]:
    """Return the pool behind copied points ``(n, width, features)``, and the tuples as its row numbers ``(n, width)``.

    Equal rows, to the last bit, are one point; the pool has them in order of first appearance. Two different points of
    the same features therefore become one, and a tuple that holds both is refused when supervision is made of it.

    >>> X, rows = pool_of_copies([[[0.0, 1.0], [2.0, 3.0]], [[2.0, 3.0], [4.0, 5.0]]])
    >>> X.shape, rows.tolist()
    ((3, 2), [[0, 1], [1, 2]])
    """
    copies = np.asarray(tuples)
    if copies.ndim != 3 or copies.size == 0:
        raise InputError(f"`tuples` must have shape (n, width, features), all above 0. Got shape {copies.shape}.")
    n, width, n_features = copies.shape
    # Zero may come with a minus sign, which is the same point but other bytes.
    flat = read_points(copies.reshape(n * width, n_features)).rows + np.zeros((), dtype=copies.dtype)
    flat = np.ascontiguousarray(flat)
    keys = flat.view(np.dtype((np.void, flat.dtype.itemsize * n_features)))[:, 0]
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return flat[first[order]], place[inverse].reshape(n, width)


def pool_of_frames(*frames: Any, ignore: tuple[str, ...] = ()) -> tuple[Points, IntArray]:
    """Return the pool behind tables of equal length, of which row i holds the first, second, ... point of tuple i.

    Each table is a pandas DataFrame or a ``pyarrow.Table``, with the same names of columns in the same order. Points
    are told apart by their column ``id`` if all tables have one, else by all of their features. The same id with other
    features is refused.
    """
    if len(frames) < 2:
        raise InputError(f"at least two tables are expected, one for each place in a tuple. Got {len(frames)}.")
    parts = [_with_repeats(frame, ignore) for frame in frames]
    head = parts[0]
    for part in parts[1:]:
        if len(part) != len(head) or part.feature_names != head.feature_names:
            raise InputError(
                f"the tables must have the same number of rows and the same columns. Got {len(head)} rows of "
                f"{head.feature_names} and {len(part)} of {part.feature_names}."
            )
    if any(part.ids is None for part in parts):
        X, rows = pool_of_copies(np.stack([part.rows for part in parts], axis=1))
        return Points(X, None, None, head.feature_names, head.source), rows
    return _pool_by_ids(parts)


def _with_repeats(frame: Any, ignore: tuple[str, ...]) -> Points:
    """Read a table in which a point may occur in several rows, with the same id each time."""
    columns = list(getattr(frame, "column_names", getattr(frame, "columns", ())))
    if ID not in columns or ID in ignore:
        return read_points(frame, ignore=ignore)
    cells = frame[ID].tolist() if hasattr(frame[ID], "tolist") else frame[ID].to_pylist()
    points = read_points(frame, ignore=(*ignore, ID))
    problems = Problems(points.source)
    ids = check_ids(cells, range(len(cells)), "row", problems, repeats=True)
    problems.refuse()
    return replace(points, ids=ids)


def _pool_by_ids(parts: list[Points]) -> tuple[Points, IntArray]:
    ids = [name for names in zip(*(part.ids or () for part in parts), strict=True) for name in names]
    copies = np.stack([part.rows for part in parts], axis=1).reshape(len(ids), -1)
    place = {name: row for row, name in enumerate(dict.fromkeys(ids))}
    rows = np.array([place[name] for name in ids], dtype=np.int64)
    first = np.full(len(place), len(ids))
    np.minimum.at(first, rows, np.arange(len(ids)))
    X = copies[first]
    problems = Problems(parts[0].source)
    for name in dict.fromkeys(ids[i] for i in np.flatnonzero((copies != X[rows]).any(axis=1))):
        problems.add("An id must always have the same features", repr(name))
    problems.refuse()
    return Points(X, None, tuple(place), parts[0].feature_names, parts[0].source), rows.reshape(-1, len(parts))
