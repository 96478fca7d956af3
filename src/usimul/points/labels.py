"""Labels from files: for drawing supervision in experiments, and for measuring accuracy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from usimul.files import (
    CSV,
    JSONL,
    PARQUET,
    Table,
    columns_missing,
    named_columns,
    open_csv,
    parquet_module,
    parsing,
    read_jsonl,
)
from usimul.points.arrays import read_array
from usimul.points.base import ID, check_ids
from usimul.validation import InputError, Problems

__all__ = ["read_labels"]

LABEL = "label"
FORMATS = (".npy", ".npz", *CSV, *JSONL, *PARQUET)


def read_labels(
    path: Path, *, key: str | None = None, column: str | None = None, id_column: str | None = None
) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    """Read one label for each point, and the ids beside them if the file is a table that has them.

    Of a table, take the column that is named, else ``label``, else the only one beside the ids.
    """
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise InputError(f"{str(path)!r} must end in {', '.join(FORMATS)}.")
    table_options = {"column": column, "id_column": id_column}
    for name, value in table_options.items() if suffix in FORMATS[:2] else [("key", key)]:
        if value:
            raise InputError(f"`{name}` does not belong to {str(path)!r}; leave it out.")
    if suffix in FORMATS[:2]:
        labels = np.array(read_array(path, key))
        if labels.ndim != 1 or labels.size == 0:
            raise InputError(f"{str(path)!r} must hold one label for each point, shape (n,). Got shape {labels.shape}.")
        return labels, None
    problems = Problems(str(path))
    found = _from_table(_open(path, suffix, problems), column, id_column, problems)
    problems.refuse()
    assert found is not None
    return found


def _open(path: Path, suffix: str, problems: Problems) -> Table:
    if suffix in CSV:
        return open_csv(path, problems)
    if suffix in JSONL:
        return read_jsonl(path, problems)
    parquet = parquet_module(f"Reading {str(path)!r}")
    with parsing(path, "Parquet file"):
        table = parquet.read_table(path, page_checksum_verification=True)
        table = table.select(named_columns(table.column_names))
        cells = [part.to_pylist() for part in table.columns]
    return Table(list(table.column_names), enumerate(zip(*cells, strict=True)), None, "row")


def _from_table(
    table: Table, column: str | None, id_column: str | None, problems: Problems
) -> tuple[NDArray[Any], tuple[str, ...] | None] | None:
    if columns_missing([name for name in (column, id_column) if name], table.columns, problems):
        return None
    by = id_column or (ID if ID in table.columns else None)
    others = [name for name in table.columns if name != by]
    chosen = column or (LABEL if LABEL in others else others[0] if len(others) == 1 else None)
    if chosen is None:
        problems.add(
            f"A column {LABEL!r} is expected",
            f"the columns are: {', '.join(table.columns)}",
            advice="Name the one that holds the labels: --column.",
        )
        return None
    rows = list(table.rows)
    place, where = table.columns.index(chosen), [number for number, _ in rows]
    cells = [cell.strip() if isinstance(cell := row[place], str) else cell for _, row in rows]
    for number, cell in zip(where, cells, strict=True):
        if cell is None or cell == "" or cell != cell:
            problems.add("Every point needs a label", f"{table.unit} {number}, column {chosen!r} is empty")
    ids = None
    if by is not None:
        at = table.columns.index(by)
        ids = check_ids([row[at] for _, row in rows], where, table.unit, problems)
    if not cells:
        problems.add("At least one label is expected", "there are no rows below the names of the columns")
    if problems:
        return None
    # NumPy would read the text 1_0 as ten.
    plain = not any(isinstance(cell, str) and "_" in cell for cell in cells)
    for kind in (np.int64, np.float64) if plain else ():
        try:
            if not any(isinstance(cell, (bool, float)) for cell in cells) or kind is np.float64:
                return np.array(cells).astype(kind), ids
        except (ValueError, OverflowError):
            continue
    return np.array([str(cell) for cell in cells]), ids
