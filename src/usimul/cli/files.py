"""Files that commands read and write: points, labels, supervision."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from usimul.files import CSV, JSONL, PARQUET, check_new_file, whole_file
from usimul.points import Points, read_labels, read_points
from usimul.supervision import Supervision
from usimul.supervision import read_supervision as read_any_supervision
from usimul.validation import FileFormatError, InputError

__all__ = [
    "SUPERVISION",
    "Points",
    "check_new_file",
    "read_labels",
    "read_points",
    "read_supervision",
    "whole_file",
]

TABLES = (*CSV, *JSONL, *PARQUET)
SUPERVISION = (".npz", *TABLES)


def read_supervision(path: Path, points: Points | None, about: dict[str, Any]) -> Supervision:
    """Read supervision over points; of a foreign file, say how to make supervision from it."""
    about = dict(about)
    pooled = about.pop("unlabeled", None) == "pool"
    try:
        if path.suffix.lower() not in SUPERVISION:
            raise FileFormatError(f"{str(path)!r} is not a supervision file, which ends in {', '.join(SUPERVISION)}.")
        sup = read_any_supervision(path, points=points, **about)
    except FileFormatError as error:
        if path.suffix.lower() in TABLES or (path.suffix.lower() == ".npz" and _has_header(path)):
            raise
        raise FileFormatError(
            f"{error} From row indices of triplets, (n, 3), make one in Python: "
            "usimul.Triplets(rows, unlabeled=rows_of_unlabeled_points, n_points=len(X)).save('file.npz'). "
            "From labels: `usimul sample`."
        ) from error
    if not pooled:
        return sup
    if points is None:
        raise InputError("--unlabeled pool takes every point of POINTS as unlabeled, and no POINTS are named.")
    return _with_pool(sup, path, len(points))


def _with_pool(sup: Supervision, path: Path, n: int) -> Supervision:
    """Take every point of the pool as unlabeled.

    Not only those of no tuple: among them are the points of questions that were answered with no, whose classes are not
    mixed as in the whole.
    """
    if sup.unlabeled is not None:
        raise InputError(
            f"{str(path)!r} names {sup.n_unlabeled:,} unlabeled points, and --unlabeled pool asks for all of the "
            "pool. Leave --unlabeled (in a project file, `unlabeled`) out, or take the points out of the file."
        )
    return replace(sup, unlabeled=np.arange(n))


def _has_header(path: Path) -> bool:
    """Whether an archive was once a supervision file, or is no archive that could tell."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "header.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return True
