"""The file format of supervision: ``.npz`` without pickled objects, with a kind, a version and a list of arrays."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from usimul.files import SUPERVISION_FORMAT, whole_file
from usimul.validation import FileFormatError, InputError, check_new_path

__all__ = ["ARRAYS", "FORMAT", "FORMAT_VERSION", "SCALARS", "check_header", "read_file", "write_file"]

FORMAT = SUPERVISION_FORMAT
FORMAT_VERSION = 1

ARRAYS = ("rows", "unlabeled", "values", "known_rows", "known_labels")
SCALARS = ("n_points", "world", "n_asked", "n_accepted")
_HEADER = {"format", "version", "kind", "arrays"}


def write_file(
    path: str | os.PathLike[str],
    kind: str,
    arrays: Mapping[str, NDArray[Any]],
    scalars: Mapping[str, object],
    *,
    overwrite: bool = False,
) -> None:
    """Write one file; it appears whole or not at all, and replaces another only with ``overwrite``."""
    target = Path(path)
    if target.suffix.lower() != ".npz":
        raise InputError(f"`path` of a supervision file must end in .npz. Got {str(target)!r}.")
    check_new_path(target, overwrite=overwrite)  # answers of people cannot be asked for again
    # The list of arrays lets a reader notice one that a damaged archive directory has lost.
    header = {"format": FORMAT, "version": FORMAT_VERSION, "kind": kind, "arrays": list(arrays), **scalars}
    with whole_file(target) as handle:
        np.savez_compressed(handle, **{"header": np.array(json.dumps(header)), **arrays})  # type: ignore[arg-type]


def check_header(path: Path, header: object) -> dict[str, Any]:
    """Return a header of this format and version, or say what it is instead."""
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise FileFormatError(f"{str(path)!r} is not a usimul supervision file.")
    version = header.get("version")
    if version != FORMAT_VERSION or isinstance(version, (bool, float)):
        older = isinstance(version, int) and version < FORMAT_VERSION
        why = "No release has written that version" if older else "Use a usimul release that matches the file"
        raise FileFormatError(
            f"{str(path)!r} has format version {version!r}; this usimul reads version {FORMAT_VERSION}. {why}."
        )
    return header


def read_file(path: str | os.PathLike[str]) -> tuple[object, dict[str, Any]]:
    """Return the kind and the fields of a file, or raise `FileFormatError`; never a part of its content."""
    source = Path(path)
    if not source.is_file():
        raise InputError(f"there is no supervision file {str(source)!r}.")
    try:
        if not zipfile.is_zipfile(source):  # NumPy would advise to unpickle it
            raise zipfile.BadZipFile("no archive, or a truncated one")
        with source.open("rb") as handle, np.load(handle, allow_pickle=False) as arrays:
            content = {name: arrays[name] for name in arrays.files}
        header = json.loads(str(content.pop("header")))
    except Exception as error:  # zlib, zipfile, json and the .npy parser raise ten kinds of errors on damaged bytes
        raise FileFormatError(
            f"{str(source)!r} is not a whole supervision file ({type(error).__name__}: {error}). "
            "Write one with Supervision.save()."
        ) from error
    header = check_header(source, header)
    strangers = sorted((set(content) - set(ARRAYS)) | (set(header) - set(SCALARS) - _HEADER))
    if strangers or header.get("arrays") != list(content) or "rows" not in content:
        what = f"has unexpected content ({', '.join(strangers)})" if strangers else "has lost some of its arrays"
        raise FileFormatError(f"{str(source)!r} {what}; it was not written whole by this version of usimul.")
    return header.get("kind"), {**content, **{name: header.get(name) for name in SCALARS}}
