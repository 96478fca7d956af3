"""Kuzushiji-MNIST: cursive Japanese characters in the format of MNIST."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from usimul.datasets.mnist import EVEN_ODD, RELEASE, read_mnist_format, read_part
from usimul.datasets.records import DataFile, DatasetRecord, Edition, RawData, Task

__all__ = ["KMNIST"]

_BASE_URL = "http://codh.rois.ac.jp/kmnist/dataset/kmnist"

# The unpacked sum of the training images is not known; the sum of the packed file is the one that the others come with.
_TRAIN_FILES = (
    DataFile(
        "train-images-idx3-ubyte",
        n_bytes=47_040_016,
        gz=True,
        packed_sha256="51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4",
    ),
    DataFile(
        "train-labels-idx1-ubyte",
        "2a16eeae62da984b8bd24fa32e31d47291f01dac3fe84d5594f304f71e7d374b",
        60_008,
        gz=True,
        packed_sha256="e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17",
    ),
)
_TEST_FILES = (
    DataFile(
        "t10k-images-idx3-ubyte",
        "76fbd229ce87db80dd281af5e6670de4ad0e42fb30a7bd643972994c47c1f42e",
        7_840_016,
        gz=True,
        packed_sha256="edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5",
    ),
    DataFile(
        "t10k-labels-idx1-ubyte",
        "a11dc742be8e781a40a92f53d6a4957e7b7d36df2faa097659131ebfd8fd60c6",
        10_008,
        gz=True,
        packed_sha256="20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c",
    ),
)


def _read_test_part(edition: Edition, paths: Mapping[str, Path]) -> RawData:
    X, labels = read_part(paths, edition, "t10k")
    in_training = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        in_training[rows[: len(rows) * 4 // 5]] = True
    order = np.concatenate([np.flatnonzero(in_training), np.flatnonzero(~in_training)])
    return RawData(
        X.reshape(len(X), -1)[order],
        labels[order].astype(np.int64),
        n_train=int(in_training.sum()),
        image_shape=(1, X.shape[1], X.shape[2]),
    )


KMNIST = DatasetRecord(
    name="kmnist",
    title="Kuzushiji-MNIST",
    summary="cursive Japanese characters of 28x28 pixels, even against odd class index (70,000 points)",
    source="https://github.com/rois-codh/kmnist",
    licence=(
        "CC BY-SA 4.0; 'KMNIST Dataset' (created by CODH), adapted from 'Kuzushiji Dataset' "
        "(created by NIJL and others)"
    ),
    citation="Clanuwat et al. (2018), arXiv:1812.01718; doi:10.20676/00000341",
    class_names=("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"),
    editions=(
        Edition("official", read_mnist_format, files=(*_TRAIN_FILES, *_TEST_FILES), base_url=_BASE_URL),
        Edition("test-part", _read_test_part, files=_TEST_FILES, base_url=_BASE_URL, part="test part"),
    ),
    tasks=(
        replace(EVEN_ODD, classes="+1: o su na ma re, -1: ki tsu ha ya wo"),
        Task("release", (0, 2, 4), (1, 3), "+1: o su na, -1: ki tsu; the other five dropped", RELEASE),
    ),
    note=(
        "The paper uses all 70,000 images (edition official). Edition test-part has the published test images only: of "
        "each class the first 800 are for training and the last 200 for testing, so its numbers are not those of "
        "Kuzushiji-MNIST."
    ),
)
