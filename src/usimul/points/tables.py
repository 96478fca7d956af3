"""Points from tables of text: CSV and JSON lines."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from usimul.files import JSONL, Table, columns_missing, number_of_text, open_csv, read_jsonl
from usimul.points.base import CHUNK_VALUES, FINITE, ID, IMPUTE, Points, check_ids
from usimul.validation import Problems

__all__ = ["NO_ROWS", "Columns", "choose_columns", "read_table", "table_parts"]

NO_ROWS = "there are no rows below the names of the columns"


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are read: the positions of the features, and of the ids."""

    names: tuple[str, ...]
    features: tuple[int, ...]
    id: int | None


def choose_columns(
    columns: Sequence[str], id_column: str | None, ignore: Sequence[str], problems: Problems
) -> Columns | None:
    """Find the column of ids, ``id`` if none is named, and take all others that are not ignored as features."""
    before = len(problems)
    columns_missing([*([id_column] if id_column else []), *ignore], columns, problems)
    for name in sorted({name for name in columns if name and columns.count(name) > 1}):
        problems.add("Columns must have different names", f"{name!r} occurs {columns.count(name)} times")
    for place in (place for place, name in enumerate(columns, 1) if not name):
        problems.add("Columns must have names", f"column {place} has none", advice="pandas: to_csv(..., index=False).")
    chosen = id_column or (ID if ID in columns and ID not in ignore else None)
    features = tuple(i for i, name in enumerate(columns) if name != chosen and name not in ignore)
    if not features:
        problems.add("At least one column of numbers is expected", f"the columns are: {', '.join(columns) or 'none'}")
    if len(problems) > before:
        return None
    place_of_id = list(columns).index(chosen) if chosen is not None else None
    return Columns(tuple(columns[i] for i in features), features, place_of_id)


def read_table(path: Path, id_column: str | None, ignore: Sequence[str], problems: Problems) -> Points | None:
    """Read a CSV or JSON lines file with one point a row."""
    is_text = path.suffix.lower() not in JSONL
    table = open_csv(path, problems) if is_text else read_jsonl(path, problems)
    chosen = choose_columns(table.columns, id_column, ignore, problems)
    if chosen is None:
        return None
    numbers: list[int] = []
    ids: list[object] = []
    parts: list[NDArray[np.float64]] = []
    for where, values, named in table_parts(table, chosen, is_text, problems):
        numbers += where
        parts.append(values)
        ids += named
    if not numbers:
        problems.add("At least one point is expected", NO_ROWS)
        return None
    texts = None if chosen.id is None else check_ids(ids, numbers, table.unit, problems)
    return Points(np.concatenate(parts), None, texts, chosen.names, str(path))


def table_parts(
    table: Table, chosen: Columns, is_text: bool, problems: Problems
) -> Iterator[tuple[list[int], NDArray[np.float64], list[object]]]:
    """Yield the numbers of some lines, their features, and their cells of ids, if there are any."""
    size = max(1, CHUNK_VALUES // 8 // len(chosen.features))
    while chunk := list(itertools.islice(table.rows, size)):
        where = [number for number, _ in chunk]
        cells = [[row[i] for i in chosen.features] for _, row in chunk]
        values = numbers_of(cells, where, chosen.names, table.unit, is_text, problems)
        yield where, values, [] if chosen.id is None else [row[chosen.id] for _, row in chunk]


def numbers_of(
    cells: list[list[object]],
    where: Sequence[int],
    names: Sequence[str],
    unit: str,
    is_text: bool,
    problems: Problems,
) -> NDArray[np.float64]:
    """Return cells as numbers; each that is no finite number becomes a problem with its text, and zero."""
    try:
        if not is_text and not all(isinstance(cell, (int, float)) for row in cells for cell in row):
            raise ValueError
        if is_text and any("_" in "".join(map(str, row)) for row in cells):  # NumPy would read 1_000 as a thousand
            raise ValueError
        found = np.array(cells, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        found = np.array([[_number(cell, is_text) for cell in row] for row in cells])
    with np.errstate(over="ignore"):
        bad = ~np.isfinite(found.astype(np.float32))
    for row, column in np.argwhere(bad).tolist():
        cell = cells[row][column]
        shown = "empty" if cell is None or (isinstance(cell, str) and not cell.strip()) else repr(cell)[:40]
        problems.add(FINITE, f"{unit} {where[row]}, column {names[column]!r} is {shown}", advice=IMPUTE)
    found[bad] = 0.0
    return found


def _number(cell: object, is_text: bool) -> float:
    """Return NaN for what is no number."""
    if is_text:
        found = number_of_text(cell) if isinstance(cell, str) else None
        return float("nan") if found is None else found
    if not isinstance(cell, (int, float)):
        return float("nan")
    try:
        return float(cell)
    except (ValueError, OverflowError):
        return float("nan")
