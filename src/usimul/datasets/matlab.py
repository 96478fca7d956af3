"""MATLAB files of version 5: the wanted fields as dense arrays, and words for rows that are not as published."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from usimul.validation import FileFormatError

__all__ = ["read_mat", "refuse", "some_rows"]

_SHOWN = 8
_AGAIN = "It is another file under this name, or damaged: delete it and fetch it again."


def read_mat(path: Path, shapes: Mapping[str, tuple[int, ...]], sha256: str | None = None) -> dict[str, NDArray[Any]]:
    """Read fields of a MATLAB file, sparse or dense, as dense arrays of numbers.

    Parameters
    ----------
    path
        The file.
    shapes
        The shape that each field must have; other fields are not read.
    sha256
        SHA-256 of the file; None skips the check.

    Raises
    ------
    FileFormatError
        If the file is cut short, damaged, of another format, or does not hold what was asked for.
    """
    from scipy.io import loadmat

    content = path.read_bytes()
    try:
        found = loadmat(io.BytesIO(content), variable_names=list(shapes))
        # The reader builds sparse matrices without looking at their indices.
        for field in shapes:
            if hasattr(found.get(field), "check_format"):
                found[field].check_format(full_check=True)
    except Exception as error:  # scipy lets whatever breaks inside it through: zlib.error, TypeError, IndexError, ...
        raise FileFormatError(
            f"{path}: expected a MATLAB file of version 5 with the fields {', '.join(shapes)}, found {len(content):,} "
            f"bytes that cannot be read as one ({type(error).__name__}: {error}). {_AGAIN}"
        ) from error
    problems = [problem for field, shape in shapes.items() if (problem := _problem(field, found.get(field), shape))]
    if problems:
        refuse(path, problems)
    if sha256 is not None and (digest := hashlib.sha256(content).hexdigest()) != sha256:
        raise FileFormatError(f"{path}: expected SHA-256 {sha256}, found {digest}. {_AGAIN}")
    fields = {field: found[field] for field in shapes}
    return {field: np.asarray(a.toarray() if hasattr(a, "toarray") else a) for field, a in fields.items()}


def _problem(field: str, array: Any, shape: tuple[int, ...]) -> str | None:
    if array is None:
        return f"expected a field `{field}`, found none"
    if array.dtype.kind not in "buif":
        return f"expected numbers in `{field}`, found {array.dtype}"
    # Before a sparse matrix is made dense: a damaged header may claim any size.
    return None if array.shape == shape else f"expected `{field}` of shape {shape}, found {array.shape}"


def refuse(path: Path, problems: list[str]) -> None:
    """Raise with all that is wrong with a file, the first of many."""
    shown = problems[:_SHOWN] + ([f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else [])
    raise FileFormatError(f"{path}:\n  " + "\n  ".join(shown) + f"\n{_AGAIN}")


def some_rows(wrong: NDArray[np.bool_]) -> str:
    """Name the rows of a mask, the first of many, and say how many there are.

    >>> some_rows(np.array([False, True, True]))
    'rows 1, 2 (2 in all, counted from 0)'
    """
    rows = np.flatnonzero(wrong)
    more = ", ..." if len(rows) > _SHOWN else ""
    return f"rows {', '.join(map(str, rows[:_SHOWN].tolist()))}{more} ({len(rows)} in all, counted from 0)"
