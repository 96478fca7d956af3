"""Supervision as a table in a file: one tuple a row. JSON lines and Parquet carry a header, CSV carries rows only.

The header is the first line of JSON lines, and the schema's metadata of Parquet. It holds the kind, how the tuples came
about, and a checksum of all of it, so that a damaged file is noticed.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from usimul.files import (
    CSV,
    JSONL,
    PARQUET,
    Table,
    check_is_file,
    named_columns,
    open_csv,
    parquet_module,
    read_jsonl,
    whole_file,
)
from usimul.supervision.base import Supervision
from usimul.supervision.files import FORMAT, FORMAT_VERSION, SCALARS, check_header
from usimul.validation import FileFormatError, InputError, Problems

__all__ = ["ROLES", "SUFFIXES", "open_table", "write_table"]

SUFFIXES = (*CSV, *JSONL, *PARQUET)
ROLES = ("tuple", "unlabeled", "known")
"""What a row is, if the table has a column ``role``: a tuple, an unlabeled point, a point with its label."""
SIGNS = ("answer", "label")
"""Columns of values that are +1 or -1."""
_METADATA = b"usimul"
_KEYS = {"format", "version", "kind", "points", "columns", "checksum", *SCALARS}


def open_table(path: Path, problems: Problems) -> Table:
    """Open a table; its header, if it has one, has been checked, and so has the checksum."""
    check_is_file(path, "supervision")
    suffix = path.suffix.lower()
    if suffix in CSV:
        return open_csv(path, problems)
    before = len(problems)
    if suffix in PARQUET:
        table = _open_parquet(path)
    elif suffix in JSONL:
        table = read_jsonl(path, problems, doubtful=True)
    else:
        raise InputError(f"{str(path)!r} must end in .npz, {', '.join(SUFFIXES)}.")
    if table.header is None:
        return table
    header = check_header(path, table.header)
    strangers = sorted(set(header) - _KEYS)
    columns = header.get("columns")
    if strangers or not isinstance(columns, list) or header.get("points") not in ("rows", "ids"):
        raise _damaged(path, f"unknown entries in its header: {', '.join(strangers)}" if strangers else "its header")
    if not all(isinstance(header.get(name), (str if name == "world" else int, type(None))) for name in SCALARS):
        raise _damaged(path, "values of the wrong type in its header")
    places = [table.columns.index(name) if name in table.columns else None for name in columns]
    if set(table.columns) - set(columns):
        raise _damaged(path, "columns that its header does not name")
    if len(problems) > before:
        raise _damaged(path, "lines that are no JSON objects")
    rows = [(number, [None if i is None else cells[i] for i in places]) for number, cells in table.rows]
    if "checksum" in header and header["checksum"] != _checksum(header, [cells for _, cells in rows]):
        raise _damaged(path, "content that does not fit its checksum")
    return Table(columns, iter(rows), header, table.unit)


def _damaged(path: Path, what: str) -> FileFormatError:
    return FileFormatError(
        f"{str(path)!r} is damaged, or was changed after usimul wrote it: {what}. Write it again; "
        'a table changed on purpose must lose the entry "checksum" of its header.'
    )


def _checksum(header: dict[str, Any], rows: Sequence[Sequence[object]]) -> str:
    content = [{key: value for key, value in header.items() if key != "checksum"}, rows]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _open_parquet(path: Path) -> Table:
    parquet = parquet_module(f"Reading {str(path)!r}")
    try:
        table = parquet.read_table(path, page_checksum_verification=True)
        table = table.select(named_columns(table.column_names))
        cells = [column.to_pylist() for column in table.columns]
        metadata = table.schema.metadata or {}
        # A header under another key than ours lost its key to damage.
        found = next((value for value in metadata.values() if FORMAT.encode() in value), metadata.get(_METADATA))
        header = None if found is None else json.loads(found)
    except Exception as error:  # Arrow, Thrift and UTF-8 raise many kinds of errors on damaged bytes
        if isinstance(error, PermissionError):
            raise
        raise FileFormatError(
            f"{str(path)!r} is not a whole Parquet file ({type(error).__name__}: {error})."
        ) from error
    if header is not None and _METADATA not in metadata:
        raise _damaged(path, "its metadata")
    names = list(table.column_names)
    return Table(names, ((number, list(row)) for number, row in enumerate(zip(*cells, strict=True))), header, "row")


def write_table(sup: Supervision, path: Path, ids: Sequence[str] | None) -> None:
    """Write a table with a suffix of `SUFFIXES`; it appears whole or not at all."""
    suffix = path.suffix.lower()
    columns, rows = _columns(sup), list(_rows(sup, ids))
    if suffix in CSV:
        with whole_file(path, "w") as handle:
            writer = csv.writer(handle, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(rows)
        return
    header: dict[str, Any] = {"format": FORMAT, "version": FORMAT_VERSION, "kind": sup.kind}
    header |= {"points": "rows" if ids is None else "ids", "columns": columns}
    header |= {name: getattr(sup, name) for name in SCALARS}
    header["checksum"] = _checksum(header, rows)
    if suffix in JSONL:
        with whole_file(path, "w") as handle:
            _write_jsonl(handle, header, columns, rows)
    else:
        _write_parquet(path, header, columns, rows, "int64" if ids is None else "string")


def _write_jsonl(handle: IO[str], header: dict[str, Any], columns: list[str], rows: list[list[object]]) -> None:
    handle.write(json.dumps(header) + "\n")
    handle.writelines(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n" for row in rows)


def _write_parquet(
    path: Path, header: dict[str, Any], columns: list[str], rows: list[list[object]], point_type: str
) -> None:
    parquet = parquet_module(f"Writing {str(path)!r}")
    import pyarrow as pa

    types = {"role": "string", **dict.fromkeys(SIGNS, "int64")}
    types |= dict.fromkeys(("confidence", "difference", "share"), "float64")
    fields = [(name, pa.type_for_alias(types.get(name, point_type))) for name in columns]
    arrays = [pa.array([row[i] for row in rows], type=kind) for i, (_, kind) in enumerate(fields)]
    table = pa.table(arrays, schema=pa.schema(fields, metadata={_METADATA: json.dumps(header).encode()}))
    with whole_file(path) as handle:
        parquet.write_table(table, handle, compression="zstd", write_page_checksum=True)


def _columns(sup: Supervision) -> list[str]:
    if not sup.columns:
        raise InputError(f"{type(sup).__name__} has no columns for tables. Save it as .npz.")
    mixed = sup.unlabeled is not None or sup.known_rows is not None
    found = [*(["role"] if mixed else []), *sup.columns, *([sup.value_column] if sup.value_column else [])]
    return [*found, "label"] if sup.known_rows is not None and "label" not in found else found


def _rows(sup: Supervision, ids: Sequence[str] | None) -> Iterator[list[object]]:
    """Yield cells in the order of `_columns`, None for empty ones."""
    columns = _columns(sup)
    blank = dict[str, object].fromkeys(columns)
    tagged = {**blank, "role": ROLES[0]} if "role" in blank else blank
    values = None if sup.values is None else sup.values.tolist()
    if values is not None and sup.value_column in SIGNS:
        values = [int(value) for value in values]

    def name(row: int) -> object:
        return row if ids is None else ids[row]

    for i, points in enumerate(sup.rows.tolist()):
        found = {**tagged, **dict(zip(sup.columns, map(name, points), strict=True))}
        if values is not None and sup.value_column:
            found[sup.value_column] = values[i]
        yield list(found.values())
    for row in [] if sup.unlabeled is None else sup.unlabeled.tolist():
        yield list({**blank, "role": ROLES[1], sup.columns[0]: name(row)}.values())
    if sup.known_rows is not None and sup.known_labels is not None:
        for row, label in zip(sup.known_rows.tolist(), sup.known_labels.tolist(), strict=True):
            yield list({**blank, "role": ROLES[2], sup.columns[0]: name(row), "label": label}.values())
