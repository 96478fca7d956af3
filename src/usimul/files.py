"""Files of any content: written whole or not at all, and tables read line by line with their line numbers."""

from __future__ import annotations

import contextlib
import csv
import errno
import itertools
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np

from usimul.validation import (
    DiskFullError,
    FileFormatError,
    InputError,
    Problems,
    UsimulError,
    check_parent,
    missing_dependency,
    nearest,
)

__all__ = [
    "CSV",
    "JSONL",
    "PARQUET",
    "SUPERVISION_FORMAT",
    "Table",
    "check_is_file",
    "check_new_file",
    "columns_missing",
    "id_text",
    "named_columns",
    "number_of_text",
    "open_csv",
    "open_jsonl",
    "parquet_module",
    "parsing",
    "read_jsonl",
    "room_for",
    "whole_file",
]

CSV = (".csv", ".tsv")
JSONL = (".jsonl", ".ndjson")
PARQUET = (".parquet", ".pq")
SUPERVISION_FORMAT = "usimul-supervision"
"""What the header of a file of supervision calls its format."""
FIRST_LINES = 1000
"""How many JSON lines are looked at to name the columns of a file that is not read at once."""
_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


@contextlib.contextmanager
def whole_file(path: Path, mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a file that appears under its name only when the block ends without an error."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    try:
        with room_for(path):
            with partial.open(mode, **text) as handle:
                yield handle
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def room_for(path: Path) -> Iterator[None]:
    """Name the file, and what to do, when a disk is full while it is written."""
    try:
        yield
    except OSError as error:
        # NumPy counts what it could not write, and gives no number of the error.
        if error.errno not in _FULL and not re.fullmatch(r"\d+ requested and \d+ written", str(error)):
            raise
        full = DiskFullError(
            f"there must be room for {str(path)!r}. No space left on its disk, or within its quota; nothing of it was "
            "kept. Make room, or choose a place on another disk."
        )
        full.errno = error.errno or errno.ENOSPC
        raise full from error


@contextlib.contextmanager
def parsing(path: Path, what: str, advice: str = "") -> Iterator[None]:
    """Turn whatever a parser makes of damaged bytes into one error that names the file."""
    try:
        yield
    except (UsimulError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # zlib, zipfile, tokenize, Arrow and UTF-8 raise many kinds of errors
        why = "it holds Python objects" if "Object arrays" in str(error) else str(error) or type(error).__name__
        raise FileFormatError(f"{str(path)!r} is not a whole {what} ({why}).{advice and ' '}{advice}") from error


def parquet_module(purpose: str) -> ModuleType:
    """Return ``pyarrow.parquet``, or say how to install it."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise missing_dependency("pyarrow", "parquet", purpose) from error
    module: ModuleType = pyarrow.parquet
    return module


@dataclass(frozen=True)
class Table:
    """Named columns and the rows of a table, each with the number by which a reader of the file finds it."""

    columns: list[str]
    rows: Iterator[tuple[int, Sequence[object]]]
    header: dict[str, Any] | None = None
    unit: str = "line"


def open_csv(path: Path, problems: Problems) -> Table:
    """Read the names of the columns, and the rest as text while it is asked for; ragged lines become problems.

    A file that ends in ``.tsv`` is separated by tabs. Empty lines are passed over; in a table of one column only those
    at its end, because others may be rows with an empty cell.
    """
    lines = _csv_lines(path)
    _, names = next((line for line in lines if line[1]), (0, []))
    columns = [name.strip() for name in names]
    if not columns:
        raise FileFormatError(f"{str(path)!r} is empty; expected a first line with the names of the columns.")
    if all(number_of_text(name) is not None for name in columns):
        raise FileFormatError(
            f"{str(path)!r} must name its columns in the first line, which holds numbers: {', '.join(columns[:6])}. "
            "Write a line of names above it."
        )
    if len(columns) == 1 and ";" in columns[0]:
        raise FileFormatError(
            f"{str(path)!r} must separate columns by commas. Its first line has semicolons: {columns[0][:60]!r}. "
            "Save it with commas."
        )
    return Table(columns, _whole_lines(lines, len(columns), problems))


def _csv_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            reader = csv.reader(handle, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True)
            start = 1
            for cells in reader:
                yield start, cells
                start = reader.line_num + 1
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{str(path)!r} is no text in UTF-8 ({error}). Save it as UTF-8.") from error
    except csv.Error as error:
        raise FileFormatError(f"{str(path)!r} is no whole table; near line {start}: {error}.") from error


def _whole_lines(
    lines: Iterator[tuple[int, list[str]]], width: int, problems: Problems
) -> Iterator[tuple[int, list[str]]]:
    empty: list[int] = []
    for number, cells in lines:
        if not cells:
            empty.append(number)
            continue
        for line in empty if width == 1 else ():
            problems.add(
                "Lines of a table of one column must not be empty, except at its end",
                f"line {line} is",
                advice="Fill in the cell or drop the line; other tables would go out of step with this one.",
            )
        empty.clear()
        if len(cells) == width:
            yield number, cells
        else:
            problems.add(
                f"Lines must have {width} cells, as the first one has",
                f"line {number} has {len(cells)}",
                advice="A comma within a cell needs quotes around the cell.",
            )


def number_of_text(text: str) -> float | None:
    """Return a number as people write it; Python alone would read 1_000 as a thousand.

    >>> number_of_text(" 1e3 "), number_of_text("1_000"), number_of_text("many")
    (1000.0, None, None)
    """
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def read_jsonl(path: Path, problems: Problems, *, doubtful: bool = False) -> Table:
    """Read one JSON object a line; the columns are all keys in order of appearance, a missing key gives None.

    A first object with a version, a kind and the format ``usimul-supervision`` is the header and no row; with
    ``doubtful`` also one that may be a damaged header, for who looks at it closely.
    """
    header: dict[str, Any] | None = None
    found: list[tuple[int, dict[str, Any]]] = []
    for number, row in _json_objects(path, problems):
        if number == 1 and _is_header(row, doubtful):
            header = row
        else:
            found.append((number, row))
    if not found and header is None and not problems:
        raise FileFormatError(f"{str(path)!r} is empty; expected one JSON object a line.")
    names = list(dict.fromkeys(name for _, row in found for name in row))
    return Table(names, ((number, [row.get(name) for name in names]) for number, row in found), header)


def open_jsonl(path: Path, problems: Problems, ignore: Sequence[str] = ()) -> Table:
    """Read JSON lines while they are asked for: the first `FIRST_LINES` name the columns, new keys become problems."""
    rows = (found for found in _json_objects(path, problems) if not (found[0] == 1 and _is_header(found[1], False)))
    first = list(itertools.islice(rows, FIRST_LINES))
    if not first and not problems:
        raise FileFormatError(f"{str(path)!r} is empty; expected one JSON object a line.")
    names = list(dict.fromkeys(name for _, row in first for name in row))
    known = {*names, *ignore}

    def cells() -> Iterator[tuple[int, Sequence[object]]]:
        for number, row in itertools.chain(first, rows):
            for name in row:
                if name not in known:
                    problems.add(
                        f"Every key must occur within the first {FIRST_LINES:,} lines",
                        f"{name!r} is new in line {number}",
                        advice="Leave it out: --ignore.",
                    )
            yield number, [row.get(name) for name in names]

    return Table(names, cells())


def _json_objects(path: Path, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with path.open(encoding="utf-8-sig") as handle:
            for number, line in enumerate(handle, 1):
                if not line.strip():
                    continue
                row = _json_object(line)
                if row is None:
                    problems.add("Every line must be one JSON object", f"line {number} is not: {line.strip()[:40]!r}")
                else:
                    yield number, row
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{str(path)!r} is no text in UTF-8 ({error}). Save it as UTF-8.") from error


def _is_header(row: dict[str, Any], doubtful: bool) -> bool:
    """Whether an object is a header; points may well have a feature called ``format``."""
    others = {"version", "kind"} & set(row)
    return "format" in row and (bool(others) if doubtful else row["format"] == SUPERVISION_FORMAT and len(others) == 2)


def _json_object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def named_columns(names: Sequence[str]) -> list[str]:
    """Return the columns of a Parquet file or Arrow table without the unnamed index that pandas adds.

    >>> named_columns(["age", "__index_level_0__"])
    ['age']
    """
    return [name for name in names if not re.fullmatch(r"__index_level_\d+__", name)]


def id_text(cell: object) -> str | None:
    """Return an id as text: text without spaces around it, or a whole number; None if it is neither.

    >>> id_text(" a7 "), id_text(7), id_text(7.0), id_text(7.5), id_text("")
    ('a7', '7', '7', None, None)
    """
    if isinstance(cell, str):
        return cell.strip() or None
    if isinstance(cell, (int, np.integer)) and not isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, (float, np.floating)) and float(cell).is_integer():  # whole numbers beside empty cells
        return str(int(cell))
    return None


def columns_missing(wanted: Sequence[str], columns: Sequence[str], problems: Problems, *, advice: str = "") -> bool:
    """Note the wanted columns that a table lacks, with those it has; return whether there are any."""
    missing = [name for name in wanted if name not in columns]
    for name in missing:
        has = ", ".join(columns[:20]) + (", ..." if len(columns) > 20 else "") or "none"
        hint = nearest(name, columns, aside=True)
        problems.add(f"A column {name!r} is expected", f"the columns are: {has}{hint}", advice=advice)
    return bool(missing)


def check_is_file(path: Path, what: str) -> None:
    """Raise unless there is a file."""
    if not path.is_file():
        raise InputError(f"there is no {what} file {str(path)!r}.")


def check_new_file(path: Path, suffixes: tuple[str, ...], *, overwrite: bool) -> Path:
    """Raise unless ``path`` can be written as a new file: call it before any work."""
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{str(path)!r} must end in {' or '.join(', '.join(suffixes).rsplit(', ', 1))}.")
    check_parent(path, "output")
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder; name a file.")
    if path.exists() and not overwrite:
        raise InputError(f"{str(path)!r} exists already. Choose another name, or pass --overwrite.")
    return path
