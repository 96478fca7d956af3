"""From tables to supervision: names of points become row numbers, and everything that is wrong is told at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from usimul.files import Table, columns_missing, id_text, number_of_text
from usimul.supervision.base import Supervision
from usimul.supervision.files import SCALARS
from usimul.supervision.table_files import ROLES, SIGNS, SUFFIXES, open_table, write_table
from usimul.validation import (
    FileFormatError,
    InputError,
    Problems,
    UsimulError,
    check_choice,
    check_new_path,
    nearest,
)

__all__ = ["Named", "Pool", "agreed", "passed_over", "read_tables", "scan_table", "write_supervision"]

BY = ("rows", "ids")
NEAREST_OF = 5_000  # looking for a similar id among more of them takes seconds
YES_NO = {"yes": 1.0, "no": -1.0}


class Named(Protocol):
    """Points, as `usimul.points.Points`: as many as ``len`` says, with ids or without."""

    @property
    def ids(self) -> Sequence[str] | None:
        """Name of each point."""

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Pool:
    """What is known of the points that a table speaks of."""

    size: int | None
    places: Mapping[str, int] | None

    @classmethod
    def of(cls, points: Named | None, ids: Sequence[object] | None) -> Pool:
        """Take what was given: points, or only their ids."""
        if points is not None and ids is not None:
            raise InputError("give `points` or `ids`, not both.")
        size = len(points) if points is not None else None if ids is None else len(ids)
        ids = points.ids if points is not None else ids
        places = None if ids is None else {str(name): row for row, name in enumerate(ids)}
        if places is not None and len(places) != size:
            raise InputError("`ids` must differ from each other, or they name no point.")
        return cls(size, places)


def scan_table(
    path: Path,
    pool: Pool,
    problems: Problems,
    *,
    kind: str | None = None,
    by: str | None = None,
    **metadata: Any,
) -> Supervision | None:
    """Read a table and note problems instead of raising; None if there are any."""
    known = Supervision.kinds()
    if kind is not None:
        check_choice(kind, known, "kind")
    if by is not None:
        check_choice(by, BY, "by")
    table = open_table(path, problems)
    header = table.header or {}
    if header and not (isinstance(header.get("kind"), str) and header["kind"] in known):
        raise FileFormatError(
            f"{str(path)!r} holds supervision of the unknown kind {header.get('kind')!r}; "
            f"known kinds: {', '.join(known)}."
        )
    chosen = agreed(path, "kind", header.get("kind"), kind)
    by = agreed(path, "by", header.get("points"), by) or ("rows" if pool.places is None else "ids")
    scalars = {name: agreed(path, name, header.get(name), metadata.get(name)) for name in SCALARS}
    if by == "ids" and pool.places is None:
        raise InputError(
            f"{str(path)!r} names points by ids, but none are known. Pass the points or ids that they belong to."
        )
    if scalars["n_points"] is None and not header:
        scalars["n_points"] = pool.size
    size = scalars["n_points"] if pool.size is None else pool.size
    if pool.size is not None and scalars["n_points"] not in (None, pool.size):
        raise InputError(
            f"{str(path)!r} was made for a pool of {scalars['n_points']} points, but X has {pool.size} rows. "
            "Rows would point at the wrong points; pass the X that the tuples were made for."
        )
    cls = known[chosen] if chosen else _infer(table.columns, problems)
    if cls is None or not _has_columns(cls, table.columns, problems):
        return None
    reader = _Reader(table, cls, by, size, pool.places or {}, problems)
    reader.read()
    if not header and not len(reader):
        problems.add("At least one row is expected", "there are none below the names of the columns")
    reader.hint_rows()
    if problems:
        return None
    try:
        return cls(**reader.fields(), **scalars)
    except UsimulError as error:
        problems.add(f"The table must make {cls.__name__}", str(error).rstrip("."))
        return None


def agreed(path: Path, name: str, in_file: Any, given: Any) -> Any:
    """Return what the file or the caller says; they must not contradict each other."""
    if in_file is not None and given is not None and in_file != given:
        raise InputError(f"{str(path)!r} says {name} {in_file!r}, but {given!r} was given. Leave it out.")
    return given if in_file is None else in_file


def _infer(columns: Sequence[str], problems: Problems) -> type[Supervision] | None:
    """Return the kind whose columns cover most of the table; None, with a problem, if it is not one kind."""
    wanted = {cls: _names(cls) for cls in Supervision.kinds().values() if cls.columns}
    fits = {cls: len(names) for cls, names in wanted.items() if set(names) <= set(columns)}
    best = [cls for cls, n in fits.items() if n == max(fits.values())]
    if len(best) == 1:
        return best[0]
    if best:
        problems.add(
            "The columns must belong to one kind of supervision",
            f"they fit: {', '.join(cls.kind for cls in best)}",
            advice="Say which: kind='...', --kind.",
        )
        return None
    near = {cls: sum(1 for name in names if nearest(name, columns)) for cls, names in wanted.items()}
    closest = max(near, key=lambda cls: near[cls] / len(wanted[cls]))
    if near[closest] > 1:
        columns_missing(wanted[closest], columns, problems, advice=f"Needed for {closest.kind}.")
        return None
    listed = sorted({", ".join(names) for names in wanted.values()})
    problems.add(
        "The columns of one kind of supervision are expected",
        f"the columns are: {', '.join(columns[:20])}",
        advice=f"Possible: {'; '.join(listed)}.",
    )
    return None


def _names(cls: type[Supervision]) -> tuple[str, ...]:
    return (*cls.columns, *([cls.value_column] if cls.value_column else []))


def _has_columns(cls: type[Supervision], columns: Sequence[str], problems: Problems) -> bool:
    before = len(problems)
    if not cls.columns:
        raise InputError(f"{cls.__name__} has no columns for tables; it is stored as .npz only.")
    columns_missing(_names(cls), columns, problems, advice=f"Needed for {cls.kind}.")
    for name in sorted({name for name in columns if columns.count(name) > 1}):
        problems.add("Columns must have different names", f"{name!r} occurs {columns.count(name)} times")
    # A column that means something elsewhere: passing over it could turn a "no" into a "yes".
    meant = {name for kind in Supervision.kinds().values() for name in _names(kind)} - {*_names(cls)}
    known = meant | {*_names(cls), "role", "label"}
    for name in sorted({*columns}):
        plain = name.strip().casefold()
        if plain not in known or (name == plain and (name not in meant or (name == "label" and "role" in columns))):
            continue
        advice = "Rename or drop it, or say another kind: kind='...', --kind."
        if plain not in meant or (plain == "label" and "role" in columns):
            advice = f"Write {plain!r}, or drop it."
        elif plain == "answer":
            advice = "Keep the rows answered yes, drop the column, and say how many were asked: n_asked, --asked."
        problems.add(f"A table of {cls.kind} has no column {name!r}", "it would be passed over", advice=advice)
    return len(problems) == before


@dataclass
class _Reader:
    """Goes through the rows of a table once."""

    table: Table
    cls: type[Supervision]
    by: str
    size: int | None
    places: Mapping[str, int]
    problems: Problems
    rows: list[list[int]] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    unlabeled: list[int] = field(default_factory=list)
    known: list[tuple[int, int]] = field(default_factory=list)
    labels: dict[int, int] = field(default_factory=dict)
    n_read: int = 0
    n_unknown: int = 0
    n_like_rows: int = 0

    def __len__(self) -> int:
        return self.n_read

    def read(self) -> None:
        """Read all rows; what cannot be read becomes a problem."""
        place = {name: i for i, name in enumerate(self.table.columns)}
        points = [(name, place[name]) for name in self.cls.columns]
        value = None if self.cls.value_column is None else place[self.cls.value_column]
        role_at, label_at = place.get("role"), place.get("label")
        for number, cells in self.table.rows:
            self.n_read += 1
            role = ROLES[0] if role_at is None else self._role(number, cells[role_at])
            if role == ROLES[0]:
                self._tuple(number, [(name, cells[i]) for name, i in points], None if value is None else cells[value])
            elif role:
                self._point(number, role, cells, points, None if label_at is None else cells[label_at])

    def _role(self, number: int, cell: object) -> str | None:
        text = cell.strip() if isinstance(cell, str) else cell
        if _empty(text):
            return ROLES[0]
        if text not in ROLES:
            self._add(f"A role must be {', '.join(ROLES)}", number, "role", cell)
            return None
        return str(text)

    def _tuple(self, number: int, points: list[tuple[str, object]], value: object) -> None:
        found = [self._place(number, name, cell) for name, cell in points]
        rows = [row for row in found if row is not None]
        if len(set(rows)) < len(rows):
            named = ", ".join(str(cell) for _, cell in points)
            self.problems.add("A point must not occur twice in one tuple", f"{self.table.unit} {number} has {named}")
        if self.cls.value_column is not None:
            self.values.append(self._value(number, self.cls.value_column, value))
        self.rows.append(rows)

    def _point(
        self, number: int, role: str, cells: Sequence[object], points: list[tuple[str, int]], label: object
    ) -> None:
        for name, i in points[1:]:
            if not _empty(cells[i]):
                self._add(f"A row of role {role!r} must have one point, in its first column", number, name, cells[i])
        row = self._place(number, points[0][0], cells[points[0][1]])
        if role == ROLES[1]:
            self.unlabeled += [] if row is None else [row]
            return
        sign = int(self._value(number, "label", label))
        if row is None:
            return
        self.known.append((row, sign))
        if self.labels.setdefault(row, sign) != sign:
            self.problems.add("A point must have one label", f"{self.table.unit} {number} gives another one")

    def _place(self, number: int, name: str, cell: object) -> int | None:
        """Return the row of a point by its number or id."""
        if _empty(cell):
            self._add("Every cell of a point must be filled", number, name, cell)
            return None
        if self.by == "ids":
            text = id_text(cell)
            row = None if text is None else self.places.get(text)
            if row is None:
                self._unknown(number, name, str(cell))
            return row
        row = _whole(cell)
        if row is None:
            self._add("Points must be row numbers, whole and from 0", number, name, cell)
        elif self.size is not None and row >= self.size:
            self._add(f"Row numbers must lie within the pool of {self.size} points", number, name, cell)
        else:
            return row
        return None

    def _unknown(self, number: int, name: str, text: str) -> None:
        self.n_unknown += 1
        self.n_like_rows += (_whole(text) or 0) < (self.size or 0) and _whole(text) is not None
        first = self.n_unknown <= 3 and len(self.places) <= NEAREST_OF
        hint = nearest(text, self.places, aside=True) if first else ""
        self.problems.add(
            "Ids must be those of points", f"{self.table.unit} {number}, column {name!r}: {text!r} is none{hint}"
        )

    def hint_rows(self) -> None:
        """Say how to read row numbers, if every unknown id looks like one."""
        if self.n_unknown and self.n_like_rows == self.n_unknown:
            self.problems.add(
                "Ids must be those of points", advice="If these are row numbers: by='rows', --by rows.", times=0
            )

    def _value(self, number: int, name: str, cell: object) -> float:
        number_of = _number(cell)
        if name in SIGNS:
            value = YES_NO.get(cell.strip().lower()) if name == "answer" and isinstance(cell, str) else None
            value = number_of if value is None else value
            if value in (1.0, -1.0):
                return value
            words = "yes or no, 1 or -1" if name == "answer" else "1 or -1"
            self._add(f"Each {name} must be {words}", number, name, cell)
            return 1.0
        low, high = self.cls.value_range or (float("-inf"), float("inf"))
        if number_of is None or not low <= number_of <= high:
            self._add(f"Each {name} must be a number in [{low:g}, {high:g}]", number, name, cell)
            return low
        return number_of

    def _add(self, expected: str, number: int, name: str, cell: object) -> None:
        shown = "empty" if _empty(cell) else repr(cell)[:40]
        self.problems.add(expected, f"{self.table.unit} {number}, column {name!r} is {shown}")

    def fields(self) -> dict[str, Any]:
        """Return the arrays of the supervision."""
        return {
            "rows": self.rows,
            "values": self.values if self.cls.value_column is not None else None,
            "unlabeled": self.unlabeled or None,
            "known_rows": [row for row, _ in self.known] or None,
            "known_labels": [sign for _, sign in self.known] or None,
        }


def _empty(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip()) or (isinstance(cell, float) and cell != cell)


def _number(cell: object) -> float | None:
    if isinstance(cell, bool) or not isinstance(cell, (int, float, str)):
        return None
    try:
        return number_of_text(cell) if isinstance(cell, str) else float(cell)
    except OverflowError:
        return None


def _whole(cell: object) -> int | None:
    """Return a whole number from 0 on, however it is written; None for anything else."""
    number = _number(cell)
    if number is None or not 0 <= number < 2**53 or not number.is_integer():
        return None
    return int(number)


def read_tables(
    path: Path, points: Named | None, ids: Sequence[object] | None, kind: str | None, by: str | None, **metadata: Any
) -> Supervision:
    """Read a table, or raise one error that tells all problems."""
    problems = Problems(str(path))
    sup = scan_table(path, Pool.of(points, ids), problems, kind=kind, by=by, **metadata)
    problems.refuse()
    assert sup is not None
    return sup


def passed_over(path: Path, sup: Supervision) -> list[str]:
    """Return the columns of a table that supervision was read from, and that say nothing in it."""
    if path.suffix.lower() not in SUFFIXES:
        return []
    table = open_table(path, Problems(str(path)))
    meant = {*_names(type(sup)), "role", *(["label"] if "role" in table.columns else [])}
    return [name for name in table.columns if name not in meant]


def write_supervision(
    sup: Supervision, path: str | os.PathLike[str], *, ids: Sequence[str] | None = None, overwrite: bool = False
) -> None:
    """Write supervision as ``.npz``, ``.csv``, ``.tsv``, ``.jsonl`` or ``.parquet``; it appears whole or not at all.

    Parameters
    ----------
    sup
        What is written. All formats but CSV keep all of it; CSV keeps the rows, without kind, world and counts.
    path
        File to make; its suffix is the format.
    ids
        Name of each point, written in place of row numbers. Not for ``.npz``, which holds row numbers.
    overwrite
        Whether an existing file may be replaced.
    """
    target = Path(path)
    if target.suffix.lower() == ".npz":
        if ids is not None:
            raise InputError("a .npz file of supervision holds row numbers; leave out `ids`.")
        sup.save(target, overwrite=overwrite)
        return
    if target.suffix.lower() not in SUFFIXES:
        raise InputError(f"{str(target)!r} must end in .npz, {', '.join(SUFFIXES)}.")
    check_new_path(target, overwrite=overwrite)
    if ids is not None:
        sup.check_pool(len(Pool.of(None, ids).places or {}))
    write_table(sup, target, ids)
