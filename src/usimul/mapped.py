"""Rows of an array that may lie in a file and be larger than memory: read in pieces, as float32, never copied whole.

Pages of a mapped file count as resident memory of the process from when they are first read until the system wants
them back, so a pass over a file would look like a copy of it, and a limit on memory could end the process. Pages are
therefore given back after every `RESIDENT` bytes. They stay in the system's file cache, from which they come back at
little cost.

Examples
--------
>>> rows = Rows(np.arange(12, dtype=np.uint8).reshape(4, 3))
>>> rows.take(np.array([2, 0, 2]))
array([[6., 7., 8.],
       [0., 1., 2.],
       [6., 7., 8.]], dtype=float32)
>>> mean, deviation = rows.moments().by_feature()
>>> mean
array([4.5, 5.5, 6.5])
"""

from __future__ import annotations

import contextlib
import math
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeGuard

import numpy as np
from numpy.typing import NDArray

from usimul.validation import InputError, IntArray, refuse_not_finite

__all__ = ["Moments", "Rows", "is_mapped"]

RESIDENT = 1 << 27  # bytes of a file that may be touched before its pages are given back
WINDOW = 1 << 21  # bytes that a system may map around one touched place; Linux 6.18 maps a whole large folio
BLOCK_VALUES = 1 << 18  # numbers looked at together; 2 MB as float64, which a processor's cache holds
SHOWN = 5  # rows named in an error

Float32Array = NDArray[np.float32]
FloatArray = NDArray[np.float64]


def is_mapped(X: object) -> TypeGuard[np.memmap[Any, Any]]:
    """Whether the numbers of ``X`` lie in a mapped file; a copy of an ``np.memmap`` has its type, but not its file."""
    return isinstance(X, np.memmap) and _map_of(X) is not None


def _map_of(array: object) -> mmap.mmap | None:
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, mmap.mmap) else None


def _file_map_of(array: object) -> mmap.mmap | None:
    """Return the map behind an array if it surely shows a file: private pages would lose what was written into them."""
    certain = False
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):  # views that are plain arrays know neither mode nor file, but their base does
            if array.filename is None or array.mode not in ("r", "r+", "w+"):
                return None
            certain = True
        array = array.base
    return array if certain and isinstance(array, mmap.mmap) else None


@dataclass(frozen=True)
class Moments:
    """Mean and sum of squared distances from it, of each feature over ``n`` rows."""

    n: int
    mean: FloatArray
    squares: FloatArray

    def merge(self, other: Moments) -> Moments:
        """Moments of both sets of rows together (Chan, Golub, LeVeque 1983), which no large mean can spoil."""
        n = self.n + other.n
        apart = other.mean - self.mean
        return Moments(
            n,
            self.mean + apart * (other.n / n),
            self.squares + other.squares + apart**2 * (self.n * other.n / n),
        )

    def by_feature(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of each feature; of a single row the deviation is 0."""
        return self.mean, np.sqrt(self.squares / max(self.n - 1, 1))

    def overall(self) -> tuple[float, float]:
        """Mean and standard deviation of all numbers together."""
        mean = float(self.mean.mean())
        squares = float(self.squares.sum() + self.n * np.square(self.mean - mean).sum())
        return mean, math.sqrt(squares / max(self.n * self.mean.size - 1, 1))


class Rows:
    """Rows of an array, in memory or mapped, as float32; every row that is handed out is finite.

    Parameters
    ----------
    array
        Real numbers, ``(n, ...)``; what follows the first axis is one row, flattened in C order.
    where
        What messages call it; None names the file, if there is one.
    """

    def __init__(self, array: NDArray[Any], where: str | None = None) -> None:
        filename = getattr(array, "filename", None)
        self.where = where or ("`X`" if filename is None else f"`X`, mapped from {str(filename)!r},")
        if array.dtype.kind not in "fiub":
            raise InputError(f"{self.where} must hold real numbers. Got dtype {array.dtype}.")
        if array.ndim < 2 or array.size == 0:
            raise InputError(f"{self.where} must hold points as rows, shape (n, features). Got shape {array.shape}.")
        self.shape = (len(array), math.prod(array.shape[1:]))
        self._map = _file_map_of(array)
        self._array = np.asarray(array)  # indexing the subclass is slower
        self._touched = 0
        between = sum((n - 1) * abs(stride) for n, stride in zip(array.shape[1:], array.strides[1:], strict=True))
        # A row in one piece, or numbers scattered over the file, as in Fortran order.
        self._pieces = 1 if between < 2 * array.itemsize * self.shape[1] else self.shape[1]
        self._piece_bytes = between + array.itemsize if self._pieces == 1 else array.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, rows: IntArray) -> Float32Array:
        """Rows by number, in any order and with repeats."""
        used, place = np.unique(rows, return_inverse=True)
        values = self._gather(used)
        if self._doubtful(values):
            self._refuse(values, used)
        return values if np.array_equal(used, rows) else values[place]

    def chunks(self, size: int, *, finite: bool = True) -> Iterator[tuple[int, Float32Array]]:
        """Yield the number of the first row and at most ``size`` rows, one after the other.

        Rows that are not finite are refused, unless ``finite`` is False, for who wants to list them all.
        """
        for start in range(0, len(self), size):
            values = self._slice(start, start + size)
            if finite and self._doubtful(values):
                self._refuse(values, np.arange(start, start + len(values)))
            yield start, values
        self.release()

    def moments(self, rows: IntArray | None = None) -> Moments:
        """Moments of the given rows or of all, in one pass; all rows that are not finite are found by it."""
        n = len(self) if rows is None else len(rows)
        size = max(1, BLOCK_VALUES // self.shape[1])
        found = Moments(0, np.zeros(self.shape[1]), np.zeros(self.shape[1]))
        bad: list[IntArray] = []
        for start in range(0, n, size):
            part = None if rows is None else np.unique(rows[start : start + size], return_inverse=True)
            values = self._slice(start, start + size) if part is None else self._gather(part[0])[part[1]]
            block = _moments(values)
            if np.isfinite(block.squares).all():
                found = found.merge(block)
            else:
                here = np.flatnonzero(~np.isfinite(values).all(axis=1)) + start
                bad.append(here if rows is None else rows[here])
        self.release()
        if bad:
            every = np.unique(np.concatenate(bad))
            self._refuse(self._gather(every[:SHOWN]), every, n)
        return found

    def release(self) -> None:
        """Give back the pages that were read."""
        self._touched = 0
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            with contextlib.suppress(OSError):  # locked memory stays, as whoever locked it wants
                self._map.madvise(mmap.MADV_DONTNEED)

    def _touch(self, n_bytes: int) -> None:
        self._touched += n_bytes
        if self._touched > RESIDENT:
            self.release()

    def _slice(self, start: int, stop: int) -> Float32Array:
        part = self._array[start:stop]
        with np.errstate(over="ignore"):  # too large for float32: becomes infinite, and is then refused
            values = np.array(part, dtype=np.float32, order="C").reshape(len(part), -1)
        self._touch(self._pieces * (len(part) * abs(self._array.strides[0]) + WINDOW))
        return values

    def _gather(self, used: IntArray) -> Float32Array:
        """Rows by number, which must ascend: the file is then read in one direction."""
        values = np.empty((len(used), self.shape[1]), dtype=np.float32)
        each = self._pieces * (self._piece_bytes + WINDOW)
        size = max(1, RESIDENT // each)
        for start in range(0, len(used), size):
            part = used[start : start + size]
            with np.errstate(over="ignore"):
                values[start : start + size] = self._array[part].reshape(len(part), -1)
            between = int(part[-1] - part[0] + 1) * abs(self._array.strides[0]) + WINDOW
            self._touch(min(len(part) * each, self._pieces * between))
        return values

    def _doubtful(self, values: Float32Array) -> bool:
        return self._array.dtype.kind == "f" and not np.isfinite(values).all()

    def _refuse(self, values: Float32Array, rows: IntArray, n_seen: int | None = None) -> NoReturn:
        """Raise: ``values`` are the first of ``rows``, and some number among them is not finite."""
        places = np.argwhere(~np.isfinite(values))
        row, column = rows[places[0, 0]], int(places[0, 1])
        bad = rows if n_seen is not None else rows[np.unique(places[:, 0])]
        number = self._array[row].reshape(-1)[column]
        refuse_not_finite(self.where, bad, column, number, n_seen=n_seen or len(rows))


def _moments(values: Float32Array) -> Moments:
    wide = values.astype(np.float64)
    with np.errstate(invalid="ignore"):  # infinite numbers make the squares NaN, which is how they are found
        mean = wide.mean(axis=0)
        wide -= mean
    return Moments(len(wide), mean, np.einsum("ij,ij->j", wide, wide))
