"""What a data set is, and how points are divided and drawn by class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from usimul.validation import (
    InputError,
    InputTypeError,
    UsimulError,
    check_count,
    check_fraction,
    check_labels,
    check_seed,
)

__all__ = ["Dataset", "DatasetNotFoundError", "grouped_split", "resample_to_prior", "stratified_split"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class DatasetNotFoundError(UsimulError, FileNotFoundError):
    """The files of a data set are in none of the folders that were tried."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A labelled binary data set with a training and a test part.

    Parameters
    ----------
    name
        The name that ``load_dataset`` knows it by.
    X_train, X_test
        Points, float32, shape ``(n, d)``. Images are flattened and scaled to [0, 1].
    y_train, y_test
        Labels, int64, +1 or -1, shape ``(n,)``.
    source
        Where the data come from.
    licence
        The terms under which the data may be used.
    citation
        What to cite.
    classes
        What +1 and -1 stand for, in words.
    image_shape
        ``(channels, height, width)`` of one flattened row, or None if the rows are not images.
    posterior_train, posterior_test
        The true P(y = +1 given x) of each row, float64, where it is known.
    bayes_accuracy
        The accuracy of the best possible classifier, where it is known.
    task
        Which split of the original classes this is.
    measured_on
        How a number measured here is to be named: set, part, and sizes.
    class_names, original_train, original_test
        Names of the original classes, and the index of each row's class.
    groups_train, groups_test
        Patient of each row, for sets that have them; no patient is in both parts.

    Examples
    --------
    >>> X, y = np.zeros((2, 3), dtype=np.float32), np.array([1, -1])
    >>> data = Dataset("toy", X, y, X, y, source="here", licence="CC0", citation="none", classes="+1: a, -1: b")
    >>> data
    Dataset('toy', 2 training and 2 test points, 3 features)
    """

    name: str
    X_train: NDArray[np.float32]
    y_train: IntArray
    X_test: NDArray[np.float32]
    y_test: IntArray
    source: str
    licence: str
    citation: str
    classes: str
    image_shape: tuple[int, ...] | None = None
    posterior_test: FloatArray | None = None
    posterior_train: FloatArray | None = None
    bayes_accuracy: float | None = None
    task: str = ""
    measured_on: str = ""
    class_names: tuple[str, ...] = ()
    original_train: IntArray | None = None
    original_test: IntArray | None = None
    groups_train: IntArray | None = None
    groups_test: IntArray | None = None

    def __post_init__(self) -> None:
        """Refuse parts that do not belong together."""
        for part in ("train", "test"):
            self._check_part(part)
        if self.X_train.shape[1] != self.X_test.shape[1]:
            raise InputError(
                "`X_train` and `X_test` must have the same number of features. "
                f"Got {self.X_train.shape[1]} and {self.X_test.shape[1]}."
            )
        if self.image_shape is not None and math.prod(self.image_shape) != self.n_features:
            raise InputError(
                f"`image_shape` must multiply to the number of features, {self.n_features}. Got {self.image_shape}."
            )

    def _check_part(self, part: str) -> None:
        X = getattr(self, f"X_{part}")
        posterior = getattr(self, f"posterior_{part}")
        if not isinstance(X, np.ndarray) or X.dtype != np.float32 or X.ndim != 2:
            found = f"{X.dtype} of shape {X.shape}" if isinstance(X, np.ndarray) else type(X).__name__
            raise InputTypeError(f"`X_{part}` must be a float32 array of shape (n, d). Got {found}.")
        if not np.isfinite(X).all():
            raise InputError(f"`X_{part}` must be finite. Row {int(np.argmin(np.isfinite(X).all(axis=1)))} is not.")
        y = check_labels(getattr(self, f"y_{part}"), f"y_{part}")
        if y.shape[0] != X.shape[0]:
            raise InputError(f"`y_{part}` must have one label per row of `X_{part}`, {X.shape[0]}. Got {y.shape[0]}.")
        object.__setattr__(self, f"y_{part}", y)
        if posterior is not None and np.shape(posterior) != y.shape:
            raise InputError(f"`posterior_{part}` must have shape {y.shape}. Got {np.shape(posterior)}.")

    @property
    def n_features(self) -> int:
        """Number of columns of ``X_train``."""
        return int(self.X_train.shape[1])

    @property
    def prior(self) -> float:
        """Share of positives in the training part."""
        return float(np.mean(self.y_train == 1))

    def __repr__(self) -> str:
        """Return one line with the name and the sizes."""
        return (
            f"Dataset({self.name!r}, {len(self.y_train)} training and {len(self.y_test)} test points, "
            f"{self.n_features} features)"
        )

    def describe(self) -> str:
        """Return a short text: sizes, classes, class shares, source, licence, and citation.

        Examples
        --------
        >>> from usimul.datasets import load_dataset
        >>> print(load_dataset("digits").describe().splitlines()[0])
        digits: 1,438 training and 359 test points, 64 features (images of 1x8x8)
        """
        shape = f" (images of {'x'.join(map(str, self.image_shape))})" if self.image_shape else ""
        lines = [
            f"{self.name}: {len(self.y_train):,} training and {len(self.y_test):,} test points, "
            f"{self.n_features} features{shape}",
            f"classes: {self.classes}",
            f"share of +1: {self.prior:.3f} in training, {np.mean(self.y_test == 1):.3f} in test",
        ]
        if self.measured_on:
            lines.append(f"measured on: {self.measured_on}" + (f" (task {self.task!r})" if self.task else ""))
        if self.bayes_accuracy is not None:
            lines.append(f"best possible accuracy: {self.bayes_accuracy:.4f}")
        lines += [f"source: {self.source}", f"licence: {self.licence}", f"cite: {self.citation}"]
        return "\n".join(lines)


def _positives_of(n: int, prior: float) -> int:
    return math.floor(n * prior + 0.5)


def resample_to_prior(
    y: ArrayLike,
    prior: float,
    n: int | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> IntArray:
    """Return rows of a subsample of ``y`` whose share of positives is ``prior``.

    Drawn without replacement, so every row occurs at most once, and the rows that are dropped are a random choice
    within their class. Use it to give a test set the class prior that a classifier was trained for.

    Parameters
    ----------
    y
        Labels, +1 or -1, shape ``(m,)``.
    prior
        The wanted share of positives, in (0, 1).
    n
        Size of the subsample; None takes the largest one that ``y`` allows.
    random_state
        Seed or generator.

    Returns
    -------
    IntArray
        Row indices in ascending order. ``n * prior`` of them, rounded, are positive, so the share is as near to
        ``prior`` as a whole number of rows allows.

    Raises
    ------
    InputError
        If ``n`` rows of that share cannot be had from ``y``, or one class would be empty.

    Examples
    --------
    >>> y = np.array([1] * 50 + [-1] * 50)
    >>> rows = resample_to_prior(y, 0.2, random_state=0)
    >>> rows.size, int((y[rows] == 1).sum())
    (63, 13)
    >>> resample_to_prior(y, 0.2, n=90)
    Traceback (most recent call last):
    ...
    usimul.validation.InputError: `n` must be at most 63 for a share of 0.2 out of 50 positives and 50 \
negatives. Got 90.
    """
    labels = check_labels(y)
    prior = check_fraction(prior, "prior")
    rng = check_seed(random_state)
    positives, negatives = np.flatnonzero(labels == 1), np.flatnonzero(labels == -1)
    # Both class counts grow with n in steps of 0 or 1, so the feasible sizes are an interval that starts at 0.
    largest = min(len(labels), math.ceil((len(positives) + 1) / prior), math.ceil((len(negatives) + 1) / (1 - prior)))
    while _positives_of(largest, prior) > len(positives) or largest - _positives_of(largest, prior) > len(negatives):
        largest -= 1
    size = largest if n is None else check_count(n, "n", low=2)
    if size > largest:
        raise InputError(
            f"`n` must be at most {largest} for a share of {prior:g} out of {len(positives)} positives "
            f"and {len(negatives)} negatives. Got {size}."
        )
    n_positive = _positives_of(size, prior)
    if n_positive in (0, size):
        raise InputError(
            f"A subsample of {size} rows with a share of positives of {prior:g} would hold one class only. "
            "Use more rows or a prior nearer to 0.5."
        )
    drawn = [
        rng.choice(positives, n_positive, replace=False),
        rng.choice(negatives, size - n_positive, replace=False),
    ]
    return np.sort(np.concatenate(drawn)).astype(np.int64)


def stratified_split(
    classes: NDArray[Any],
    test_share: float,
    random_state: int | np.random.Generator | np.random.RandomState | None,
    round_up: bool = False,
) -> tuple[IntArray, IntArray]:
    """Return training and test rows; each class gives ``test_share`` of its rows, rounded, to the test part.

    Examples
    --------
    >>> train, test = stratified_split(np.array([0] * 10 + [1] * 20), 0.2, random_state=0)
    >>> train.size, test.size, int((test < 10).sum())
    (24, 6, 2)
    """
    share = check_fraction(test_share, "test_share")
    rng = check_seed(random_state)
    in_test = np.zeros(len(classes), dtype=bool)
    for label in np.unique(classes):
        rows = np.flatnonzero(classes == label)
        # Less a little, so that a product meant to be whole is not lifted by its rounding error.
        n_test = math.ceil(share * rows.size - 1e-9) if round_up else round(share * rows.size)
        in_test[rng.permutation(rows)[:n_test]] = True
    return np.flatnonzero(~in_test), np.flatnonzero(in_test)


def grouped_split(
    groups: NDArray[Any],
    y: IntArray,
    test_share: float,
    random_state: int | np.random.Generator | np.random.RandomState | None,
) -> tuple[IntArray, IntArray]:
    """Return training and test rows such that no group (a patient) is in both.

    Groups that hold a positive and groups that hold none are drawn apart, so both parts see both classes. Groups are
    taken at random until ``test_share`` of their rows is reached as nearly as whole groups allow.

    Examples
    --------
    >>> patients = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    >>> train, test = grouped_split(patients, np.array([1, 1, 1, 1, -1, -1, -1, -1]), 0.5, random_state=0)
    >>> sorted(set(patients[train]) & set(patients[test])), train.size, test.size
    ([], 4, 4)
    """
    share = check_fraction(test_share, "test_share")
    rng = check_seed(random_state)
    _, group = np.unique(groups, return_inverse=True)
    sizes = np.bincount(group)
    positive = np.bincount(group, weights=y > 0) > 0
    in_test = np.zeros(len(sizes), dtype=bool)
    for side in (True, False):
        order = rng.permutation(np.flatnonzero(positive == side))
        filled = np.cumsum(sizes[order])
        if filled.size:
            # The number of groups whose rows together come nearest to the share.
            nearest = np.argmin(np.abs(np.concatenate([[0], filled]) - share * filled[-1]))
            in_test[order[:nearest]] = True
    return np.flatnonzero(~in_test[group]), np.flatnonzero(in_test[group])
