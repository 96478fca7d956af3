"""Points from tables with types: Arrow and Parquet, pandas, Hugging Face data sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from usimul.files import named_columns, parquet_module, parsing
from usimul.points.base import FINITE, IMPUTE, Points, check_finite, check_ids
from usimul.points.tables import choose_columns, numbers_of
from usimul.validation import Problems

__all__ = ["EMPTY", "Plan", "batch_parts", "plan_of", "points_of_arrow", "points_of_frame", "read_parquet"]

NUMERIC = "Columns must hold numbers"
EMPTY = "the table has no rows"


def read_parquet(path: Path, id_column: str | None, ignore: Sequence[str], problems: Problems) -> Points | None:
    """Read a Parquet file, one batch of rows after the other."""
    parquet = parquet_module(f"Reading {str(path)!r}")
    with parsing(path, "Parquet file"), parquet.ParquetFile(path, page_checksum_verification=True) as file:
        return _from_batches(
            file.schema_arrow,
            file.metadata.num_rows,
            lambda columns: file.iter_batches(columns=columns),
            str(path),
            id_column,
            ignore,
            problems,
        )


def points_of_arrow(
    table: Any, source: str, id_column: str | None, ignore: Sequence[str], problems: Problems
) -> Points | None:
    """Take the rows of a ``pyarrow.Table``."""
    return _from_batches(
        table.schema,
        table.num_rows,
        lambda columns: table.select(columns).to_batches(),
        source,
        id_column,
        ignore,
        problems,
    )


@dataclass(frozen=True)
class Plan:
    """Which columns of an Arrow schema are read."""

    names: tuple[str, ...]
    dtype: np.dtype[Any]
    id: str | None

    @property
    def columns(self) -> list[str]:
        """All columns to read, that of the ids first."""
        return [*([self.id] if self.id else []), *self.names]


def plan_of(schema: Any, id_column: str | None, ignore: Sequence[str], problems: Problems) -> Plan | None:
    """Choose the columns of numbers and that of ids; columns of other types become problems."""
    names = named_columns(schema.names)
    chosen = choose_columns(names, id_column, ignore, problems)
    if chosen is None:
        return None
    kinds = {name: _number_type(schema.field(name).type) for name in chosen.names}
    for name, kind in kinds.items():
        if kind is None:
            problems.add(NUMERIC, f"column {name!r} holds {schema.field(name).type}", advice=_leave_out(name))
    usable = {name: kind for name, kind in kinds.items() if kind is not None}
    dtype = np.result_type(*usable.values()) if usable else np.dtype(float)
    return Plan(tuple(usable), dtype, None if chosen.id is None else names[chosen.id])


def batch_parts(
    batches: Iterable[Any], plan: Plan, problems: Problems
) -> Iterator[tuple[int, NDArray[Any], list[object]]]:
    """Yield the number of the first row, the features of some rows, and their cells of ids, if there are any."""
    start = 0
    for batch in batches:
        part = np.empty((batch.num_rows, len(plan.names)), dtype=plan.dtype)
        for column, name in enumerate(plan.names):
            values = batch.column(name)
            if values.null_count:
                for row in np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False)).tolist():
                    problems.add(FINITE, f"row {start + row}, column {name!r} is empty", advice=IMPUTE)
                values = values.fill_null(0)
            part[:, column] = values.to_numpy(zero_copy_only=False)
        yield start, part, batch.column(plan.id).to_pylist() if plan.id else []
        start += len(part)


def _from_batches(
    schema: Any,
    n_rows: int,
    batches: Any,
    source: str,
    id_column: str | None,
    ignore: Sequence[str],
    problems: Problems,
) -> Points | None:
    plan = plan_of(schema, id_column, ignore, problems)
    if plan is None:
        return None
    if n_rows == 0:
        problems.add("At least one point is expected", EMPTY)
        return None
    rows = np.zeros((n_rows, len(plan.names)), dtype=plan.dtype)
    ids: list[object] = []
    for start, part, named in batch_parts(batches(plan.columns), plan, problems):
        rows[start : start + len(part)] = part
        ids += named
    texts = None if plan.id is None else check_ids(ids, range(n_rows), "row", problems)
    if not plan.names:
        return None
    points = Points(rows, None, texts, plan.names, source)
    check_finite(points, problems)
    return points


def _number_type(kind: Any) -> np.dtype[Any] | None:
    """Return the NumPy type of an Arrow type of numbers; None for others."""
    import pyarrow.types as kinds

    if not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)):
        return None
    found: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
    return found


def _leave_out(name: str) -> str:
    return f"Leave such a column out: ignore=[{name!r}], --ignore {name}."


def points_of_frame(
    frame: Any, source: str, id_column: str | None, ignore: Sequence[str], problems: Problems
) -> Points | None:
    """Take the rows of a ``pandas.DataFrame``; an index with the name of the id column gives the ids."""
    if frame.index.name is not None and frame.index.name not in frame.columns:
        by_index = frame.index.name == (id_column or "id")
        frame = frame.reset_index() if by_index else frame
    columns = [name if isinstance(name, str) else str(name) for name in frame.columns]
    chosen = choose_columns(columns, id_column, ignore, problems)
    if chosen is None:
        return None
    if len(frame) == 0:
        problems.add("At least one point is expected", EMPTY)
        return None
    parts = [
        _column(frame.iloc[:, place], name, problems) for place, name in zip(chosen.features, chosen.names, strict=True)
    ]
    ids = None
    if chosen.id is not None:
        ids = check_ids(frame.iloc[:, chosen.id].tolist(), range(len(frame)), "row", problems)
    points = Points(np.column_stack(parts), None, ids, chosen.names, source)
    check_finite(points, problems)
    return points


def _column(values: Any, name: str, problems: Problems) -> NDArray[Any]:
    """Return one pandas column as numbers, with zero in place of each problem."""
    kind = values.dtype
    if isinstance(kind, np.dtype) and kind.kind in "iufb":
        array: NDArray[Any] = values.to_numpy()
        if kind.kind == "f":
            missing = np.flatnonzero(np.isnan(array))
            _note_empty(missing.tolist(), name, problems)
            array = np.where(np.isnan(array), 0.0, array).astype(kind) if missing.size else array
        return array
    is_number = getattr(kind, "_is_numeric", False) or getattr(kind, "_is_boolean", False)
    if is_number and str(kind) != "category":  # Int64, Float32, boolean
        _note_empty(np.flatnonzero(values.isna().to_numpy()).tolist(), name, problems)
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=0.0))
    if (isinstance(kind, np.dtype) and kind.kind == "O") or str(kind) in ("str", "string"):
        cells = [[_plain(cell)] for cell in values]
        return numbers_of(cells, range(len(cells)), [name], "row", False, problems)[:, 0]
    problems.add(NUMERIC, f"column {name!r} holds {kind}", advice=_leave_out(name))
    return np.zeros(len(values))


def _note_empty(rows: Iterable[int], name: str, problems: Problems) -> None:
    for row in rows:
        problems.add(FINITE, f"row {row}, column {name!r} is empty or NaN", advice=IMPUTE)


def _plain(cell: Any) -> object:
    """Return a NumPy number as a Python one, so that it is shown as written."""
    return cell.item() if isinstance(cell, np.generic) else cell
