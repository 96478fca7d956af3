"""Points and labels from NumPy arrays and their files."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from usimul.files import parsing
from usimul.mapped import is_mapped
from usimul.points.base import Points, check_finite, check_ids
from usimul.validation import FileFormatError, InputError, Problems

__all__ = ["points_of_array", "read_array", "read_array_file", "write_array_file"]

NPY_START, ZIP_STARTS = (b"\x93NUMPY",), (b"PK\x03\x04", b"PK\x05\x06")
NAMES = ("ids", "feature_names")
"""Arrays beside the points in an .npz file that name the rows and the columns."""


def points_of_array(
    array: NDArray[Any],
    source: str,
    problems: Problems,
    *,
    ids: tuple[str, ...] | None = None,
    feature_names: tuple[str, ...] | None = None,
    fitting: bool = False,
) -> Points | None:
    """Check that all are finite numbers, and flatten images.

    Images ``(n, height, width)``, ``(n, channels, height, width)`` or ``(n, height, width, channels)`` become rows with
    channels first. With ``fitting`` a file is not read yet: `WeakClassifier.fit` looks at every number of it.
    """
    if array.dtype.kind not in "fiub":
        problems.add(f"must hold real numbers. Got dtype {array.dtype}")
        return None
    if array.ndim < 2 or array.size == 0:
        problems.add(f"must hold points as rows, shape (n, features). Got shape {array.shape}")
        return None
    shape = None
    if array.ndim == 3:
        shape = (1, array.shape[1], array.shape[2])
    elif array.ndim == 4:
        channels = (1, 3, 4)
        if array.shape[1] not in channels and array.shape[3] in channels:
            array = np.moveaxis(array, 3, 1)
        shape = (array.shape[1], array.shape[2], array.shape[3])
    n_features = math.prod(array.shape[1:])
    rows = array if is_mapped(array) else array.reshape(len(array), n_features)
    for what, names, wanted in (("ids", ids, len(rows)), ("feature_names", feature_names, n_features)):
        if names is not None and len(names) != wanted:
            problems.add(
                f"needs {wanted} {what}, one for each {'row' if what == 'ids' else 'column'}. Got {len(names)}"
            )
            return None
    points = Points(rows, shape, ids, feature_names, source)
    if not (fitting and is_mapped(array)):
        check_finite(points, problems)
    return points


def read_array_file(path: Path, key: str | None, problems: Problems, *, fitting: bool = False) -> Points | None:
    """Read a ``.npy`` or ``.npz`` file of points; an archive may name its rows in ``ids``."""
    array = read_array(path, key)
    ids = names = None
    if path.suffix.lower() == ".npz" and key not in NAMES:
        ids = _names(path, "ids")
        names = _names(path, "feature_names")
    if ids is not None:
        ids = check_ids(ids, range(len(ids)), "row", problems)
    return points_of_array(array, str(path), problems, ids=ids, feature_names=names, fitting=fitting)


def _names(path: Path, key: str) -> tuple[str, ...] | None:
    with _parsing(path), path.open("rb") as handle, np.load(handle, allow_pickle=False) as archive:
        if key not in archive.files:
            return None
        found = archive[key]
    if found.ndim != 1 or found.dtype.kind not in "Uiu":
        raise FileFormatError(
            f"{str(path)!r} must hold texts or whole numbers in {key!r}. Got dtype {found.dtype}, shape {found.shape}."
        )
    return tuple(str(name) for name in found)


def write_array_file(points: Points, handle: Any, suffix: str) -> None:
    """Write points as ``.npy``, or as ``.npz`` with ids and names; images get their shape back."""
    X = points.rows if points.image_shape is None else points.rows.reshape(len(points), *points.image_shape)
    if suffix == ".npy":
        np.save(handle, X, allow_pickle=False)
        return
    named = {"ids": points.ids, "feature_names": points.feature_names}
    arrays: dict[str, Any] = {name: np.array(texts) for name, texts in named.items() if texts is not None}
    np.savez_compressed(handle, X=X, **arrays)


def read_array(path: Path, key: str | None = None) -> NDArray[Any]:
    """Read one array: a ``.npy`` file stays on disk, of an ``.npz`` file the array ``key``, ``X``, or the only one."""
    with _parsing(path):
        if path.suffix.lower() == ".npy":
            _check_start(path, NPY_START)
            array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
            return array
        _check_start(path, ZIP_STARTS)
        # Opened here, because numpy leaves the file open when it is no archive.
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as archive:
            chosen = key or ("X" if "X" in archive.files else archive.files[0] if len(archive.files) == 1 else None)
            if chosen is None or chosen not in archive.files:
                names = ", ".join(archive.files)
                wanted = f"no array {chosen!r}" if chosen else "several arrays and none called 'X'"
                raise InputError(f"{str(path)!r} holds {wanted}; it has: {names}. Name one with --key.")
            return np.asarray(archive[chosen])


def _check_start(path: Path, starts: tuple[bytes, ...]) -> None:
    """Look at the first bytes: NumPy takes a foreign file for a pickle, and advises to unpickle it."""
    with path.open("rb") as handle:
        found = handle.read(max(map(len, starts)))
    if not found:
        raise ValueError("the file is empty")
    if not found.startswith(starts):
        raise ValueError("its content is of another format")


def _parsing(path: Path) -> AbstractContextManager[None]:
    suffix = path.suffix.lower()
    return parsing(path, f"{suffix} file of numbers", f"Write it with numpy.{'save' if suffix == '.npy' else 'savez'}.")
