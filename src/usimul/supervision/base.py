"""What all kinds of supervision have in common."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from usimul.supervision.files import ARRAYS, SCALARS, write_file
from usimul.validation import (
    InputError,
    InputTypeError,
    IntArray,
    check_choice,
    check_count,
    check_fraction,
    check_labels_subset,
    check_rows,
)

__all__ = ["Supervision"]


@dataclass(frozen=True, eq=False, repr=False)
class Supervision:
    """Base of all kinds: validated at birth, immutable, sliceable by points, comparable, saved to one file.

    Parameters
    ----------
    rows
        Row indices into X, one tuple a line, ``(n, width)``.
    unlabeled
        Row indices of unlabeled points, ``(m,)``, or None.
    values
        One number for each tuple, for the kinds that have them.
    known_rows, known_labels
        Rows of points whose label (+1 or -1) somebody gave; they fix which class is called positive.
    n_points
        Size of the pool. Needed for cross-validation, checked against X in ``fit``.
    world
        How the tuples were sampled, when it is known.
    n_asked, n_accepted
        How many tuples were asked about, and how many of them were kept: all of ``rows``, so it may be left out.
    """

    rows: IntArray
    unlabeled: IntArray | None = None
    values: NDArray[np.float64] | None = None
    known_rows: IntArray | None = None
    known_labels: IntArray | None = None
    n_points: int | None = None
    world: str | None = None
    n_asked: int | None = None
    n_accepted: int | None = None

    kind: ClassVar[str] = ""
    source: ClassVar[str] = ""
    width: ClassVar[int] = 1
    value_range: ClassVar[tuple[float, float] | None] = None
    worlds: ClassVar[tuple[str, ...]] = ()
    sampler: ClassVar[str] = ""
    columns: ClassVar[tuple[str, ...]] = ()  # of a tuple in a table, one for each point
    value_column: ClassVar[str | None] = None

    _registry: ClassVar[dict[str, type[Supervision]]] = {}

    @classmethod
    def kinds(cls) -> dict[str, type[Supervision]]:
        """Return all kinds by the name that files use."""
        return dict(Supervision._registry)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.kind:  # abstract
            return
        if cls.kind in Supervision._registry:
            raise TypeError(f"supervision kind {cls.kind!r} is already defined by {Supervision._registry[cls.kind]!r}")
        Supervision._registry[cls.kind] = cls

    def __post_init__(self) -> None:
        if not self.kind:
            raise InputTypeError(f"{type(self).__name__} is abstract; use one of: {', '.join(_kind_names())}.")
        n_points = None if self.n_points is None else check_count(self.n_points, "n_points")
        self._set("n_points", n_points)
        self._set("rows", check_rows(self.rows, "rows", width=self.width, n_points=n_points))
        if self.unlabeled is not None:
            unlabeled = check_rows(self.unlabeled, "unlabeled", width=1, n_points=n_points)
            self._set("unlabeled", unlabeled[:, 0] if unlabeled.shape[0] else None)
        self._check_values()
        self._check_known()
        if self.world is not None and self.worlds:
            check_choice(self.world, self.worlds, "world")
        for name in ("n_asked", "n_accepted"):
            if getattr(self, name) is not None:
                self._set(name, check_count(getattr(self, name), name, low=0))
        self._check_counts()

    def _check_counts(self) -> None:
        if self.n_asked is not None and self.n_accepted is None:
            self._set("n_accepted", self.n_tuples)
        if self.n_accepted is None:
            return
        if self.n_accepted != self.n_tuples:
            raise InputError(
                f"`n_accepted` must be the number of tuples, {self.n_tuples}, because the tuples are what was kept. "
                f"Got {self.n_accepted}. Leave it out, or pass all tuples that were accepted."
            )
        if self.n_asked is not None and self.n_accepted > self.n_asked:
            raise InputError(
                f"`n_asked` cannot be less than the {self.n_accepted} tuples that were accepted. Got {self.n_asked}. "
                "Count every question, whatever its answer."
            )

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_values(self) -> None:
        if self.value_range is None:
            if self.values is not None:
                raise InputError(f"{type(self).__name__} takes no `values`; they belong to the confidence kinds.")
            return
        if self.values is None:
            raise InputError(f"{type(self).__name__} needs `values`, one number for each tuple. Got None.")
        try:
            values = np.array(self.values, dtype=np.float64)
        except (TypeError, ValueError) as error:  # NumPy does not say of which argument
            raise InputTypeError(
                f"`values` of {type(self).__name__} must be numbers, one for each tuple. Got {self.values!r:.60}."
            ) from error
        if values.shape != (self.n_tuples,):
            raise InputError(f"`values` must have shape ({self.n_tuples},), one for each tuple. Got {values.shape}.")
        low, high = self.value_range
        bad = np.flatnonzero(~((values >= low) & (values <= high)))
        if bad.size:
            first = int(bad[0])
            raise InputError(
                f"`values` of {type(self).__name__} must lie in [{low:g}, {high:g}] and be finite. "
                f"Got {values[first]} at position {first} ({bad.size} such values)."
            )
        values.setflags(write=False)
        self._set("values", values)

    def _check_known(self) -> None:
        if (self.known_rows is None) != (self.known_labels is None):
            raise InputError("`known_rows` and `known_labels` must be given together.")
        if self.known_rows is None or self.known_labels is None:
            return
        rows = check_rows(self.known_rows, "known_rows", width=1, n_points=self.n_points)[:, 0]
        self._set("known_rows", rows if rows.size else None)
        labels = check_labels_subset(self.known_labels, "known_labels", n=rows.size)
        self._set("known_labels", labels if rows.size else None)
        both = np.intersect1d(rows[labels > 0], rows[labels < 0])
        if both.size:
            raise InputError(
                f"`known_labels` must give each point one label. Row {int(both[0])} has both +1 and -1 "
                f"({both.size} such rows). Leave out the points of which the label is in doubt."
            )

    @property
    def n_tuples(self) -> int:
        """Number of tuples."""
        return int(self.rows.shape[0])

    @property
    def n_unlabeled(self) -> int:
        """Number of unlabeled points."""
        return 0 if self.unlabeled is None else int(self.unlabeled.shape[0])

    @property
    def n_used(self) -> int:
        """Number of points over all sources, repeats counted: the size used to compare methods on equal terms."""
        return sum(rows.size for rows in self.sources().values())

    @property
    def shape(self) -> tuple[int]:
        """``(n_points,)``: scikit-learn splits the pool of points, so this is the length it must see."""
        if self.n_points is None:
            raise InputError(
                f"this {type(self).__name__} does not know the size of its pool, which splitting needs. "
                f"Build it with n_points=len(X)."
            )
        return (self.n_points,)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.object_]:
        """None for each point, since nobody knows its label.

        With ``cv`` a number, scikit-learn looks at this array to see whether folds can be stratified: they cannot.
        """
        return np.full(self.shape, None, dtype=object)

    def sources(self) -> dict[str, IntArray]:
        """Row indices of every source of points, each ``(n, width)``."""
        found = {self.source: self.rows}
        if self.unlabeled is not None:
            found["unlabeled"] = self.unlabeled[:, None]
        return found

    def check_pool(self, n_points: int) -> None:
        """Raise unless every row points into a pool of ``n_points`` rows."""
        if self.n_points is not None and self.n_points != n_points:
            raise InputError(
                f"this {type(self).__name__} was made for a pool of {self.n_points} points, but X has {n_points} rows. "
                "Row indices would point at the wrong points; pass the X that the tuples were made for."
            )
        for name, rows in {**self.sources(), "known_rows": self.known_rows}.items():
            if rows is not None and rows.size:
                check_rows(rows.reshape(len(rows), -1), name, width=rows.size // len(rows), n_points=n_points)

    def __getitem__(self, key: Any) -> Self:
        """Restrict to some points of the pool: tuples wholly inside are kept and renumbered.

        scikit-learn's splitters call this. Counts of asked tuples no longer apply and are dropped.
        """
        if isinstance(key, tuple):  # scikit-learn may index with (rows, ...)
            key = key[0]
        (n_points,) = self.shape
        kept = np.arange(n_points)[key]
        place = np.full(n_points, -1, dtype=np.int64)
        place[kept] = np.arange(kept.size)
        inside = (place[self.rows] >= 0).all(axis=1)
        changes: dict[str, Any] = {"rows": place[self.rows[inside]], "n_points": int(kept.size)}
        if self.values is not None:
            changes["values"] = self.values[inside]
        if self.unlabeled is not None:
            moved = place[self.unlabeled]
            changes["unlabeled"] = moved[moved >= 0]
        if self.known_rows is not None and self.known_labels is not None:
            moved = place[self.known_rows]
            changes.update(known_rows=moved[moved >= 0], known_labels=self.known_labels[moved >= 0])
        return replace(self, n_asked=None, n_accepted=None, **changes)

    def take(self, tuples: Any, unlabeled: Any = slice(None)) -> Self:
        """Keep some tuples and some unlabeled points, by position; the pool stays as it is."""
        return replace(
            self,
            rows=self.rows[tuples],
            values=None if self.values is None else self.values[tuples],
            unlabeled=None if self.unlabeled is None else self.unlabeled[unlabeled],
            n_asked=None,
            n_accepted=None,
        )

    def split(self, fraction: float, random_state: np.random.Generator) -> tuple[Self, Self]:
        """Split tuples and unlabeled points at random into a large part and a held-out part of share ``fraction``."""
        share = check_fraction(fraction, "fraction")
        tuples = random_state.permutation(self.n_tuples)
        points = random_state.permutation(self.n_unlabeled)
        cut, cut_u = round(share * tuples.size), round(share * points.size)
        if not 0 < cut < tuples.size:
            raise InputError(
                f"holding out a share of {share:g} of {tuples.size} tuples leaves one side empty. "
                "Collect more tuples, or choose the epoch with selection='last'."
            )
        return self.take(tuples[cut:], points[cut_u:]), self.take(tuples[:cut], points[:cut_u])

    def with_known_labels(self, known: Mapping[int, int]) -> Self:
        """Return a copy in which some points of the pool have a known label, given as ``{row: +1 or -1}``."""
        return replace(self, known_rows=np.array(list(known)), known_labels=np.array(list(known.values())))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    __hash__ = None  # type: ignore[assignment]  # arrays inside: equality by value, so no hash

    def __repr__(self) -> str:
        parts = [f"{self.n_tuples} tuples"]
        if self.unlabeled is not None:
            parts.append(f"{self.n_unlabeled} unlabeled")
        if self.known_rows is not None:
            parts.append(f"{self.known_rows.size} known labels")
        if self.n_points is not None:
            parts.append(f"pool of {self.n_points}")
        if self.world is not None:
            parts.append(f"world {self.world!r}")
        if self.n_asked is not None and self.n_accepted is not None:
            parts.append(f"{self.n_accepted} of {self.n_asked} asked")
        return f"{type(self).__name__}({', '.join(parts)})"

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write one ``.npz`` file; it appears whole or not at all, and replaces another only with ``overwrite``."""
        arrays = {name: getattr(self, name) for name in ARRAYS if getattr(self, name) is not None}
        write_file(path, self.kind, arrays, {name: getattr(self, name) for name in SCALARS}, overwrite=overwrite)


def _kind_names() -> list[str]:
    return [cls.__name__ for cls in Supervision._registry.values()]


def _same(left: object, right: object) -> bool:
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return np.array_equal(left, right)
    return type(left) is type(right) and left == right
