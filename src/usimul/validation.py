"""Errors and argument checks: the only place that words what a caller did wrong.

Every message has three parts: what was expected, what came, and what to do about it.
"""

from __future__ import annotations

import difflib
import math
import numbers
import os
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "DegenerateTrainingWarning",
    "DiskFullError",
    "FewTuplesWarning",
    "FileFormatError",
    "InputError",
    "InputTypeError",
    "LeakWarning",
    "MissingDependencyError",
    "NoisyAnswersWarning",
    "PriorMismatchWarning",
    "Problems",
    "TrainedPointsWarning",
    "UndefinedAtHalfError",
    "UsimulError",
    "UsimulWarning",
    "check_choice",
    "check_class_labels",
    "check_count",
    "check_fraction",
    "check_labels",
    "check_labels_subset",
    "check_new_path",
    "check_parent",
    "check_prior",
    "check_real",
    "check_rows",
    "check_seed",
    "check_writable",
    "missing_dependency",
    "nearest",
    "refuse_not_finite",
]

IntArray = NDArray[np.int64]


class UsimulError(Exception):
    """Base of every error raised on purpose by this package."""


class InputError(UsimulError, ValueError):
    """An argument has an impossible value."""


class InputTypeError(UsimulError, TypeError):
    """An argument has the wrong type."""


class UndefinedAtHalfError(InputError):
    """What was asked for is undefined at prior 1/2."""


class FileFormatError(UsimulError, ValueError):
    """A file is damaged, of another kind, or of an unknown format version."""


class DiskFullError(UsimulError, OSError):
    """There was no room for a file; nothing of it was kept."""


class MissingDependencyError(UsimulError, ImportError):
    """An optional package is needed and not installed."""


class UsimulWarning(UserWarning):
    """Base of every warning given by this package."""


class PriorMismatchWarning(UsimulWarning):
    """The stated class prior and the observed acceptance rate disagree."""


class NoisyAnswersWarning(UsimulWarning):
    """Annotators disagree more than the stated share of wrong answers allows."""


class TrainedPointsWarning(UsimulWarning):
    """Points that judge or calibrate a classifier seem to be those that it was trained on."""


class DegenerateTrainingWarning(UsimulWarning):
    """Training ended in a predictor without information."""


class FewTuplesWarning(UsimulWarning):
    """A label-free score rests on so few tuples that it says little."""


class LeakWarning(UsimulWarning):
    """Points that judge were also trained on."""


def check_choice(value: object, choices: Iterable[str], name: str) -> str:
    """Return ``value`` if it is one of ``choices``; otherwise name the nearest ones.

    >>> check_choice("abs", ["none", "relu", "abs"], "correction")
    'abs'
    >>> check_choice("ab", ["none", "relu", "abs"], "correction")
    Traceback (most recent call last):
    ...
    usimul.validation.InputError: `correction` must be one of: none, relu, abs. Got 'ab'. Did you mean 'abs'?
    """
    known = list(choices)
    if isinstance(value, str) and value in known:
        return value
    hint = nearest(value, known) if isinstance(value, str) else ""
    error = InputError if isinstance(value, str) else InputTypeError
    raise error(f"`{name}` must be one of: {', '.join(known)}. Got {value!r}.{hint}")


def nearest(value: str, known: Iterable[str], *, aside: bool = False) -> str:
    """Return a question that names the nearest known words, with a space before it; empty if none is near."""
    near = difflib.get_close_matches(value, list(known), n=3, cutoff=0.4)
    names = " or ".join(repr(name) for name in near)
    return "" if not near else f" (did you mean {names}?)" if aside else f" Did you mean {names}?"


class Problems:
    """All that is wrong with one source, gathered before anything is refused.

    Problems of one sort share a sentence that says what was expected. Some of each sort are shown, all are counted.

    >>> problems = Problems("points.csv")
    >>> problems.add(
    ...     "Cells must be finite numbers", "line 3, column 'age' is 'old'", advice="Drop or impute such rows."
    ... )
    >>> print(problems)
    'points.csv': Cells must be finite numbers. Line 3, column 'age' is 'old'. Drop or impute such rows.
    >>> problems.add("Ids must differ", "'a' is the id of lines 2 and 4")
    >>> print(problems)
    'points.csv' has 2 problems:
      - Cells must be finite numbers. Line 3, column 'age' is 'old'. Drop or impute such rows.
      - Ids must differ. 'a' is the id of lines 2 and 4.
    """

    SHOWN = 20

    def __init__(self, source: str) -> None:
        self.source = source
        self._found: dict[str, tuple[list[str], int, str]] = {}

    def add(self, expected: str, item: str = "", *, advice: str = "", times: int = 1) -> None:
        """Note a problem; ``times`` above 1 counts further ones of which no text is given."""
        items, total, said = self._found.get(expected, ([], 0, ""))
        if item and len(items) < self.SHOWN:
            items.append(item)
        self._found[expected] = (items, total + times, said or advice)

    def __len__(self) -> int:
        return sum(total for _, total, _ in self._found.values())

    def __str__(self) -> str:
        share = max(3, self.SHOWN // max(1, len(self._found)))
        sentences = [_sentence(expected, *found, shown=share) for expected, found in self._found.items()]
        if len(self) == 1:
            return f"{self.source!r}: {sentences[0]}"
        return f"{self.source!r} has {len(self):,} problems:\n" + "\n".join(f"  - {text}" for text in sentences)

    def refuse(self, error: type[UsimulError] = InputError) -> None:
        """Raise one error that tells all problems, if there are any."""
        if self:
            raise error(str(self))


def _sentence(expected: str, items: list[str], total: int, advice: str, *, shown: int) -> str:
    listed = "; ".join(items[:shown])
    more = total - min(len(items), shown)
    text = f"{expected}. {listed[:1].upper()}{listed[1:]}" if listed else expected
    if listed and more:
        text += f"; and {more:,} more"
    return f"{text}." + (f" {advice}" if advice else "")


def check_real(
    value: object,
    name: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    closed: Literal["both", "left", "right", "neither"] = "both",
) -> float:
    """Return ``value`` as a float inside the stated interval."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputTypeError(
            f"`{name}` must be a number. Got {value!r} of type {type(value).__name__}. Pass one plain number."
        )
    number = float(value)
    above = number >= low if closed in ("both", "left") else number > low
    below = number <= high if closed in ("both", "right") else number < high
    if not (above and below) or math.isnan(number):
        left, right = "[" if closed in ("both", "left") else "(", "]" if closed in ("both", "right") else ")"
        raise InputError(
            f"`{name}` must lie in {left}{low:g}, {high:g}{right}. Got {number!r}. Choose a number in that range."
        )
    return number


def check_fraction(value: object, name: str) -> float:
    """Return ``value`` as a float strictly between 0 and 1."""
    return check_real(value, name, low=0.0, high=1.0, closed="neither")


def check_count(value: object, name: str, *, low: int = 1) -> int:
    """Return ``value`` as an integer of at least ``low``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InputTypeError(
            f"`{name}` must be an integer. Got {value!r} of type {type(value).__name__}. Pass one whole number."
        )
    if value < low:
        raise InputError(f"`{name}` must be at least {low}. Got {int(value)}. Pass {low} or more.")
    return int(value)


def check_prior(
    value: object,
    *,
    method: str | None = None,
    defined_at_half: bool = True,
    remedy: str = "Use method='joint' with triplets, which works at 0.5 (up to the names of the two classes).",
) -> float:
    """Return the class prior P(y = +1), which must lie in (0, 1).

    Pointwise methods that divide by ``2 * prior - 1`` also refuse one half; ``remedy`` says what to do then.
    """
    who = f" for method {method!r}" if method else ""
    if value is None:
        raise InputError(
            f"`prior`, the share of positives P(y = +1), is required{who}. Got None. "
            "Pass prior=..., estimated from the acceptance rate or from a few labels."
        )
    prior = check_fraction(value, "prior")
    if not defined_at_half and abs(2.0 * prior - 1.0) < 1e-6:
        raise UndefinedAtHalfError(
            f"`prior` must differ from 0.5{who}, because its weights divide by 2 * prior - 1. Got {prior!r}. {remedy}"
        )
    return prior


def check_seed(value: object, name: str = "random_state") -> np.random.Generator:
    """Return a NumPy generator made from None, an integer, a Generator, or a RandomState."""
    if isinstance(value, np.random.Generator):
        return value
    if isinstance(value, np.random.RandomState):
        return np.random.default_rng(int(value.randint(0, 2**31 - 1)))
    if value is None:
        return np.random.default_rng()
    return np.random.default_rng(check_count(value, name, low=0))


def _refuse_rows(name: str, message: str, bad: NDArray[Any], shown: int = 5) -> NoReturn:
    listed = ", ".join(str(int(i)) for i in bad[:shown])
    more = f" and {bad.size - shown} more" if bad.size > shown else ""
    raise InputError(f"`{name}` {message}: position {listed}{more}.")


def refuse_not_finite(
    where: str, rows: NDArray[Any], column: int, number: object, *, n_seen: int, shown: int = 5
) -> NoReturn:
    """Raise for points that are not finite; ``rows`` are their numbers, and ``column`` is where the first holds one.

    >>> refuse_not_finite("`X`", np.array([3, 8]), 0, float("nan"), n_seen=100)
    Traceback (most recent call last):
    ...
    usimul.validation.InputError: `X` must hold finite numbers that fit into float32. Row 3, column 0 is nan; \
2 of 100 rows looked at are such: 3, 8. Drop or impute such rows.
    """
    listed = ", ".join(str(int(i)) for i in rows[:shown])
    more = f" and {len(rows) - shown:,} more" if len(rows) > shown else ""
    raise InputError(
        f"{where} must hold finite numbers that fit into float32. Row {int(rows[0])}, column {column} is {number}; "
        f"{len(rows):,} of {n_seen:,} rows looked at are such: {listed}{more}. Drop or impute such rows."
    )


def check_rows(
    value: ArrayLike, name: str, *, width: int, n_points: int | None = None, distinct: bool = True
) -> IntArray:
    """Return row indices as a read-only int64 array of shape ``(n, width)``.

    Parameters
    ----------
    value
        Anything array-like of integers. A 1-D array is accepted when ``width`` is 1.
    name
        The argument's name, for messages.
    width
        How many points one tuple holds.
    n_points
        Size of the pool that the rows point into; None skips the upper bound.
    distinct
        Whether the rows of one tuple must differ from each other.
    """
    try:
        rows = np.asarray(value)
    except ValueError as error:  # NumPy does not say of which argument
        raise InputError(
            f"`{name}` must have shape (n, {width}). Got lines of different lengths. "
            "Each line is one tuple of row indices into X."
        ) from error
    if rows.size == 0:
        rows = np.zeros((0, width), dtype=np.int64)
    if rows.ndim == 1 and width == 1:
        rows = rows[:, None]
    if rows.ndim != 2 or rows.shape[1] != width:
        hint = (
            " It looks like copies of points; pass row indices into X instead."
            if rows.ndim == 3
            else " Each line is one tuple of row indices into X."
        )
        raise InputError(f"`{name}` must have shape (n, {width}). Got shape {rows.shape}.{hint}")
    if not np.issubdtype(rows.dtype, np.integer):
        whole = rows.astype(np.float64) if np.issubdtype(rows.dtype, np.floating) else None
        if whole is None or not np.all(np.abs(whole) < 2.0**53) or np.any(whole != np.floor(whole)):
            raise InputTypeError(f"`{name}` must hold integer row indices. Got dtype {rows.dtype}.")
    rows = np.array(rows, dtype=np.int64, order="C")
    negative = np.flatnonzero((rows < 0).any(axis=1))
    if negative.size:
        _refuse_rows(name, f"has negative row indices (smallest {int(rows.min())})", negative)
    if n_points is not None:
        outside = np.flatnonzero((rows >= n_points).any(axis=1))
        if outside.size:
            _refuse_rows(
                name,
                f"points outside the pool of {n_points} rows (largest index {int(rows.max())}; "
                f"indices run from 0 to {n_points - 1})",
                outside,
            )
    if distinct and width > 1 and rows.shape[0]:
        ordered = np.sort(rows, axis=1)
        repeated = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if repeated.size:
            _refuse_rows(name, "repeats a row inside one tuple, which says nothing about its class", repeated)
    rows.setflags(write=False)
    return rows


def check_labels(value: ArrayLike, name: str = "y", *, remedy: str | None = None) -> IntArray:
    """Return labels as an int64 vector of +1 and -1; both classes must occur.

    ``remedy`` says how to translate other labels, where that is not done in Python.
    """
    labels = np.asarray(value)
    if labels.ndim != 1:
        raise InputError(f"`{name}` must be one-dimensional. Got shape {labels.shape}.")
    found = np.unique(labels if labels.dtype.kind in "biufUS" else labels.astype(str))
    if labels.dtype.kind not in "iuf" or not np.array_equal(found, [-1, 1]):
        shown = ", ".join(str(v) for v in found[:6]) + (", ..." if found.size > 6 else "") or "none"
        remedy = remedy or f"Translate them first: np.where({name} == positive, 1, -1)."
        hint = f" {remedy}" if found.size > 1 else ""
        raise InputError(
            f"`{name}` must hold both labels +1 and -1 and nothing else. "
            f"Got values: {shown} (dtype {labels.dtype}).{hint}"
        )
    return labels.astype(np.int64)


def check_labels_subset(value: ArrayLike, name: str, *, n: int) -> IntArray:
    """Return ``n`` labels of +1 or -1, of which one class may be missing."""
    labels = np.asarray(value)
    if labels.shape != (n,) or (n and not np.isin(labels, (-1, 1)).all()):
        raise InputError(f"`{name}` must hold {n} labels, each +1 or -1. Got {np.array2string(labels, threshold=6)}.")
    labels = labels.astype(np.int64)
    labels.setflags(write=False)
    return labels


def check_class_labels(value: ArrayLike, classes: Collection[Any], name: str = "y") -> NDArray[Any]:
    """Return labels as an array, of which every one must be one of the two ``classes``, the second the positive one.

    A label of another name would count as wrong, or as the other class, without a word.

    >>> check_class_labels(["ill", "well"], ["well", "ill"]).tolist()
    ['ill', 'well']
    >>> check_class_labels([0, 1], [-1, 1])
    Traceback (most recent call last):
    ...
    usimul.validation.InputError: `y` must hold the two classes of the classifier, -1 and 1 (positive). Got: 0, 1. \
Translate them first: in a file, write 1 for the positive class and -1 for the other; in Python, use \
numpy.where(labels == positive, 1, -1).
    """
    labels = np.asarray(value)
    found = list(dict.fromkeys(labels.ravel().tolist()))
    if any(label not in classes for label in found):
        negative, positive = classes
        shown = ", ".join(repr(label) for label in found[:6]) + (", ..." if len(found) > 6 else "")
        raise InputError(
            f"`{name}` must hold the two classes of the classifier, {negative!r} and {positive!r} (positive). "
            f"Got: {shown}. Translate them first: in a file, write {positive} for the positive class and {negative} "
            f"for the other; in Python, use numpy.where(labels == positive, {positive!r}, {negative!r})."
        )
    return labels


def check_parent(path: str | os.PathLike[str], name: str = "path") -> Path:
    """Raise unless something new can be made at ``path``: call it before long work.

    A file is really made there, and gone again: permissions do not tell of file systems that are read-only.
    """
    target = Path(path)
    parent = target.absolute().parent
    if not parent.is_dir():
        raise InputError(f"`{name}`: the folder {str(parent)!r} does not exist; make it first.")
    check_writable(parent, name)
    return target


def check_new_path(path: str | os.PathLike[str], *, overwrite: bool, name: str = "path") -> Path:
    """Raise unless a file can be made at ``path``, or replaced where ``overwrite`` says so."""
    target = check_parent(path, name)
    if target.is_dir():
        raise InputError(f"`{name}` {str(target)!r} is a folder; name a file.")
    if target.exists() and not overwrite:
        raise InputError(f"`{name}` {str(target)!r} exists already. Choose another name, or pass overwrite=True.")
    return target


def check_writable(folder: Path, name: str = "path") -> None:
    """Raise unless files can be made in ``folder``."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"`{name}`: nothing can be written in the folder {str(folder)!r} ({error.strerror or error}). "
            "Choose another folder, or make this one writable."
        ) from error


def missing_dependency(package: str, extra: str, purpose: str) -> MissingDependencyError:
    """Return the error that says which line installs an optional package."""
    return MissingDependencyError(
        f"{purpose} needs the package '{package}', which is not installed. "
        f"Install it with: pip install 'usimul[{extra}]'"
    )
