"""SVHN: digits cut out of photographs of house numbers."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from usimul.datasets.checksums import check_file
from usimul.datasets.mnist import EVEN_ODD, RELEASE
from usimul.datasets.packed import flatten_images, load_packed
from usimul.datasets.records import DataFile, DatasetRecord, Edition, RawData, Task
from usimul.validation import FileFormatError

__all__ = ["SVHN"]

_SHAPE = (3, 32, 32)


def _read_mat(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        fields = loadmat(path, variable_names=("X", "y"))
    except (MatReadError, NotImplementedError, ValueError, TypeError, KeyError, EOFError, OSError, zlib.error) as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        raise FileFormatError(
            f"{path}: expected a whole MATLAB 5 file, found a damaged or other one ({error}). Get it again."
        ) from error
    X, y = fields.get("X"), fields.get("y")
    n = X.shape[-1] if X is not None and X.ndim == 4 else None
    if (
        X is None
        or X.dtype != np.uint8
        or X.shape != (32, 32, 3, n)
        or y is None
        or y.shape != (n, 1)
        or y.dtype.kind not in "iu"
    ):
        found = ", ".join(f"{k} {v.dtype} {v.shape}" for k, v in (("X", X), ("y", y)) if v is not None)
        raise FileFormatError(
            f"{path}: expected the cropped digits, X uint8 (32, 32, 3, n) and y (n, 1); found {found or 'neither'}. "
            "It is of another set or version."
        )
    labels = y[:, 0].astype(np.int64)
    if not ((labels >= 1) & (labels <= 10)).all():
        raise FileFormatError(f"{path}: expected labels from 1 to 10, found {labels.min()} to {labels.max()}.")
    # The publisher writes 10 for the digit 0.
    return flatten_images(X.transpose(3, 0, 1, 2)), labels % 10


def _read_official(edition: Edition, paths: Mapping[str, Path]) -> RawData:
    parts = []
    for file in edition.files:
        check_file(paths[file.name], file)
        parts.append(_read_mat(paths[file.name]))
    (X, y), (X_test, y_test) = parts
    return RawData(np.concatenate([X, X_test]), np.concatenate([y, y_test]), n_train=len(X), image_shape=_SHAPE)


def _read_test_part(edition: Edition, paths: Mapping[str, Path]) -> RawData:
    (file,) = edition.files
    check_file(paths[file.name], file)
    fields = load_packed(paths[file.name], "y")
    X = flatten_images(fields["x"])
    # In file order no house is divided by this.
    return RawData(X, fields["y"].astype(np.int64), n_train=len(X) * 4 // 5, image_shape=_SHAPE)


SVHN = DatasetRecord(
    name="svhn",
    title="SVHN",
    summary="house-number digits of 32x32 pixels in colour, even against odd (99,289 points)",
    source="http://ufldl.stanford.edu/housenumbers/",
    licence="non-commercial use only",
    citation="Netzer et al. (2011), Reading digits in natural images with unsupervised feature learning",
    class_names=tuple("0123456789"),
    editions=(
        Edition(
            "official",
            _read_official,
            files=(
                DataFile("train_32x32.mat", "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8"),
                DataFile("test_32x32.mat", "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b"),
            ),
            base_url="http://ufldl.stanford.edu/housenumbers",
        ),
        Edition(
            "packed-part",
            _read_test_part,
            files=(
                DataFile(
                    "test_first5000.npz.xz",
                    "0f0eb384cc5ac91d79ce551ff233205f62d4742e1752f24ec8073ae70570ddac",
                    5_694_908,
                ),
            ),
            by_hand="This archive is not published; get the official files instead.",
            part="test part",
        ),
    ),
    tasks=(
        replace(EVEN_ODD, classes="+1: digits 0 2 4 6 8, -1: digits 1 3 5 7 9"),
        Task("release", (0, 2, 4, 6), (1, 3, 5), "+1: digits 0 2 4 6, -1: digits 1 3 5; 7 8 9 dropped", RELEASE),
    ),
    note=(
        "The paper uses 73,257 / 26,032 digits (edition official). Edition packed-part has the first 5,000 digits of "
        "the published test part, 4,000 for training and 1,000 for testing."
    ),
)
