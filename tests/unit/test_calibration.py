"""Temperatures found without labels and with them, where the posterior is known; and figures of calibration."""

from itertools import pairwise

import numpy as np
import pytest

from usimul.assess import plain_scores
from usimul.calibration import (
    Calibration,
    NoTemperatureError,
    calibration_error,
    losses_of_probabilities,
    probabilities,
    reliability,
    temperature_from_labels,
    temperature_from_tuples,
)
from usimul.datasets import make_gaussians
from usimul.event_error import observed_event
from usimul.events import EVENTS
from usimul.sampling import draw, sample_triplets
from usimul.supervision import ComparedPairs, DissimilarPairs, SimilarPairs, Triplets
from usimul.validation import InputError

PRIOR = 0.3
DATA = make_gaussians(20_000, 20, prior=PRIOR, random_state=0)
LOGITS = np.log(DATA.posterior_train / (1 - DATA.posterior_train))
Y = DATA.y_train


def tuples_temperature(sup, scores):
    event = observed_event(sup)
    return temperature_from_tuples(scores[sup.rows], plain_scores(scores, sup, event), event)


@pytest.mark.parametrize("factor", [3.0, 0.25])
def test_scores_times_a_factor_have_that_temperature(factor):
    """The true posterior, its logits multiplied. Spread over 12 draws: 0.13 in log T without labels, 0.02 with."""
    without = tuples_temperature(sample_triplets(Y, 20_000, n_unlabeled=20_000, random_state=1), factor * LOGITS)
    found = temperature_from_labels(factor * LOGITS, Y > 0)
    assert without.temperature == pytest.approx(factor, rel=0.2)
    assert found.temperature == pytest.approx(factor, rel=0.06)
    assert (without.kind, without.n, found.kind, found.n) == ("label-free", 20_000, "labels", 20_000)


@pytest.mark.parametrize("kind", [SimilarPairs, DissimilarPairs, ComparedPairs])
def test_other_events_find_it_too(kind):
    sup = draw(kind, Y, 30_000, n_unlabeled=20_000, random_state=2)
    assert tuples_temperature(sup, 3.0 * LOGITS).temperature == pytest.approx(3.0, rel=0.25)


def test_the_other_world_has_its_own_event():
    sup = sample_triplets(Y, 20_000, n_unlabeled=20_000, world="pair_plus_unlabeled", random_state=3)
    assert tuples_temperature(sup, 3.0 * LOGITS).temperature == pytest.approx(3.0, rel=0.2)


def test_the_criterion_is_the_mean_of_enumerated_points():
    """Six points with a known posterior: the population risk, summed over all triples, is least at the temperature."""
    eta = np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.95])
    f, event = 2.0 * np.log(eta / (1 - eta)), EVENTS["triplet"]
    index = np.stack(np.meshgrid(*[np.arange(6)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    weight = event.given(eta[index])
    # The law of triplets as counts, near enough to leave the minimum where it is.
    copies = np.repeat(index, np.round(100 * weight / weight.max()).astype(int), axis=0)
    found = temperature_from_tuples(f[copies], np.tile(f, 100), event)
    assert found.temperature == pytest.approx(2.0, rel=0.02)


def test_plain_points_are_those_that_the_event_does_not_shift():
    scores = np.arange(10.0)
    triplets = Triplets([[0, 1, 2]], unlabeled=[8, 9], n_points=10)
    assert plain_scores(scores, triplets, EVENTS["triplet"]).tolist() == [8, 9, 1, 2]
    pairs = SimilarPairs([[0, 1]], unlabeled=[7], n_points=10)
    assert plain_scores(scores, pairs, EVENTS["similar-pair"]).tolist() == [7]
    with pytest.raises(InputError, match="calibration on SimilarPairs needs unlabeled points"):
        plain_scores(scores, SimilarPairs([[0, 1]], n_points=10), EVENTS["similar-pair"])


def test_where_nothing_can_be_found_it_says_so():
    y = np.tile([True, False], 50)
    with pytest.raises(NoTemperatureError, match=r"the best is at most 0\.01"):
        temperature_from_labels(np.where(y, 1.0, -1.0), y)  # right on all
    with pytest.raises(NoTemperatureError, match="the best is at least 100"):
        temperature_from_labels(np.where(y, -1.0, 1.0), y)  # swapped
    with pytest.raises(NoTemperatureError, match="no temperature differs"):
        temperature_from_labels(np.zeros(100), y)
    with pytest.raises(NoTemperatureError, match="no temperature differs"):
        temperature_from_tuples(np.zeros((50, 3)), np.zeros(50), EVENTS["triplet"])


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: temperature_from_labels(np.zeros(19), np.ones(19)), "at least 20 labels. Got 19"),
        (lambda: temperature_from_labels(np.zeros(30), np.ones(29)), "one label for each score"),
        (lambda: temperature_from_tuples(np.zeros((30, 2)), np.zeros(30), EVENTS["triplet"]), r"shape \(n, 3\)"),
        (lambda: temperature_from_tuples(np.zeros((30, 3)), np.zeros(5), EVENTS["triplet"]), "Got 30 and 5"),
    ],
)
def test_bad_input(call, match):
    with pytest.raises(InputError, match=match):
        call()


def test_words():
    assert Calibration().explain() == "not calibrated: sigmoid of the score, temperature 1"
    assert Calibration("labels", 0.5, 40).explain() == "calibrated on labels: temperature 0.5, from 40 labels"


def test_probabilities_at_the_ends():
    found = probabilities([-1e6, 0.0, 1e6], 0.01)
    assert found.tolist() == [pytest.approx(0.0, abs=1e-300), 0.5, 1.0]


class TestFigures:
    def test_bins_hold_equal_numbers_and_keep_ties_together(self):
        p = np.concatenate([np.full(50, 0.2), np.linspace(0.3, 0.9, 150)])
        bins = reliability(p, np.arange(200) % 2)
        assert sum(b.n for b in bins) == 200
        assert bins[0].n == 60  # cuts at 20 and 40 would part the ties
        assert all(a.predicted < b.predicted for a, b in pairwise(bins))
        assert len(reliability(p[:30], np.ones(30))) == 1

    def test_error_of_right_and_of_wrong_probabilities(self):
        eta = DATA.posterior_train
        right, wrong = calibration_error(eta, Y > 0), calibration_error(probabilities(3 * LOGITS), Y > 0)
        assert right.error.value < 3 * right.by_chance
        assert wrong.error.low > 5 * wrong.by_chance
        bins = reliability(eta, Y > 0)
        by_hand = sum(b.n * abs(b.observed.value - b.predicted) for b in bins) / len(Y)
        assert right.error.value == pytest.approx(by_hand, abs=1e-12)

    def test_chance_is_what_perfect_probabilities_show(self):
        rng, eta = np.random.default_rng(0), DATA.posterior_train[:400]
        seen = [calibration_error(eta, rng.random(400) < eta).error.value for _ in range(60)]
        assert np.mean(seen) == pytest.approx(calibration_error(eta, Y[:400] > 0).by_chance, rel=0.15)

    def test_losses_by_hand(self):
        brier, log = losses_of_probabilities([0.8, 0.4, 1.0], [1, 1, 0])
        assert brier.value == pytest.approx((0.04 + 0.36 + 1.0) / 3)
        assert log.value == pytest.approx(-(np.log(0.8) + np.log(0.4) + np.log(1e-15)) / 3)
