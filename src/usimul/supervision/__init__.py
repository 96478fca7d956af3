"""What was observed: frozen tuples of row indices into a pool of points. Never how it is learned, never copies.

A supervision object holds ``rows``, one tuple a line, and may also hold the rows of unlabeled points and the rows of a
few points whose label is known.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from usimul.supervision.base import Supervision
from usimul.supervision.files import read_file
from usimul.supervision.kinds import (
    WORLDS,
    ComparedPairs,
    ConfidenceDifference,
    DissimilarPairs,
    Labels,
    PairAnswers,
    SimilarityConfidence,
    SimilarPairs,
    TripletAnswers,
    Triplets,
    Unlabeled,
    UnlabeledSets,
)
from usimul.supervision.tables import Named, Pool, agreed, passed_over, read_tables, write_supervision
from usimul.validation import FileFormatError, InputError, UsimulError, check_choice

__all__ = [
    "WORLDS",
    "ComparedPairs",
    "ConfidenceDifference",
    "DissimilarPairs",
    "Labels",
    "PairAnswers",
    "SimilarPairs",
    "SimilarityConfidence",
    "Supervision",
    "TripletAnswers",
    "Triplets",
    "Unlabeled",
    "UnlabeledSets",
    "load_supervision",
    "passed_over",
    "read_supervision",
    "write_supervision",
]


def load_supervision(path: str | os.PathLike[str]) -> Supervision:
    """Read a supervision file; the object has the class that was saved.

    Raises
    ------
    FileFormatError
        If the file is damaged, is no supervision file, or is of another format version.
    """
    kind, content = read_file(path)
    known = Supervision.kinds()
    if not isinstance(kind, str) or kind not in known:
        raise FileFormatError(
            f"{str(path)!r} holds supervision of the unknown kind {kind!r}; known kinds: {', '.join(known)}."
        )
    try:
        return known[kind](**content)
    except UsimulError as error:
        raise FileFormatError(f"{str(path)!r} holds impossible supervision: {error}") from error


def read_supervision(
    path: str | os.PathLike[str],
    *,
    points: Named | None = None,
    ids: Sequence[object] | None = None,
    kind: str | None = None,
    by: str | None = None,
    world: str | None = None,
    n_points: int | None = None,
    n_asked: int | None = None,
    n_accepted: int | None = None,
) -> Supervision:
    """Read supervision from ``.npz``, or from a table: CSV, JSON lines or Parquet, one tuple a row.

    The columns of a table are ``anchor, companion1, companion2`` for triplets, ``first, second`` for pairs with
    ``confidence``, ``difference`` or ``answer`` (yes or no, 1 or -1) where the kind has one, ``first, second, third,
    answer`` for triplet answers, and ``point`` with ``label`` or ``share`` for single points. Other columns are passed
    over. With a column ``role``, rows may be a ``tuple``, an ``unlabeled`` point, or a ``known`` point with its
    ``label``; the point stands in the first of the columns above.

    Parameters
    ----------
    path
        File to read.
    points, ids
        The points that the tuples are about, or only their ids. Neither is needed if the table holds row numbers.
    kind
        Kind of supervision, needed where the columns fit several: similar, dissimilar and compared pairs look alike.
    by
        ``ids`` or ``rows``: what names a point in a table. By default ids, if the points have some.
    world, n_points, n_asked, n_accepted
        What the file does not say itself: CSV says none of it. It must not contradict the file.

    Raises
    ------
    InputError
        With all problems of a table, by line.
    FileFormatError
        If the file is damaged, or of another format version or kind.
    """
    source = Path(path)
    given = {"world": world, "n_points": n_points, "n_asked": n_asked, "n_accepted": n_accepted}
    if source.suffix.lower() == ".npz":
        return _read_npz(source, Pool.of(points, ids), kind, by, given)
    return read_tables(source, points, ids, kind, by, **given)


def _read_npz(path: Path, pool: Pool, kind: str | None, by: str | None, given: Mapping[str, object]) -> Supervision:
    if kind is not None:
        check_choice(kind, Supervision.kinds(), "kind")
    if by == "ids":
        raise InputError(
            f"{str(path)!r} holds row numbers, as every .npz file of supervision does. Leave out by='ids'."
        )
    sup = load_supervision(path)
    agreed(path, "kind", sup.kind, kind)
    said = {name: agreed(path, name, getattr(sup, name), value) for name, value in given.items()}
    if pool.size is not None:
        sup.check_pool(pool.size)
    added = {name: value for name, value in said.items() if getattr(sup, name) is None and value is not None}
    return replace(sup, **added) if added else sup
