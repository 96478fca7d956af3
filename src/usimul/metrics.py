"""Figures of merit computed from true labels and scores. Labels are +1 and -1; a score of at least 0 predicts +1."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from usimul.validation import InputError

__all__ = ["accuracy", "accuracy_up_to_swap", "area_under_curve", "balanced_accuracy", "mean_and_deviation"]


def _pair(y: ArrayLike, scores: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    labels, values = np.asarray(y), np.asarray(scores, dtype=np.float64)
    if labels.shape != values.shape or labels.ndim != 1 or labels.size == 0:
        raise InputError(f"labels and scores must be equally long vectors. Got shapes {labels.shape}, {values.shape}.")
    return labels > 0, values


def accuracy(y: ArrayLike, scores: ArrayLike) -> float:
    """Share of points whose predicted label is right.

    >>> accuracy([1, 1, -1, -1], [0.5, 0.0, -2.0, 3.0])
    0.75
    """
    positive, values = _pair(y, scores)
    return float(np.mean((values >= 0) == positive))


def accuracy_up_to_swap(y: ArrayLike, scores: ArrayLike) -> float:
    """Accuracy of the better of the two ways to name the classes."""
    right = accuracy(y, scores)
    return max(right, 1.0 - right)


def balanced_accuracy(y: ArrayLike, scores: ArrayLike) -> float:
    """Mean of the accuracies within the two classes."""
    positive, values = _pair(y, scores)
    if positive.all() or not positive.any():
        raise InputError("balanced accuracy needs labels of both classes. Got one class only.")
    right = (values >= 0) == positive
    return float(0.5 * (right[positive].mean() + right[~positive].mean()))


def area_under_curve(y: ArrayLike, scores: ArrayLike) -> float:
    """Probability that a positive scores above a negative, ties counted half (one sort, no n x n matrix)."""
    positive, values = _pair(y, scores)
    n_positive = int(positive.sum())
    n_negative = positive.size - n_positive
    if n_positive == 0 or n_negative == 0:
        raise InputError("the area under the curve needs labels of both classes. Got one class only.")
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - 0.5 * (counts - 1)
    rank_sum = float(mean_rank[place][positive].sum())
    return (rank_sum - 0.5 * n_positive * (n_positive + 1)) / (n_positive * n_negative)


def mean_and_deviation(values: ArrayLike) -> tuple[float, float]:
    """Mean and sample standard deviation (0 for a single value)."""
    numbers = np.asarray(values, dtype=np.float64)
    return float(numbers.mean()), float(numbers.std(ddof=1)) if numbers.size > 1 else 0.0
