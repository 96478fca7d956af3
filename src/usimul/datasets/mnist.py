"""MNIST and sets published in its format: four idx files with images and class indices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from usimul.datasets.checksums import check_file
from usimul.datasets.idx import read_idx
from usimul.datasets.records import DataFile, DatasetRecord, Edition, RawData, Task
from usimul.validation import FileFormatError

__all__ = ["CONFDIFF", "EVEN_ODD", "FASHION_MNIST", "MNIST", "RELEASE", "read_mnist_format", "read_part"]


CONFDIFF = "Wang et al. 2023 (ConfDiff), whose code the paper builds on"
RELEASE = "the code that the paper released, which drops the other classes"
EVEN_ODD = Task("even-odd", (0, 2, 4, 6, 8), (1, 3, 5, 7, 9), "+1: even class index, -1: odd", CONFDIFF)


def read_part(paths: Mapping[str, Path], edition: Edition, prefix: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Read the images and the class indices of one part."""
    files = {file.name: file for file in edition.files}
    parts = ((f"{prefix}-images-idx3-ubyte", 3), (f"{prefix}-labels-idx1-ubyte", 1))
    for name, _ in parts:
        if files[name].sha256 is None:
            check_file(paths[name], files[name])
    images, labels = (
        read_idx(paths[name], n_dimensions=dimensions, dtype=np.uint8, sha256=files[name].sha256)
        for name, dimensions in parts
    )
    if len(images) != len(labels):
        raise FileFormatError(
            f"{paths[f'{prefix}-labels-idx1-ubyte']}: expected {len(images)} labels, one for each image, "
            f"found {len(labels)}."
        )
    return images, labels


def read_mnist_format(edition: Edition, paths: Mapping[str, Path]) -> RawData:
    """Read four idx files: images and class indices of the published training and test part."""
    X, labels = read_part(paths, edition, "train")
    X_test, labels_test = read_part(paths, edition, "t10k")
    return RawData(
        np.concatenate([X.reshape(len(X), -1), X_test.reshape(len(X_test), -1)]),
        np.concatenate([labels, labels_test]).astype(np.int64),
        n_train=len(X),
        image_shape=(1, X.shape[1], X.shape[2]),
    )


MNIST = DatasetRecord(
    name="mnist",
    title="MNIST",
    summary="handwritten digits of 28x28 pixels, even against odd (70,000 points)",
    source="http://yann.lecun.com/exdb/mnist/",
    licence="CC BY-SA 3.0 (LeCun, Cortes), as usually given",
    citation="LeCun, Bottou, Bengio, Haffner (1998), doi:10.1109/5.726791",
    class_names=tuple("0123456789"),
    editions=(
        Edition(
            "official",
            read_mnist_format,
            files=(
                DataFile(
                    "train-images-idx3-ubyte",
                    "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                    47_040_016,
                    gz=True,
                ),
                DataFile(
                    "train-labels-idx1-ubyte",
                    "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                    60_008,
                    gz=True,
                ),
                DataFile(
                    "t10k-images-idx3-ubyte",
                    "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                    7_840_016,
                    gz=True,
                ),
                DataFile(
                    "t10k-labels-idx1-ubyte",
                    "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
                    10_008,
                    gz=True,
                ),
            ),
            base_url="https://storage.googleapis.com/cvdf-datasets/mnist/",
        ),
    ),
    tasks=(
        replace(EVEN_ODD, classes="+1: digits 0 2 4 6 8, -1: digits 1 3 5 7 9"),
        Task("release", (0, 2, 4, 6, 8), (1, 3, 5, 7), "+1: digits 0 2 4 6 8, -1: digits 1 3 5 7; 9 dropped", RELEASE),
    ),
)

FASHION_MNIST = DatasetRecord(
    name="fashion_mnist",
    title="Fashion-MNIST",
    summary="clothing of 28x28 pixels, even against odd class index (70,000 points)",
    source="https://github.com/zalandoresearch/fashion-mnist",
    licence="MIT",
    citation="Xiao, Rasul, Vollgraf (2017), arXiv:1708.07747",
    class_names=("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"),
    editions=(
        Edition(
            "official",
            read_mnist_format,
            files=(
                DataFile(
                    "train-images-idx3-ubyte",
                    "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                    47_040_016,
                    gz=True,
                ),
                DataFile(
                    "train-labels-idx1-ubyte",
                    "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
                    60_008,
                    gz=True,
                ),
                DataFile(
                    "t10k-images-idx3-ubyte",
                    "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
                    7_840_016,
                    gz=True,
                ),
                DataFile(
                    "t10k-labels-idx1-ubyte",
                    "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
                    10_008,
                    gz=True,
                ),
            ),
            # The official address has no https; the checksums of the unpacked files stand in for it.
            base_url="http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        ),
    ),
    tasks=(
        replace(
            EVEN_ODD, classes="+1: T-shirt, pullover, coat, shirt, bag, -1: trouser, dress, sandal, sneaker, ankle boot"
        ),
        Task(
            "release",
            (0, 2, 4, 6, 8),
            (1, 3, 5, 7),
            "+1: T-shirt, pullover, coat, shirt, bag, -1: trouser, dress, sandal, sneaker; ankle boot dropped",
            RELEASE,
        ),
    ),
)
