"""The user's points, from files and objects, checked once: all problems are told together, with rows and names.

Optional packages (pyarrow, pandas, datasets) are imported only when their data are read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from usimul.files import CSV, JSONL, PARQUET
from usimul.points.arrays import points_of_array, read_array_file, write_array_file
from usimul.points.base import ID, Points, check_ids
from usimul.points.images import MODES, check_resize, read_folder, read_zip
from usimul.points.labels import read_labels
from usimul.points.stream import PointStream, stream_images, stream_parquet, stream_points_object, stream_table
from usimul.validation import InputError, InputTypeError, Problems, check_choice

__all__ = [
    "ID",
    "MODES",
    "PointStream",
    "Points",
    "check_ids",
    "read_labels",
    "read_points",
    "scan_points",
    "stream_points",
    "write_array_file",
]

ARRAYS = (".npy", ".npz")
KINDS_OF_FILES = "a .npy or .npz file, a table (.csv, .tsv, .parquet, .jsonl), a folder of images, or a .zip of images"


def read_points(
    source: Any,
    *,
    key: str | None = None,
    id_column: str | None = None,
    ignore: Sequence[str] = (),
    resize: tuple[int, int] | None = None,
    mode: str | None = None,
    fitting: bool = False,
) -> Points:
    """Read points, one a row, and check all of them.

    Parameters
    ----------
    source
        A path: ``.npy`` (stays on disk), ``.npz``, ``.csv``, ``.tsv``, ``.parquet``, ``.jsonl``, a folder of images
        (PNG, JPEG, BMP, TIFF, WebP), or a ``.zip`` of images, read in place. Or an object: a NumPy array, a pandas
        DataFrame, a ``pyarrow.Table``, a Hugging Face ``datasets.Dataset``, or `Points`, returned as they are.
    key
        Name of the array in a ``.npz`` file; ``X``, or the only one.
    id_column
        Column that names the rows; ``id`` if there is one. The ids of images are their paths within the folder.
    ignore
        Columns to leave out, such as labels: every other column is a feature and must hold numbers.
    resize
        Height and width to bring images to; without it all must have one size.
    mode
        ``grey`` or ``rgb``. By default grey if all images are grey, else RGB.
    fitting
        Leave the numbers of a mapped file unread: `usimul.WeakClassifier.fit` looks at all of them.

    Raises
    ------
    InputError
        With all problems that were found, of which some of each sort are listed.
    FileFormatError
        If a file is damaged as a whole.

    Examples
    --------
    >>> points = read_points(np.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> points.rows.shape, points.ids
    ((2, 2), None)
    """
    problems = Problems(_name(source))
    points = scan_points(
        source,
        problems,
        key=key,
        id_column=id_column,
        ignore=ignore,
        resize=resize,
        mode=mode,
        fitting=fitting,
    )
    problems.refuse()
    assert points is not None
    return points


def scan_points(
    source: Any,
    problems: Problems,
    *,
    key: str | None = None,
    id_column: str | None = None,
    ignore: Sequence[str] = (),
    resize: tuple[int, int] | None = None,
    mode: str | None = None,
    fitting: bool = False,
) -> Points | None:
    """Read points and note problems instead of raising; what was found may be incomplete then, or None."""
    if mode is not None:
        check_choice(mode, MODES, "mode")
    size = check_resize(resize)
    if isinstance(source, (str, os.PathLike)):
        return _read_file(Path(source), problems, key, id_column, ignore, size, mode, fitting)
    if isinstance(source, Points):
        return source
    name = _name(source)
    if _is(source, "pandas", "DataFrame"):
        from usimul.points.frames import points_of_frame

        return points_of_frame(source, name, id_column, ignore, problems)
    if _is(source, "pyarrow", "Table"):
        from usimul.points.frames import points_of_arrow

        return points_of_arrow(source, name, id_column, ignore, problems)
    if _is(source, "datasets", "Dataset"):
        from usimul.points.hub import points_of_dataset

        return points_of_dataset(source, name, id_column, ignore, size, mode, problems)
    if not hasattr(source, "__array__"):
        raise InputTypeError(
            f"points must be a path, a NumPy array, a pandas DataFrame, a pyarrow Table or a Hugging Face Dataset. "
            f"Got {type(source).__name__}."
            + (" Choose one of its splits, such as data['train']." if type(source).__name__ == "DatasetDict" else "")
        )
    array = source if isinstance(source, np.memmap) else np.asarray(source)
    if array.dtype.names:
        raise InputTypeError("points must be a plain array (n, features). Got one with named fields; use a DataFrame.")
    return points_of_array(array, name, problems, fitting=fitting)


def stream_points(
    source: Any,
    *,
    key: str | None = None,
    id_column: str | None = None,
    ignore: Sequence[str] = (),
    resize: tuple[int, int] | None = None,
    mode: str | None = None,
) -> PointStream:
    """Open points of any length, to be handed out once, part by part, in constant memory.

    Takes what `read_points` takes. Tables, ``.npy`` files, folders and archives of images are read as the parts are
    asked for; a ``.npz`` file is compressed as a whole, and is read at once like an object in memory.

    Examples
    --------
    >>> stream = stream_points(np.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> [part.rows.tolist() for part in stream.parts()]
    [[[0.0, 1.0], [2.0, 3.0]]]
    """
    problems = Problems(_name(source))
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        if mode is not None:
            check_choice(mode, MODES, "mode")
        size = check_resize(resize)
        suffix = _check_file(path, {"key": key, "id_column": id_column, "ignore": ignore, "resize": size, "mode": mode})
        if suffix in (*CSV, *JSONL):
            return stream_table(path, id_column, ignore, problems)
        if suffix in PARQUET:
            return stream_parquet(path, id_column, ignore, problems)
        if suffix in ("", ".zip"):
            return stream_images(path, size, mode, problems)
    points = read_points(source, key=key, id_column=id_column, ignore=ignore, resize=resize, mode=mode, fitting=True)
    return stream_points_object(points, problems)


def _read_file(
    path: Path,
    problems: Problems,
    key: str | None,
    id_column: str | None,
    ignore: Sequence[str],
    size: tuple[int, int] | None,
    mode: str | None,
    fitting: bool,
) -> Points | None:
    suffix = _check_file(path, {"key": key, "id_column": id_column, "ignore": ignore, "resize": size, "mode": mode})
    if suffix in ARRAYS:
        return read_array_file(path, key, problems, fitting=fitting)
    if suffix in (*CSV, *JSONL):
        from usimul.points.tables import read_table

        return read_table(path, id_column, ignore, problems)
    if suffix in PARQUET:
        from usimul.points.frames import read_parquet

        return read_parquet(path, id_column, ignore, problems)
    if suffix == ".zip":
        return read_zip(path, size, mode, problems)
    return read_folder(path, size, mode, problems)


def _check_file(path: Path, options: dict[str, Any]) -> str:
    """Return the suffix of a file of points, empty for a folder; refuse others, and options that do not belong."""
    if not path.exists():
        raise InputError(f"there is no file or folder {str(path)!r}. Points are {KINDS_OF_FILES}.")
    suffix = "" if path.is_dir() else path.suffix.lower()
    kind, takes = _kind(suffix)
    for name, value in options.items():
        if value and name not in takes:
            raise InputError(f"`{name}` does not belong to {str(path)!r}, {kind}; leave it out.")
    if not path.is_dir() and suffix not in (*ARRAYS, *CSV, *JSONL, *PARQUET, ".zip"):
        raise InputError(f"{str(path)!r} must be {KINDS_OF_FILES}.")
    return suffix


def _kind(suffix: str) -> tuple[str, tuple[str, ...]]:
    """Return the words for a kind of file, and the options that it takes."""
    if suffix == ".npz":
        return "an archive of arrays", ("key",)
    if suffix in (*CSV, *JSONL, *PARQUET):
        return "a table", ("id_column", "ignore")
    if suffix in ("", ".zip"):
        return "a folder or archive of images", ("resize", "mode")
    return "an array", ("key",)


def _is(source: object, package: str, name: str) -> bool:
    """Whether an object is of a class of a package that need not be installed: then nobody can have made one."""
    kind = getattr(sys.modules.get(package), name, None)
    return isinstance(kind, type) and isinstance(source, kind)


def _name(source: object) -> str:
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else type(source).__name__
