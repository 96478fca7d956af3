"""Small real sets that come with scikit-learn: nothing to download."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from usimul.datasets.records import DatasetRecord, Edition, RawData, Task

__all__ = ["BREAST_CANCER", "DIGITS"]


def _read_digits(edition: Edition, paths: Mapping[str, Path]) -> RawData:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return RawData(bunch.data / 16.0, bunch.target.astype(np.int64), image_shape=(1, 8, 8))


def _read_breast_cancer(edition: Edition, paths: Mapping[str, Path]) -> RawData:
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    return RawData(bunch.data, bunch.target.astype(np.int64), standardise=True)


DIGITS = DatasetRecord(
    name="digits",
    title="digits of scikit-learn",
    summary="handwritten digits of 8x8 pixels, even against odd (1,797 points)",
    source="scikit-learn's load_digits, the test part of UCI Optical Recognition of Handwritten Digits",
    licence="CC BY 4.0 (UCI)",
    citation="Alpaydin, Kaynak (1998), doi:10.24432/C50P49",
    class_names=tuple("0123456789"),
    editions=(Edition("embedded", _read_digits),),
    tasks=(
        # Stratified by digit, not only by parity: the hard digits then weigh the same in both parts.
        Task(
            "even-odd",
            (0, 2, 4, 6, 8),
            (1, 3, 5, 7, 9),
            "+1: digits 0 2 4 6 8, -1: digits 1 3 5 7 9",
            "as for MNIST",
            stratify="class",
        ),
    ),
)

# Malignant is +1, as in the other medical sets: +1 is the finding that one looks for.
BREAST_CANCER = DatasetRecord(
    name="breast_cancer",
    title="breast cancer of scikit-learn",
    summary="Wisconsin diagnostic breast cancer, malignant against benign (569 points, standardised)",
    source="scikit-learn's load_breast_cancer, UCI Breast Cancer Wisconsin (Diagnostic)",
    licence="CC BY 4.0 (UCI)",
    citation="Wolberg, Mangasarian, Street, Street (1995), doi:10.24432/C5DW2B",
    class_names=("malignant", "benign"),
    editions=(Edition("embedded", _read_breast_cancer),),
    tasks=(Task("malignant", (0,), (1,), "+1: malignant, -1: benign", "the finding against its absence"),),
)
