"""What reading points gives: rows, and the names by which a person knows them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from usimul.files import id_text
from usimul.mapped import Rows
from usimul.validation import InputError, IntArray, Problems, nearest

__all__ = ["FINITE", "ID", "IMPUTE", "Points", "check_finite", "check_ids", "note_not_finite", "unknown_ids"]

CHUNK_VALUES = 1 << 22  # numbers looked at together; about 16 MB
NEAREST_OF = 5_000  # looking for a similar id among more of them takes seconds
FINITE = "Cells must be finite numbers that fit into float32"
ID = "id"
"""The column of ids, if no other is named."""
IMPUTE = "Drop or impute such rows."


@dataclass(frozen=True, eq=False, repr=False)
class Points:
    """Points as rows, possibly still on disk.

    Parameters
    ----------
    rows
        One point a row, ``(n, features)``, images flattened with channels first. Images in a mapped file keep their
        shape, channels first: flattening could copy the file.
    image_shape
        ``(channels, height, width)`` of one row, if the points are images.
    ids
        One text for each row by which supervision may name it, or None.
    feature_names
        One name for each column, or None.
    source
        Where the points come from, for messages.

    Examples
    --------
    >>> points = Points(np.eye(3), ids=("ann", "bob", "eve"))
    >>> points
    Points(3 points, 3 features, with ids)
    >>> points.rows_of([["eve", "ann"]])
    array([[2, 0]])
    """

    rows: NDArray[Any]
    image_shape: tuple[int, int, int] | None = None
    ids: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    source: str = ""

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        parts = [f"{len(self)} points", f"{self.n_features} features"]
        if self.image_shape is not None:
            parts.append("images of {} x {} x {}".format(*self.image_shape))
        if self.ids is not None:
            parts.append("with ids")
        return f"Points({', '.join(parts)})"

    @property
    def n_features(self) -> int:
        """Length of a point as a row."""
        return math.prod(self.rows.shape[1:])

    @property
    def chunk(self) -> int:
        """How many rows to look at together."""
        return max(1, CHUNK_VALUES // self.n_features)

    def chunks(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield the number of the first row and some rows as float32, one after the other; all must be finite."""
        return Rows(self.rows, repr(self.source)).chunks(self.chunk)

    @cached_property
    def places(self) -> dict[str, int]:
        """Row number of each id; empty without ids."""
        return {name: row for row, name in enumerate(self.ids or ())}

    def rows_of(self, ids: ArrayLike) -> IntArray:
        """Return row numbers in the shape of ``ids``; all unknown ids are told at once."""
        if self.ids is None:
            raise InputError(f"the points of {self.source!r} have no ids. Name them by row numbers.")
        wanted = np.asarray(ids, dtype=object)
        texts = [id_text(cell) for cell in wanted.ravel()]
        problems = Problems(self.source)
        for cell, text in zip(wanted.ravel(), texts, strict=True):
            if text not in self.places:
                problems.add(*unknown_ids(str(cell), self.places, first=not problems))
        problems.refuse()
        rows = np.array([self.places[text] for text in texts if text is not None], dtype=np.int64)
        return rows.reshape(wanted.shape)


def unknown_ids(text: str, known: dict[str, int], *, first: bool) -> tuple[str, str]:
    """Return the two parts of a problem with an unknown id; the nearest known one for the first, if it is cheap."""
    hint = nearest(text, known, aside=True) if first and len(known) <= NEAREST_OF else ""
    return "Ids must be those of points", f"{text!r} is none{hint}"


def check_ids(
    ids: Sequence[object], where: Sequence[int], unit: str, problems: Problems, *, repeats: bool = False
) -> tuple[str, ...]:
    """Return ids as text; empty ones become problems, and repeated ones unless they are wanted.

    What stands in place of a problem names no point, so that others can still be looked up.
    """
    texts, first = [], dict[str, int]()
    for cell, number in zip(ids, where, strict=True):
        text = id_text(cell)
        if text is None:
            shown = "empty" if cell is None or cell == "" else repr(cell)
            problems.add("Every point needs an id, a text or a whole number", f"{unit} {number} has {shown}")
        elif text in first and not repeats:
            problems.add("Ids must differ", f"{text!r} is the id of {unit}s {first[text]} and {number}")
            text = None
        else:
            first[text] = number
        texts.append(f"\0{number}" if text is None else text)
    return tuple(texts)


def check_finite(points: Points, problems: Problems) -> None:
    """Look at all numbers, chunk by chunk; those that are not finite become problems."""
    for start, part in Rows(points.rows, repr(points.source)).chunks(points.chunk, finite=False):
        note_not_finite(part, points.rows[start : start + len(part)], start, points.feature_names, problems)


def note_not_finite(
    part: NDArray[np.float32],
    given: NDArray[Any],
    start: int,
    names: Sequence[str] | None,
    problems: Problems,
) -> None:
    """Note the numbers of ``part``, rows from ``start``, that are not finite, as they were ``given``."""
    finite = np.isfinite(part)
    if finite.all():
        return
    bad = np.argwhere(~finite)
    for row, column in bad[: problems.SHOWN].tolist():
        name = column if names is None else repr(names[column])
        problems.add(FINITE, f"row {start + row}, column {name} is {given[row].reshape(-1)[column]}", advice=IMPUTE)
    problems.add(FINITE, times=max(0, len(bad) - problems.SHOWN))
