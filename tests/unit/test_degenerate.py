"""Predictors without information are told in words; others are left alone."""

import numpy as np
import pytest

from usimul import USimULClassifier, make_gaussians, sample_triplets
from usimul.degenerate import degenerate, degenerate_share
from usimul.validation import DegenerateTrainingWarning, InputError


@pytest.mark.parametrize(
    ("scores", "prior", "words"),
    [
        (np.full(50, 0.2), 0.4, r"all scores are the same \(0.2\), all points positive"),
        (np.full(50, -1.0) + 1e-9 * np.arange(50), None, "all scores are the same"),
        (np.linspace(-2, -1, 50), 0.4, "calls all points negative"),
        (np.linspace(1, 2, 50), None, "calls all points positive"),
        (np.r_[np.ones(995), np.full(5, -2.0)], 0.4, "calls nearly all points positive"),
        (np.r_[np.ones(750), np.full(250, -2.0)], 0.4, "0.750 of 1,000 points positive where the prior says 0.4"),
    ],
)
def test_no_information(scores, prior, words):
    with pytest.raises(AssertionError, match=words):
        assert degenerate(scores, prior) is None


@pytest.mark.parametrize(
    ("positive", "n", "prior"),
    [
        (400, 1000, 0.4),
        (550, 1000, 0.4),  # off, but less than half of what a constant gets wrong follows from it
        (0, 5, 0.4),  # five negatives are no rarity: 0.6^5 = 0.08
        (0, 100, 0.02),
        (7, 8, 0.4),
    ],
)
def test_information_or_too_few_points_to_tell(positive, n, prior):
    scores = np.where(np.arange(n) < positive, 1.0, -1.0) * np.linspace(1, 2, n)
    assert degenerate(scores, prior) is None


def test_the_stated_least_error_is_one():
    """share s of which at most p are right: of any classifier at least |s - p| are wrong, by enumeration."""
    n, prior = 10, 0.4
    for called in range(n + 1):
        for right in range(min(called, 4) + 1):
            wrong = (called - right) + (4 - right)
            assert wrong / n >= abs(called / n - prior) - 1e-12


def test_scores_that_are_no_numbers():
    with pytest.raises(InputError, match="1 NaN among 2 scores"):
        degenerate([np.nan, 1.0], 0.4)
    assert degenerate([], 0.4) is None
    with pytest.raises(InputError, match="`prior`"):
        degenerate_share(0.5, 1.4)


def test_fit_warns_of_the_printed_estimator_and_not_of_the_joint_one():
    """Audit, section 2: the printed estimator's minimiser gives the rarer class to every point."""
    data = make_gaussians(2000, 10, prior=0.3, random_state=0)
    sup = sample_triplets(data.y_train, 2000, n_unlabeled=1000, prior=0.3, random_state=0)
    given = {"prior": 0.3, "model": "linear", "epochs": 20, "random_state": 0}
    with pytest.warns(DegenerateTrainingWarning, match=r"method 'usimul': the classifier calls .* positive"):
        USimULClassifier("usimul", **given).fit(data.X_train, sup)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        USimULClassifier("joint", **given).fit(data.X_train, sup)
