"""Pendigits: pen strokes of digits, as the text files of UCI or as the MATLAB file of the ConfDiff release."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from usimul.datasets.base import IntArray
from usimul.datasets.matlab import read_mat, refuse, some_rows
from usimul.datasets.mnist import CONFDIFF
from usimul.datasets.records import DataFile, DatasetRecord, Edition, RawData, Task, check_counts

__all__ = ["PENDIGITS", "read_pendigits_mat", "read_pendigits_text"]

N_FEATURES, HIGHEST = 16, 100
# Rows of each digit as published: what stands in for a checksum of the text files, of which none was published.
COUNTS = {
    "pendigits.tra": (780, 779, 780, 719, 780, 720, 720, 778, 719, 719),
    "pendigits.tes": (363, 364, 364, 336, 364, 335, 336, 364, 336, 336),
}


def _read_lines(path: Path, n_rows: int) -> IntArray:
    """Rows of 16 features and the digit; every line that is none is reported."""
    rows: list[list[int]] = []
    problems: list[str] = []
    for number, line in enumerate(path.read_text("ascii", errors="replace").splitlines(), 1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != N_FEATURES + 1:
            problems.append(f"line {number}: expected {N_FEATURES + 1} columns, found {len(cells)}")
            continue
        highest = [HIGHEST] * N_FEATURES + [9]
        wrong = [
            f"line {number}, column {column}: expected a whole number from 0 to {high}, found {cell[:20]!r}"
            for column, (cell, high) in enumerate(zip(cells, highest, strict=True), 1)
            if not (cell.isdecimal() and len(cell) <= 3 and int(cell) <= high)
        ]
        problems += wrong
        if not wrong:
            rows.append([int(cell) for cell in cells])
    if not problems and len(rows) != n_rows:
        problems.append(f"expected {n_rows:,} rows, found {len(rows):,}")
    if problems:
        refuse(path, problems)
    return np.array(rows, dtype=np.int64)


def read_pendigits_text(edition: Edition, paths: Mapping[str, Path]) -> RawData:
    """Read the training and the test file of UCI, in this order."""
    parts = []
    for name, counts in COUNTS.items():
        parts.append(_read_lines(paths[name], sum(counts)))
        check_counts(paths[name], parts[-1][:, -1], counts)
    table = np.concatenate(parts)
    return RawData(np.ascontiguousarray(table[:, :-1]), table[:, -1].copy(), standardise=True)


def read_pendigits_mat(edition: Edition, paths: Mapping[str, Path]) -> RawData:
    """Read the MATLAB file, which holds the rows of both text files and one-hot labels."""
    (file,) = edition.files
    path, n_train = paths[file.name], sum(COUNTS["pendigits.tra"])
    n_rows = n_train + sum(COUNTS["pendigits.tes"])
    found = read_mat(path, {"data": (n_rows, N_FEATURES), "label": (n_rows, 10)}, file.sha256)
    X, label = found["data"], found["label"]
    checks = {
        f"whole numbers from 0 to {HIGHEST} in `data`": ~((X >= 0) & (X <= HIGHEST) & (np.trunc(X) == X)).all(axis=1),
        "a single 1 and nine 0 in `label`": ~(((label == 0) | (label == 1)).all(axis=1) & (label.sum(axis=1) == 1)),
    }
    problems = [
        f"expected {what}, found otherwise in {some_rows(wrong)}" for what, wrong in checks.items() if wrong.any()
    ]
    if problems:
        refuse(path, problems)
    # Column j is the digit (j + 1) mod 10: the last one is the digit 0.
    digits = (label.argmax(axis=1).astype(np.int64) + 1) % 10
    for part, counts in zip((digits[:n_train], digits[n_train:]), COUNTS.values(), strict=True):
        check_counts(path, part, counts)
    return RawData(np.ascontiguousarray(X, dtype=np.int64), digits, standardise=True)


PENDIGITS = DatasetRecord(
    name="pendigits",
    title="Pendigits",
    summary="pen strokes of digits, 16 numbers each, odd against even (10,992 points, standardised)",
    source="https://archive.ics.uci.edu/dataset/81, UCI Pen-Based Recognition of Handwritten Digits",
    licence="CC BY 4.0 (UCI)",
    citation="Alpaydin, Alimoglu (1996), doi:10.24432/C5MG6K",
    class_names=tuple("0123456789"),
    editions=(
        Edition(
            "official",
            read_pendigits_text,
            files=(DataFile("pendigits.tra"), DataFile("pendigits.tes")),
            base_url="https://archive.ics.uci.edu/ml/machine-learning-databases/pendigits/",
        ),
        Edition(
            "confdiff",
            read_pendigits_mat,
            files=(
                DataFile(
                    "pendigits.mat", "75d9c8ff00834ded2a0b204733b08317c56f14e2c7063656a8894e39a59e3021", n_bytes=145_309
                ),
            ),
            by_hand="Get data/pendigits.mat from https://github.com/wwangwitsel/ConfDiff and pass the folder that "
            "holds it as `folder`",
        ),
    ),
    tasks=(
        Task(
            "odd-even",
            (1, 3, 5, 7, 9),
            (0, 2, 4, 6, 8),
            "+1: digits 1 3 5 7 9, -1: digits 0 2 4 6 8",
            f"{CONFDIFF}: even columns are +1, and column j of its labels is the digit (j + 1) mod 10",
            round_up=True,
        ),
    ),
    note="A fifth of each side is the test part, 8,793 / 2,199 as in the paper. UCI's own split, 7,494 / 3,498 with "
    "other writers in the test part, is not used: here the writers are the same in both parts.",
)
