"""MNIST and sets published in its format: four idx files with images and class indices."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from usimul.datasets.base import DataFile, Dataset, DatasetRecord
from usimul.datasets.idx import read_idx
from usimul.validation import FileFormatError

__all__ = ["FASHION_MNIST", "MNIST", "load_mnist_format"]


def load_mnist_format(
    record: DatasetRecord, paths: Mapping[str, Path], random_state: int | np.random.Generator | None
) -> Dataset:
    """Read the four files of ``record``; even class indices become +1, odd ones -1.

    The split into training and test part is the published one, so ``random_state`` has no effect.
    """
    content = {
        file.name: read_idx(
            paths[file.name],
            n_dimensions=3 if "images" in file.name else 1,
            dtype=np.uint8,
            sha256=file.sha256,
        )
        for file in record.files
    }

    def part(prefix: str) -> tuple[NDArray[np.float32], NDArray[np.int64], tuple[int, int]]:
        images, labels = content[f"{prefix}-images-idx3-ubyte"], content[f"{prefix}-labels-idx1-ubyte"]
        if len(images) != len(labels):
            raise FileFormatError(
                f"{paths[f'{prefix}-labels-idx1-ubyte']}: expected {len(images)} labels, one for each image, "
                f"found {len(labels)}."
            )
        X = images.reshape(len(images), -1).astype(np.float32)
        X /= 255.0
        return X, np.where(labels % 2 == 0, 1, -1), (images.shape[1], images.shape[2])

    X_train, y_train, size = part("train")
    X_test, y_test, _ = part("t10k")
    return record.dataset((X_train, y_train), (X_test, y_test), image_shape=(1, *size))


MNIST = DatasetRecord(
    name="mnist",
    summary="handwritten digits of 28x28 pixels, even against odd (70,000 points)",
    source="http://yann.lecun.com/exdb/mnist/",
    licence="CC BY-SA 3.0 (LeCun, Cortes), as usually given",
    citation="LeCun, Bottou, Bengio, Haffner (1998), doi:10.1109/5.726791",
    classes="+1: digits 0 2 4 6 8, -1: digits 1 3 5 7 9",
    load=load_mnist_format,
    files=(
        DataFile(
            "train-images-idx3-ubyte", "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db", 47_040_016
        ),
        DataFile("train-labels-idx1-ubyte", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5", 60_008),
        DataFile(
            "t10k-images-idx3-ubyte", "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7", 7_840_016
        ),
        DataFile("t10k-labels-idx1-ubyte", "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2", 10_008),
    ),
    base_url="https://storage.googleapis.com/cvdf-datasets/mnist/",
)

FASHION_MNIST = DatasetRecord(
    name="fashion_mnist",
    summary="clothing of 28x28 pixels, even against odd class index (70,000 points)",
    source="https://github.com/zalandoresearch/fashion-mnist",
    licence="MIT",
    citation="Xiao, Rasul, Vollgraf (2017), arXiv:1708.07747",
    classes="+1: T-shirt, pullover, coat, shirt, bag, -1: trouser, dress, sandal, sneaker, ankle boot",
    load=load_mnist_format,
    files=(
        DataFile(
            "train-images-idx3-ubyte", "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888", 47_040_016
        ),
        DataFile("train-labels-idx1-ubyte", "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9", 60_008),
        DataFile(
            "t10k-images-idx3-ubyte", "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b", 7_840_016
        ),
        DataFile("t10k-labels-idx1-ubyte", "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34", 10_008),
    ),
    # The official address has no https; the checksums of the unpacked files stand in for it.
    base_url="http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
)
