"""Label-free error estimates: values worked out by hand, and every way to ask wrongly."""

import math

import numpy as np
import pytest

from usimul.validation import InputError
from usimul.weak_risk import (
    WEAK_RISKS,
    WeakRisk,
    labeled_risk,
    position_aware_risk,
    second_moment_risk,
    triplet_risk,
)

RNG = np.random.default_rng(0)
TRIPLETS = RNG.normal(size=(40, 3))
UNLABELED = RNG.normal(size=30)
BOTH = pytest.mark.parametrize("estimate", [second_moment_risk, position_aware_risk])


def loops(triplets, unlabeled, p):
    """Position-aware estimate in plain loops: the losses themselves, with the weights of definition 1."""
    q = 1 - p
    c = (1 - p * q) / (p - q)
    lam = 2 * len(triplets) / (2 * len(triplets) + len(unlabeled))

    def wrong(z, label):
        return float((1 if z >= 0 else -1) != label)

    def h(z):
        return (p - c) * wrong(z, 1) + (q + c) * wrong(z, -1)

    anchors = sum(c * (wrong(t[0], 1) - wrong(t[0], -1)) for t in triplets) / len(triplets)
    companions = sum(h(t[1]) + h(t[2]) for t in triplets) / (2 * len(triplets))
    plain = sum(h(z) for z in unlabeled) / len(unlabeled)
    return anchors + lam * companions + (1 - lam) * plain


@pytest.mark.parametrize("p", [0.2, 0.4, 0.7])
def test_position_aware_against_loops(p):
    found = position_aware_risk(TRIPLETS, UNLABELED, p)
    assert found.value == pytest.approx(loops(TRIPLETS, UNLABELED, p), abs=1e-12)
    assert found.kind == "position-aware"


def least_e(a, p):
    """Least E[u d] of any classifier with E[d] = a, by search over its class means m+ and m-."""
    q = 1 - p
    plus = np.linspace(-1, 1, 200_001)
    minus = (a - p * plus) / q
    return min((p * plus - q * minus)[np.abs(minus) <= 1 + 1e-12])


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.8])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_constant_prediction_has_the_error_of_its_class(p, sign):
    found = second_moment_risk(np.full((50, 3), sign), np.full(20, sign), p)
    assert found.value == pytest.approx(1 - p if sign > 0 else p, abs=1e-12)


@pytest.mark.parametrize("p", [0.2, 0.4, 0.5, 0.7])
def test_second_moment_by_hand(p):
    """Two triplets and two points: d is -1 where +1 is predicted."""
    triplets = [[1.0, 2.0, 3.0], [-1.0, -1.0, 1.0]]  # d: (-1, -1, -1) and (1, 1, -1)
    z = 1 - p * (1 - p)
    a = (-1 - 1 + 1 - 1 + 1 - 1) / 6  # four companions, two points
    t = (1 + 0) / 2
    e = -math.sqrt(max(0.0, 4 * z * t - 3 * a * a))
    found = second_moment_risk(triplets, [-1.0, 1.0], p)
    assert found.value == pytest.approx(0.5 + 0.5 * max(e, least_e(a, p)), abs=1e-4)
    # Only which side a score lies on counts, and a score of zero is positive.
    assert second_moment_risk([[0.0, 9.0, 0.1], [-9.0, -0.1, 0.0]], [-5.0, 0.0], p) == found


def test_second_moment_cannot_tell_swapped_names():
    one, other = (second_moment_risk(s * TRIPLETS, s * UNLABELED, 0.4) for s in (1, -1))
    assert one.value == pytest.approx(other.value, abs=1e-12)
    assert one.value <= 0.5


def test_without_information_it_says_so():
    nothing = second_moment_risk([[1.0, -1.0, -1.0], [-1.0, 1.0, 1.0]], None, 0.4)
    assert (nothing.value, nothing.standard_error) == (0.5, 0.5)


@BOTH
def test_more_data_is_more_certain(estimate):
    rng = np.random.default_rng(1)
    y = np.where(rng.random((4000, 3)) < 0.3, 1, -1)
    y = y[(y[:, 0] == y[:, 1]) | (y[:, 0] == y[:, 2])]
    scores = y + 0.3 * rng.normal(size=y.shape)
    few, many = estimate(scores[:500], None, 0.3), estimate(scores, None, 0.3)
    assert 0 < many.standard_error < few.standard_error


@pytest.mark.parametrize("p", [0.1, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("world", ["definition1", "pair_plus_unlabeled"])
def test_without_information_it_still_lies_where_an_error_can(p, world):
    """Products of -1 or so are less than any classifier's; the share of positives bounds the error nevertheless."""
    triplets = np.array([[1.0, -1.0, -1.0], [-1.0, 1.0, 1.0]] * 5)[:9]
    unlabeled = np.ones(200)
    share = float(np.mean(np.append(triplets[:, 1:], unlabeled) > 0)) if world == "definition1" else 1.0
    found = second_moment_risk(triplets, unlabeled, p, world=world)
    assert abs(share - p) - 1e-12 <= found.value <= 1 - abs(share - (1 - p)) + 1e-12
    assert found.standard_error == 0.5


@pytest.mark.parametrize(("value", "error"), [(-71.8, 35.9), (-0.3, 0.05), (1.7, 0.1), (-0.01, 0.0)])
def test_an_interval_wholly_outside_says_nothing(value, error):
    assert WeakRisk(value, error, "x").interval() == (0.0, 1.0)


@pytest.mark.parametrize("value", [-0.3, -0.01, 0.0, 0.4, 1.0, 1.02, 1.7])
@pytest.mark.parametrize("error", [0.0, 0.05, 2.0])
def test_interval_has_its_ends_in_order(value, error):
    low, high = WeakRisk(value, error, "x").interval()
    assert 0.0 <= low <= high <= 1.0
    inside = [v for v in (value - 1.96 * error, value + 1.96 * error) if 0 <= v <= 1]
    assert all(v in (pytest.approx(low), pytest.approx(high)) for v in inside)


def test_interval_is_cut_to_probabilities():
    assert WeakRisk(0.01, 0.1, "x").interval() == (0.0, pytest.approx(0.206))
    assert WeakRisk(0.95, 0.1, "x").interval(z=1.0) == (pytest.approx(0.85), 1.0)
    assert str(WeakRisk(0.12345, 0.01, "second-moment")) == "0.1235 +- 0.0100 (second-moment)"


@pytest.mark.parametrize("kind", WEAK_RISKS)
def test_by_name(kind):
    direct = {"second-moment": second_moment_risk, "position-aware": position_aware_risk}[kind]
    assert triplet_risk(TRIPLETS, UNLABELED, 0.4, kind=kind) == direct(TRIPLETS, UNLABELED, 0.4)
    with pytest.raises(InputError, match=r"`kind` must be one of: .* Did you mean 'second-moment'"):
        triplet_risk(TRIPLETS, UNLABELED, 0.4, kind="second-momnt")


def test_labeled_risk_is_the_error_rate():
    found = labeled_risk([[1.0], [-2.0], [0.0], [3.0]], [1, 1, -1, 1])
    assert found.value == 0.5
    assert found.standard_error == pytest.approx(math.sqrt(0.25 * 4 / 3 / 4))


@BOTH
@pytest.mark.parametrize(
    ("triplets", "got"),
    [
        (np.zeros(3), r"\(3,\)"),
        (np.zeros((5, 2)), r"\(5, 2\)"),
        (np.zeros((1, 3)), r"\(1, 3\)"),
        (np.zeros((0, 3)), r"\(0, 3\)"),
    ],
)
def test_wrong_shape_of_triplets(estimate, triplets, got):
    with pytest.raises(InputError, match=rf"must have shape \(n, 3\) with n >= 2. Got {got}"):
        estimate(triplets, UNLABELED, 0.4)


@BOTH
@pytest.mark.parametrize("prior", [0.0, 1.0, -0.1, float("nan"), None, "0.4"])
def test_impossible_prior(estimate, prior):
    with pytest.raises((InputError, TypeError), match="`prior`"):
        estimate(TRIPLETS, UNLABELED, prior)


def test_position_aware_is_undefined_at_half():
    with pytest.raises(InputError, match=r"must differ from 0\.5"):
        position_aware_risk(TRIPLETS, UNLABELED, 0.5)
    assert 0 <= second_moment_risk(TRIPLETS, UNLABELED, 0.5).value <= 0.5


@BOTH
@pytest.mark.parametrize("world", ["release", "definition2"])
def test_worlds_without_an_estimate(estimate, world):
    with pytest.raises(InputError, match=world):
        estimate(TRIPLETS, UNLABELED, 0.4, world=world)


@BOTH
def test_pairs_need_unlabeled_points(estimate):
    for none in (None, np.empty(0)):
        with pytest.raises(InputError, match="needs unlabeled points"):
            estimate(TRIPLETS, none, 0.4, world="pair_plus_unlabeled")


@BOTH
def test_scores_that_are_no_numbers_are_refused(estimate):
    broken = TRIPLETS.copy()
    broken[3, 1] = np.nan
    with pytest.raises(InputError, match="Got 1 NaN among 120 scores"):
        estimate(broken, UNLABELED, 0.4)
    with pytest.raises(InputError, match="NaN"):
        estimate(TRIPLETS, np.append(UNLABELED, np.nan), 0.4)
    with pytest.raises(InputError, match="NaN"):
        labeled_risk([np.nan], [1])
    # Infinite scores have a side, and only the side counts.
    assert estimate(TRIPLETS * np.inf, UNLABELED, 0.4) == estimate(TRIPLETS, UNLABELED, 0.4)
