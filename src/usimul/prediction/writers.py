"""Tables of predictions, written part by part: CSV, Parquet, or a structured array."""

from __future__ import annotations

import contextlib
import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from usimul.files import PARQUET, parquet_module
from usimul.validation import IntArray

__all__ = ["SUFFIXES", "Writer", "csv_cell", "writer_for"]

SUFFIXES = (".csv", *PARQUET, ".npy")
LINES = 1 << 15  # formatted together; more would only need more memory
GROUP = 1 << 17  # rows of one group of a Parquet file
RECORDS = 1 << 16  # moved together when a longer id needs wider records

Names = Sequence[str] | range
FloatArray = NDArray[np.float64]


class Writer(ABC):
    """Takes parts of a table: the names or numbers of the rows, which class each has, and columns of numbers."""

    @abstractmethod
    def write(self, names: Names, codes: IntArray, numbers: Sequence[FloatArray]) -> None:
        """Append a part; ``codes`` are 0 for the negative class and 1 for the positive one."""

    @abstractmethod
    def close(self, *, whole: bool) -> None:
        """Write what is still to be written, unless nobody will keep the file; the file itself is the caller's."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(whole=kind is None)


def writer_for(path: Path, handle: IO[bytes], columns: Sequence[str], classes: NDArray[Any]) -> Writer:
    """Return the writer for the suffix of a file, which ``handle`` has open for writing and reading."""
    suffix = path.suffix.lower()
    if suffix in PARQUET:
        return ParquetWriter(handle, columns, classes, f"Writing {str(path)!r}")
    kind = CsvWriter if suffix == ".csv" else ArrayWriter
    return kind(handle, columns, classes)


class CsvWriter(Writer):
    """Numbers with nine digits, which tell every float32 from its neighbours."""

    def __init__(self, handle: IO[bytes], columns: Sequence[str], classes: NDArray[Any]) -> None:
        self._handle = handle
        self._labels = np.array([csv_cell(str(label)) for label in classes.tolist()], dtype=object)
        self._width = len(columns)
        handle.write((",".join(columns) + "\n").encode())

    def write(self, names: Names, codes: IntArray, numbers: Sequence[FloatArray]) -> None:
        """Append lines."""
        for start in range(0, len(codes), LINES):
            part = slice(start, start + LINES)
            some: Names = names[part]
            if not isinstance(some, range):
                text = "".join(some)
                if any(mark in text for mark in ',"\r\n'):
                    some = [csv_cell(name) for name in some]
            n = len(some)
            cells: list[Any] = [None] * (self._width * n)
            cells[0 :: self._width] = some
            cells[1 :: self._width] = self._labels[codes[part]].tolist()
            for place, column in enumerate(numbers, 2):
                cells[place :: self._width] = column[part].tolist()
            # One format for all lines takes a quarter of the time of csv.writer.
            line = "%s,%s" + ",%.9g" * len(numbers) + "\n"
            self._handle.write(((line * n) % tuple(cells)).encode())

    def close(self, *, whole: bool) -> None:
        """Do nothing: every line is written."""


def csv_cell(text: str) -> str:
    """Return a cell of a CSV file, in quotes where it needs them.

    >>> csv_cell("a7"), csv_cell('ward "2", bed 1')
    ('a7', '"ward ""2"", bed 1"')
    """
    if any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


class ParquetWriter(Writer):
    """One group of rows after the other; small parts are gathered."""

    def __init__(self, handle: IO[bytes], columns: Sequence[str], classes: NDArray[Any], purpose: str) -> None:
        self._parquet = parquet_module(purpose)
        import pyarrow

        self._arrow = pyarrow
        self._labels = pyarrow.array(classes.tolist())
        self._waiting: list[Any] = []
        first = pyarrow.string() if columns[0] == "id" else pyarrow.int64()
        kinds = [first, self._labels.type, *[pyarrow.float64()] * (len(columns) - 2)]
        self._schema = pyarrow.schema(list(zip(columns, kinds, strict=True)))
        self._writer = self._parquet.ParquetWriter(handle, self._schema)

    def write(self, names: Names, codes: IntArray, numbers: Sequence[FloatArray]) -> None:
        """Append rows; they are written when there are enough for a group."""
        first = np.arange(names.start, names.stop) if isinstance(names, range) else list(names)
        columns = [first, self._labels.take(self._arrow.array(codes)), *numbers]
        self._waiting.append(self._arrow.table(columns, schema=self._schema))
        if sum(table.num_rows for table in self._waiting) >= GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(self._arrow.concat_tables(self._waiting), row_group_size=GROUP)
        self._waiting = []

    def close(self, *, whole: bool) -> None:
        """Write the last group, and the foot of the file."""
        if whole:
            self._flush()
            self._writer.close()
            return
        # Arrow's writer would write to the file when it is forgotten, and the file is closed then.
        with contextlib.suppress(Exception):  # what went wrong first is what counts
            self._writer.close()
        self._writer.is_open = False


class ArrayWriter(Writer):
    """Records of one length: a longer id than any before makes all that were written longer."""

    def __init__(self, handle: IO[bytes], columns: Sequence[str], classes: NDArray[Any]) -> None:
        self._handle, self._columns, self._n = handle, columns, 0
        # Objects would need pickle.
        self._labels = np.array(classes.tolist()) if classes.dtype.hasobject else classes
        self._dtype = self._with_ids(1)
        self._start = self._write_header()

    def _with_ids(self, width: int) -> np.dtype[Any]:
        first = np.dtype(f"U{width}") if self._columns[0] == "id" else np.dtype(np.int64)
        kinds = [first, self._labels.dtype, *[np.dtype(np.float64)] * (len(self._columns) - 2)]
        return np.dtype(list(zip(self._columns, kinds, strict=True)))

    def _write_header(self) -> int:
        """Write the header for the rows so far, whose number does not change its length, and return where it ends."""
        self._handle.seek(0)
        described = np.lib.format.header_data_from_array_1_0(np.empty(0, self._dtype))
        np.lib.format.write_array_header_1_0(self._handle, {**described, "shape": (self._n,)})
        return self._handle.tell()

    def write(self, names: Names, codes: IntArray, numbers: Sequence[FloatArray]) -> None:
        """Append records."""
        part = np.empty(len(codes), self._dtype)
        if isinstance(names, range):
            part[self._columns[0]] = np.arange(names.start, names.stop)
        else:
            ids = np.array(names)
            if ids.dtype.itemsize > self._dtype[0].itemsize:
                self._widen(self._with_ids(ids.dtype.itemsize // 4))
                part = np.empty(len(codes), self._dtype)
            part[self._columns[0]] = ids
        part[self._columns[1]] = self._labels[codes]
        for name, column in zip(self._columns[2:], numbers, strict=True):
            part[name] = column
        self._handle.write(part.tobytes())
        self._n += len(part)

    def _widen(self, dtype: np.dtype[Any]) -> None:
        """Rewrite all records, the last ones first: where they go, nothing lies that is still to be read."""
        old, start = self._dtype, self._start
        self._dtype = dtype
        blocks = list(self._blocks())
        moved = np.lib.format.header_data_from_array_1_0(np.empty(0, dtype))
        new_start = _header_length(moved, self._n)
        for first, stop in reversed(blocks):
            self._handle.seek(start + first * old.itemsize)
            records = np.frombuffer(self._handle.read((stop - first) * old.itemsize), old)
            self._handle.seek(new_start + first * dtype.itemsize)
            self._handle.write(records.astype(dtype).tobytes())
        self._start = self._write_header()
        assert self._start == new_start
        self._handle.seek(new_start + self._n * dtype.itemsize)

    def _blocks(self) -> Iterator[tuple[int, int]]:
        for start in range(0, self._n, RECORDS):
            yield start, min(start + RECORDS, self._n)

    def close(self, *, whole: bool) -> None:
        """Write the number of rows into the header."""
        if whole:
            self._write_header()


def _header_length(described: dict[str, Any], n: int) -> int:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {**described, "shape": (n,)})
    return buffer.tell()
