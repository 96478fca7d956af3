"""Files that commands read and write: points, labels, predictions."""

from __future__ import annotations

import contextlib
import math
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from usimul.validation import FileFormatError, InputError, check_parent

if TYPE_CHECKING:
    from usimul.supervision import Supervision

__all__ = ["Points", "check_new_file", "read_array", "read_labels", "read_points", "read_supervision", "whole_file"]

NPY_START, ZIP_STARTS = (b"\x93NUMPY",), (b"PK\x03\x04", b"PK\x05\x06")
CHUNK_VALUES = 1 << 22  # numbers looked at together; about 16 MB


@dataclass(frozen=True)
class Points:
    """Points as rows, possibly still on disk, and the image shape that one row had in the file."""

    rows: NDArray[Any]
    image_shape: tuple[int, int, int] | None = None

    @property
    def chunk(self) -> int:
        """How many rows to look at together."""
        return max(1, CHUNK_VALUES // int(self.rows.shape[1]))

    def chunks(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield the number of the first row and some rows as float32, one after the other."""
        for start in range(0, len(self.rows), self.chunk):
            with np.errstate(over="ignore"):  # too large for float32: becomes infinite, and is then refused
                yield start, np.ascontiguousarray(self.rows[start : start + self.chunk], dtype=np.float32)


def read_array(path: Path, key: str | None = None) -> NDArray[Any]:
    """Read one array: a ``.npy`` file stays on disk, of an ``.npz`` file the array ``key``, ``X``, or the only one."""
    if path.suffix == ".npy":
        try:
            _check_start(path, NPY_START)
            array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise _not_whole(path, error) from error
        return array
    if path.suffix != ".npz":
        raise InputError(f"{str(path)!r} must be a .npy or .npz file. Save an array with numpy.save first.")
    try:
        _check_start(path, ZIP_STARTS)
        # Opened here, because numpy leaves the file open when it is no archive.
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as archive:
            chosen = key or ("X" if "X" in archive.files else archive.files[0] if len(archive.files) == 1 else None)
            if chosen is None or chosen not in archive.files:
                names = ", ".join(archive.files)
                wanted = f"no array {chosen!r}" if chosen else "several arrays and none called 'X'"
                raise InputError(f"{str(path)!r} holds {wanted}; it has: {names}. Name one with --key.")
            return np.asarray(archive[chosen])
    except InputError:
        raise
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile, zipfile.LargeZipFile) as error:
        raise _not_whole(path, error) from error


def _check_start(path: Path, starts: tuple[bytes, ...]) -> None:
    """Look at the first bytes: NumPy takes a foreign file for a pickle, and advises to unpickle it."""
    with path.open("rb") as handle:
        found = handle.read(max(map(len, starts)))
    if not found:
        raise ValueError("the file is empty")
    if not found.startswith(starts):
        raise ValueError("its content is of another format")


def _not_whole(path: Path, error: Exception) -> FileFormatError:
    why = "it holds Python objects" if "Object arrays" in str(error) else str(error)
    return FileFormatError(
        f"{str(path)!r} is not a whole {path.suffix} file of numbers ({why}). "
        f"Write it with numpy.{'save' if path.suffix == '.npy' else 'savez'}."
    )


def read_supervision(path: Path) -> Supervision:
    """Read a supervision file; of another file, say how to make one from it."""
    from usimul.supervision import load_supervision

    try:
        if path.suffix != ".npz":
            raise FileFormatError(f"{str(path)!r} is not a supervision file, which ends in .npz.")
        return load_supervision(path)
    except FileFormatError as error:
        raise FileFormatError(
            f"{error} From row indices of triplets, (n, 3), make one in Python: "
            "usimul.Triplets(rows, unlabeled=rows_of_unlabeled_points, n_points=len(X)).save('file.npz'). "
            "From labels: `usimul sample`."
            if path.suffix != ".npz" or not _has_header(path)
            else str(error)
        ) from error


def _has_header(path: Path) -> bool:
    """Whether an archive was once a supervision file, or is no archive that could tell."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "header.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return True


def read_points(path: Path, key: str | None = None) -> Points:
    """Read points, check that all are finite numbers, and flatten images.

    Images ``(n, height, width)``, ``(n, channels, height, width)`` or ``(n, height, width, channels)`` become rows with
    channels first.
    """
    array = read_array(path, key)
    if array.dtype.kind not in "fiub":
        raise InputError(f"{str(path)!r} must hold real numbers. Got dtype {array.dtype}.")
    if array.ndim < 2 or array.size == 0:
        raise InputError(f"{str(path)!r} must hold points as rows, shape (n, features). Got shape {array.shape}.")
    shape = None
    if array.ndim == 3:
        shape = (1, array.shape[1], array.shape[2])
    elif array.ndim == 4:
        channels = (1, 3, 4)
        if array.shape[1] not in channels and array.shape[3] in channels:
            array = np.moveaxis(array, 3, 1)
        shape = (array.shape[1], array.shape[2], array.shape[3])
    points = Points(array.reshape(len(array), math.prod(array.shape[1:])), shape)
    for start, part in points.chunks():
        finite = np.isfinite(part)
        if not finite.all():
            row, column = (int(i) for i in np.argwhere(~finite)[0])
            raise InputError(
                f"{str(path)!r} must hold finite numbers that fit into float32. Row {start + row}, column {column} is "
                f"{points.rows[start + row, column]}. Drop or impute such rows."
            )
    return points


def read_labels(path: Path, key: str | None = None) -> NDArray[Any]:
    """Read a vector of labels."""
    labels = np.array(read_array(path, key))
    if labels.ndim != 1 or labels.size == 0:
        raise InputError(f"{str(path)!r} must hold one label for each point, shape (n,). Got shape {labels.shape}.")
    return labels


def check_new_file(path: Path, suffixes: tuple[str, ...], *, overwrite: bool) -> Path:
    """Raise unless ``path`` can be written as a new file."""
    if path.suffix not in suffixes:
        raise InputError(f"{str(path)!r} must end in {' or '.join(suffixes)}.")
    check_parent(path, "output")
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder; name a file.")
    if path.exists() and not overwrite:
        raise InputError(f"{str(path)!r} exists already. Choose another name, or pass --overwrite.")
    return path


@contextlib.contextmanager
def whole_file(path: Path, mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a file that appears under its name only when the block ends without an error."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    try:
        with partial.open(mode, **text) as handle:
            yield handle
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
