"""Small real sets that come with scikit-learn: nothing to download."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from usimul.datasets.base import Dataset, DatasetRecord, stratified_split

__all__ = ["BREAST_CANCER", "DIGITS"]

_TEST_SHARE = 0.2


def _load_digits(
    record: DatasetRecord, paths: Mapping[str, Path], random_state: int | np.random.Generator | None
) -> Dataset:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    X, digit = bunch.data / 16.0, bunch.target
    y = np.where(digit % 2 == 0, 1, -1)
    # Stratified by digit, not only by parity: the hard digits then weigh the same in both parts.
    train, test = stratified_split(digit, _TEST_SHARE, random_state)
    return record.dataset((X[train], y[train]), (X[test], y[test]), image_shape=(1, 8, 8))


def _load_breast_cancer(
    record: DatasetRecord, paths: Mapping[str, Path], random_state: int | np.random.Generator | None
) -> Dataset:
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    X = bunch.data
    y = np.where(bunch.target == list(bunch.target_names).index("malignant"), 1, -1)
    train, test = stratified_split(y, _TEST_SHARE, random_state)
    # Statistics of the training part only; those of all rows would let the test part leak into training.
    mean, deviation = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / deviation
    return record.dataset((X[train], y[train]), (X[test], y[test]))


DIGITS = DatasetRecord(
    name="digits",
    summary="handwritten digits of 8x8 pixels, even against odd (1,797 points)",
    source="scikit-learn's load_digits, the test part of UCI Optical Recognition of Handwritten Digits",
    licence="CC BY 4.0 (UCI)",
    citation="Alpaydin, Kaynak (1998), doi:10.24432/C50P49",
    classes="+1: digits 0 2 4 6 8, -1: digits 1 3 5 7 9",
    load=_load_digits,
)

# Malignant is +1, as in the other medical sets: +1 is the finding that one looks for.
BREAST_CANCER = DatasetRecord(
    name="breast_cancer",
    summary="Wisconsin diagnostic breast cancer, malignant against benign (569 points, standardised)",
    source="scikit-learn's load_breast_cancer, UCI Breast Cancer Wisconsin (Diagnostic)",
    licence="CC BY 4.0 (UCI)",
    citation="Wolberg, Mangasarian, Street, Street (1995), doi:10.24432/C5DW2B",
    classes="+1: malignant, -1: benign",
    load=_load_breast_cancer,
)
