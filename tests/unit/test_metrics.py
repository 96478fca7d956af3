"""Figures of merit against scikit-learn."""

import math

import numpy as np
import pytest
from sklearn import metrics as reference

from usimul.metrics import accuracy, accuracy_up_to_swap, area_under_curve, balanced_accuracy, mean_and_deviation
from usimul.validation import InputError

ALL = (accuracy, accuracy_up_to_swap, balanced_accuracy, area_under_curve)


def example(seed, *, ties):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(200) < rng.uniform(0.1, 0.9), 1, -1)
    scores = rng.normal(size=200) + 0.4 * y
    return y, np.round(scores) if ties else scores


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_equal_to_scikit_learn(seed, ties):
    y, scores = example(seed, ties=ties)
    predicted = np.where(scores >= 0, 1, -1)
    right = reference.accuracy_score(y, predicted)
    assert accuracy(y, scores) == pytest.approx(right, abs=1e-12)
    assert accuracy_up_to_swap(y, scores) == pytest.approx(max(right, 1 - right), abs=1e-12)
    assert balanced_accuracy(y, scores) == pytest.approx(reference.balanced_accuracy_score(y, predicted), abs=1e-12)
    assert area_under_curve(y, scores) == pytest.approx(reference.roc_auc_score(y, scores), abs=1e-12)


def test_zero_predicts_positive():
    assert accuracy([1, -1], [0.0, -0.0]) == 0.5
    assert balanced_accuracy([1, 1, -1], [0.0, 1.0, -1.0]) == 1.0


def test_swap():
    y, scores = example(0, ties=False)
    assert accuracy(y, -scores) < 0.5
    assert accuracy_up_to_swap(y, -scores) == pytest.approx(accuracy_up_to_swap(y, scores))


def test_extreme_ranks():
    assert area_under_curve([1, 1, -1], [2.0, 3.0, 1.0]) == 1.0
    assert area_under_curve([1, 1, -1], [0.0, 0.5, 1.0]) == 0.0
    assert area_under_curve([1, 1, -1], [1.0, 1.0, 1.0]) == 0.5


def test_mean_and_deviation():
    values = [0.1, 0.4, 0.9]
    mean = sum(values) / 3
    deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / 2)
    assert mean_and_deviation(values) == pytest.approx((mean, deviation))
    assert mean_and_deviation([0.7]) == (0.7, 0.0)


@pytest.mark.parametrize("metric", ALL)
@pytest.mark.parametrize(("y", "scores"), [([1, -1], [0.1]), ([], []), ([[1, -1]], [[0.1, 0.2]])])
def test_shapes(metric, y, scores):
    with pytest.raises(InputError, match=r"labels and scores must be equally long vectors. Got shapes"):
        metric(y, scores)


@pytest.mark.parametrize("metric", [balanced_accuracy, area_under_curve])
@pytest.mark.parametrize("label", [1, -1])
def test_one_class(metric, label):
    with pytest.raises(InputError, match=r"needs labels of both classes. Got one class only"):
        metric([label, label], [0.1, 0.2])
