"""`estimate_prior`: every way, what it assumes, how ways are combined, and what is refused."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import BaseEstimator

import usimul as us
from usimul.class_prior import PriorNearHalfError, estimate_prior
from usimul.class_prior.rates import counted_rate, product_of_rate, root_of_product
from usimul.class_prior.scores import make_folds
from usimul.class_prior.sensitivity import prior_sensitivity
from usimul.datasets import make_gaussians
from usimul.events import EVENTS
from usimul.intervals import wilson_interval
from usimul.sampling import draw, sample_triplets
from usimul.supervision import (
    ComparedPairs,
    DissimilarPairs,
    Labels,
    PairAnswers,
    SimilarityConfidence,
    SimilarPairs,
    TripletAnswers,
    Triplets,
)
from usimul.validation import InputError, InputTypeError, UndefinedAtHalfError
from usimul.weak_risk import second_moment_risk

COUNTED = (Triplets, SimilarPairs, DissimilarPairs, ComparedPairs, PairAnswers, TripletAnswers)
RATE = {Triplets: lambda q: 1 - q, ComparedPairs: lambda q: 1 - q, TripletAnswers: lambda q: 1 - q}
RATE |= dict.fromkeys((SimilarPairs, PairAnswers), lambda q: 1 - 2 * q) | {DissimilarPairs: lambda q: 2 * q}
DATA = make_gaussians(2000, 10, prior=0.3, distance=4.0, random_state=0)


def triplets(kept, asked, **also):
    return Triplets([[0, 1, 2]] * kept, n_asked=asked, **also)


def wilson(hits, n, level):
    found = wilson_interval(hits, n, level=level)
    return found.low, found.high


class TestWilson:
    @pytest.mark.parametrize(("hits", "n"), [(1, 7), (760, 1000), (50, 100), (999, 1000)])
    def test_ends_are_what_the_score_test_just_accepts(self, hits, n):
        for end in wilson(hits, n, 0.9):
            z = (hits / n - end) / math.sqrt(end * (1 - end) / n)
            assert abs(z) == pytest.approx(1.6448536269514722, rel=1e-9)

    def test_of_one_class(self):
        assert wilson(0, 10, 0.95)[0] == 0.0
        assert wilson(10, 10, 0.95)[1] == 1.0

    def test_covers(self):
        """Exact coverage by the binomial law, averaged over shares: known to be near the level."""
        cover = []
        for share in np.linspace(0.05, 0.95, 19):
            ends = [wilson(k, 50, 0.95) for k in range(51)]
            inside = np.array([low <= share <= high for low, high in ends])
            cover.append(float(binom.pmf(np.arange(51), 50, share) @ inside))
        assert np.mean(cover) == pytest.approx(0.95, abs=0.01)
        assert min(cover) > 0.9


class TestAcceptance:
    @pytest.mark.parametrize("p", [0.05, 0.2, 0.4, 0.7])
    def test_both_roots_of_the_formula(self, p):
        """p = (1 +- sqrt(4 Z - 3)) / 2, from a share that is exact."""
        z = 1 - p * (1 - p)
        sup = triplets(round(10_000 * z), 10_000)
        for side, sign in (("minority", -1), ("majority", 1)):
            found = estimate_prior(sup, side=side)
            assert found.method == "acceptance"
            assert found.value == pytest.approx((1 + sign * math.sqrt(4 * z - 3)) / 2, abs=1e-12)
            assert found.interval[0] < found.value < found.interval[1]
        assert found.roots[0] + found.roots[1] == pytest.approx(1.0)

    @pytest.mark.parametrize("kind", COUNTED, ids=lambda k: k.__name__)
    @pytest.mark.parametrize("p", [0.1, 0.25])
    def test_every_kind_that_counts(self, kind, p):
        """The rate's formula is inverted, and a sample of 20,000 answers covers (at 99.9 %, so chance is no excuse)."""
        event = counted_rate(draw(kind, DATA.y_train, 50, prior=p, random_state=0)).event
        assert product_of_rate(event, RATE[kind](p * (1 - p))) == pytest.approx(p * (1 - p))
        found = estimate_prior(
            draw(kind, DATA.y_train, 15_000, prior=p, random_state=1), side="minority", level=0.999, method="acceptance"
        )
        assert found.interval[0] <= p <= found.interval[1]

    def test_interval_is_wilsons_mapped(self):
        found = estimate_prior(triplets(840, 1000), side="majority", level=0.9)
        low, high = wilson(840, 1000, 0.9)
        assert found.interval == pytest.approx([(1 + math.sqrt(4 * low - 3)) / 2, (1 + math.sqrt(4 * high - 3)) / 2])

    def test_without_a_side_both_roots(self):
        found = estimate_prior(triplets(840, 1000))
        assert found.value is None
        assert found.roots == pytest.approx([0.2, 0.8])
        assert "side='minority'" in str(found)
        assert "0.2000" in str(found)
        assert "0.8000" in str(found)

    def test_near_half_is_refused_with_the_reason(self):
        with pytest.raises(
            PriorNearHalfError, match=r"merge into one from 0\.\d+ to 0\.\d+.*Label 385 points"
        ) as refused:
            estimate_prior(triplets(752, 1000), side="minority")
        assert refused.value.estimate.roots == pytest.approx([0.5 - math.sqrt(0.008) / 2, 0.5 + math.sqrt(0.008) / 2])
        assert isinstance(refused.value, UndefinedAtHalfError)
        found = estimate_prior(triplets(752, 1000), side="minority", near_half="estimate")
        assert found.near_half
        assert any("crosses 0.75" in note for note in found.notes)
        assert any("cannot be told from 1/2" in note for note in found.notes)

    def test_a_share_just_beyond_the_bound_is_chance(self):
        found = estimate_prior(triplets(740, 1000), side="minority", near_half="estimate")
        assert found.value == 0.5
        assert any("by chance" in note for note in found.notes)

    @pytest.mark.parametrize(
        ("sup", "words"),
        [
            (triplets(600, 1000), r"no prior gives.*600 of 1,000.*0\.75.*less"),
            (SimilarPairs([[0, 1]] * 300, n_asked=1000), r"no prior gives.*0\.5\b.*less"),
            (DissimilarPairs([[0, 1]] * 700, n_asked=1000), r"no prior gives.*0\.5\b.*more"),
        ],
    )
    def test_impossible_shares(self, sup, words):
        with pytest.raises(InputError, match=words):
            estimate_prior(sup, side="minority")

    def test_everything_accepted(self):
        found = estimate_prior(triplets(500, 500), side="minority")
        assert found.value == 0.0
        assert 0 < found.interval[1] < 0.01
        assert any("every answer was the same" in note for note in found.notes)

    def test_roots_beyond_the_ends(self):
        assert root_of_product(0.3) == 0.5
        assert root_of_product(-0.1) == 0.0
        assert EVENTS["triplet"].probability(root_of_product(0.21)) == pytest.approx(0.79)


class TestLabels:
    def test_share_and_interval(self):
        found = estimate_prior(labels=[1, -1, -1, -1])
        assert (found.value, found.interval) == (0.25, wilson(1, 4, 0.95))
        assert found.roots == (0.25,)
        assert estimate_prior(Labels([[0], [1], [2], [3]], values=[1, -1, -1, -1])).value == 0.25

    def test_of_one_class(self):
        found = estimate_prior(labels=[-1] * 5)
        assert found.value == 0.0
        assert "all 5 labels" in found.notes[0]

    def test_half_is_no_trouble(self):
        assert estimate_prior(labels=[1, -1] * 50).value == 0.5

    def test_side_that_contradicts(self):
        with pytest.raises(InputError, match=r"contradicts the labels: 90 of 100"):
            estimate_prior(labels=[1] * 90 + [-1] * 10, side="minority")

    @pytest.mark.parametrize("labels", [[0, 1, 1], ["ill", "well"], [1, -1, 2], [1.5, -1]])
    def test_strange_coding(self, labels):
        with pytest.raises(InputError, match=r"`labels` must hold the two classes.*-1 and 1"):
            estimate_prior(labels=labels)

    @pytest.mark.parametrize("labels", [[], [[1, -1]]])
    def test_shape(self, labels):
        with pytest.raises(InputError, match="one label for each"):
            estimate_prior(labels=labels)


class TestTogether:
    def test_counts_and_labels_are_one_likelihood(self):
        """The peak against a fine search of the product of two binomial probabilities, written out."""
        found = estimate_prior(triplets(840, 1000), labels=[1] * 12 + [-1] * 28, random_state=0)
        p = np.linspace(0.001, 0.999, 9981)
        best = p[np.argmax(binom.logpmf(840, 1000, 1 - p * (1 - p)) + binom.logpmf(12, 40, p))]
        assert found.method == "acceptance + labels"
        assert found.value == pytest.approx(best, abs=1e-3)
        assert found.interval[0] < best < found.interval[1]
        assert found.profile_interval == pytest.approx(found.interval, abs=0.02)

    def test_labels_tell_the_side(self):
        assert estimate_prior(triplets(840, 1000), labels=[1] * 18 + [-1] * 4, random_state=0).value > 0.7

    def test_few_labels_that_do_not(self):
        found = estimate_prior(triplets(840, 1000), labels=[1, -1], random_state=0)
        assert found.value is None
        assert found.roots == pytest.approx([0.2, 0.8], abs=0.01)
        found = estimate_prior(triplets(840, 1000), labels=[1, -1], side="majority", random_state=0)
        assert found.value == pytest.approx(0.8, abs=0.01)

    def test_labels_make_half_bearable(self):
        found = estimate_prior(triplets(752, 1000), labels=[1, -1] * 100, random_state=0)
        assert found.interval[0] < 0.5 < found.interval[1]

    def test_sources_that_contradict_each_other(self):
        found = estimate_prior(triplets(840, 1000), labels=[1, -1] * 100, random_state=0)
        assert any("contradict each other" in note for note in found.notes)


@pytest.fixture(scope="module")
def gaussians():
    return sample_triplets(DATA.y_train, 1500, n_unlabeled=1500, prior=0.3, random_state=3)


FAST = {"model": "linear", "epochs": 6, "n_bins": 6, "random_state": 0}


class TestLikelihood:
    def test_near_the_truth_and_repeatable(self, gaussians):
        found = estimate_prior(gaussians, DATA.X_train, side="minority", method="likelihood", **FAST)
        assert found.value == pytest.approx(0.3, abs=0.04)  # the bootstrap's deviation is 0.01
        assert found.interval[0] < found.value < found.interval[1]
        assert found == estimate_prior(gaussians, DATA.X_train, side="minority", method="likelihood", **FAST)
        other = estimate_prior(gaussians, DATA.X_train, side="majority", method="likelihood", **FAST)
        assert other.value == pytest.approx(1 - found.value)

    def test_known_points_tell_the_side(self, gaussians):
        rows = np.r_[np.flatnonzero(DATA.y_train > 0)[:5], np.flatnonzero(DATA.y_train < 0)[:5]]
        for sign, value in ((1, 0.3), (-1, 0.7)):
            known = gaussians.with_known_labels({int(r): int(sign * DATA.y_train[r]) for r in rows})
            found = estimate_prior(known, DATA.X_train, method="likelihood", **FAST)
            assert found.value == pytest.approx(value, abs=0.04)
            assert "10 known labels say" in found.notes[0]
            against = estimate_prior(
                known, DATA.X_train, side="majority" if sign > 0 else "minority", method="likelihood", **FAST
            )
            assert "against side=" in against.notes[0]

    def test_with_counts(self, gaussians):
        found = estimate_prior(gaussians, DATA.X_train, side="minority", **FAST)
        assert found.method == "acceptance + likelihood"
        assert found.value == pytest.approx(0.3, abs=0.04)

    def test_the_other_world(self):
        sup = sample_triplets(
            DATA.y_train, 1500, n_unlabeled=1500, prior=0.3, world="pair_plus_unlabeled", random_state=3
        )
        found = estimate_prior(sup, DATA.X_train, side="minority", **FAST)
        assert found.method == "likelihood"
        assert found.value == pytest.approx(0.3, abs=0.05)

    def test_noise_is_refused_near_half(self, gaussians):
        noise = np.random.default_rng(0).normal(size=(2000, 3)).astype(np.float32)
        with pytest.raises(PriorNearHalfError, match="merge") as refused:
            estimate_prior(gaussians, noise, side="minority", method="likelihood", **FAST)
        low, high = refused.value.estimate.root_intervals[0]
        assert high - low > 0.1

    def test_bad_counts_stop_before_training(self):
        def progress(*_):
            raise AssertionError("trained")

        sup = sample_triplets(DATA.y_train, 200, prior=0.3, random_state=0)
        wrong = Triplets(sup.rows, n_asked=1000)
        with pytest.raises(InputError, match="no prior gives"):
            estimate_prior(wrong, DATA.X_train, side="minority", progress=progress, **FAST)

    def test_too_few(self):
        sup = sample_triplets(DATA.y_train, 50, prior=0.3, random_state=0)
        with pytest.raises(InputError, match=r"too few triplets.*50"):
            estimate_prior(sup, DATA.X_train, method="likelihood", **FAST)

    def test_no_binned_point_was_trained_on(self):
        """Each point in one triplet at most, and every point of the pool unlabeled: folds are made of points."""
        rng = np.random.default_rng(0)
        sup = Triplets(rng.permutation(1200).reshape(400, 3), unlabeled=range(1200))
        for folds in (2, 3):
            made = make_folds(sup, 1200, folds, rng)
            assert made.by == "points"
            for fold, part in enumerate(made.training):
                trained = np.union1d(part.rows, part.unlabeled)
                binned = np.union1d(sup.rows[made.of_tuple == fold], sup.unlabeled[made.of_unlabeled == fold])
                assert trained.size + binned.size == 1200
                assert not np.intersect1d(trained, binned).size

    def test_folds_of_tuples_where_points_are_in_many(self):
        sup = sample_triplets(DATA.y_train[:300], 600, n_unlabeled=300, prior=0.3, random_state=0)
        made = make_folds(sup, 300, 2, np.random.default_rng(0))
        assert made.by == "tuples"
        assert np.bincount(made.of_tuple).tolist() == [300, 300]
        assert np.bincount(made.of_unlabeled).tolist() == [150, 150]
        assert [part.n_tuples for part in made.training] == [300, 300]

    def test_unlabeled_points_keep_their_law_in_folds_of_tuples(self):
        """From a pool of two equal classes drawn at 0.2, the points not seen in training are not at 0.2."""
        y = np.tile([1, -1], 1000)
        sup = sample_triplets(y, 2000, n_unlabeled=4000, prior=0.2, random_state=0)
        made = make_folds(sup, 2000, 2, np.random.default_rng(0))
        assert made.by == "tuples"
        assert np.array_equal(np.unique(made.of_unlabeled), [0, 1])  # none is left out
        seen = [np.union1d(part.rows, part.unlabeled) for part in made.training]
        fresh = [~np.isin(u, seen[f]) for u, f in zip(sup.unlabeled, made.of_unlabeled, strict=True)]
        assert np.mean(y[sup.unlabeled] > 0) == pytest.approx(0.2, abs=0.03)  # deviation 0.006
        assert np.mean(y[sup.unlabeled[fresh]] > 0) > 0.4

    def test_says_what_was_divided(self, gaussians):
        """1,500 triplets of 2,000 points hang together; 150 mostly stand alone."""
        few = sample_triplets(DATA.y_train, 150, n_unlabeled=500, prior=0.3, random_state=0)
        for sup, words in ((gaussians, "so the triplets were"), (few, "none was sorted by a classifier that had seen")):
            found = estimate_prior(
                sup, DATA.X_train, side="minority", method="likelihood", near_half="estimate", **{**FAST, "epochs": 1}
            )
            assert words in found.assumptions[-1]

    def test_other_pool(self, gaussians):
        with pytest.raises(InputError, match="pool of 2000 points, but X has 10"):
            estimate_prior(gaussians, DATA.X_train[:10], method="likelihood", **FAST)


class TestRefusals:
    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"method": "guess"}, "`method` must be one of"),
            ({"side": "rare"}, "`side` must be one of"),
            ({"level": 1.5}, "`level`"),
            ({"near_half": "never"}, "`near_half` must be one of"),
            ({"n_bootstrap": 3}, "`n_bootstrap`"),
            ({"method": "likelihood"}, "needs the points themselves.*method='acceptance'"),
            ({"method": "labels"}, "no labels were given"),
        ],
    )
    def test_arguments(self, given, words):
        with pytest.raises(InputError, match=words):
            estimate_prior(triplets(840, 1000), **given)

    def test_nothing(self):
        with pytest.raises(InputError, match="nothing was given"):
            estimate_prior()

    @pytest.mark.parametrize(
        ("sup", "words"),
        [
            (Triplets([[0, 1, 2]]), "number of tuples asked about is not known"),
            (Triplets([[0, 1, 2]], world="release"), "nobody is asked"),
            (SimilarityConfidence([[0, 1]], values=[0.5]), "no answers can be counted in similarity-confidence"),
            (Labels([[0]], values=[1]), "labels are no answers"),
        ],
    )
    def test_no_counts(self, sup, words):
        with pytest.raises(InputError, match=words):
            estimate_prior(sup, method="acceptance")

    def test_rows_that_are_no_supervision(self):
        with pytest.raises(InputTypeError, match="Wrap row indices"):
            estimate_prior([[0, 1, 2]])

    def test_likelihood_of_pairs(self):
        with pytest.raises(InputError, match="built for triplets"):
            estimate_prior(SimilarPairs([[0, 1]]), np.zeros((2, 2)), method="likelihood")


def test_prints_within_a_hundred_columns_and_goes_to_json():
    found = estimate_prior(triplets(840, 1000), side="minority")
    assert max(map(len, str(found).splitlines())) <= 100
    assert json.loads(json.dumps(found.as_dict()))["value"] == pytest.approx(0.2)
    for assumption in found.assumptions:
        assert assumption.split()[0] in str(found)


def test_counts_and_labels_need_no_torch():
    code = (
        "import sys\n"
        "import usimul as us\n"
        "sup = us.Triplets([[0, 1, 2]] * 84, n_asked=100)\n"
        "us.estimate_prior(sup, side='minority', near_half='estimate')\n"
        "us.estimate_prior(sup, labels=[1, -1, -1])\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture(scope="module")
def fitted():
    sup = sample_triplets(DATA.y_train, 600, n_unlabeled=300, prior=0.3, random_state=0)
    clf = us.USimULClassifier("usimul-exact-abs", prior=0.3, model="linear", epochs=5, random_state=0)
    return clf.fit(DATA.X_train, sup), sup


class Told(BaseEstimator):
    """Calls everything positive if it is told a prior above 0.3."""

    def __init__(self, prior=None):
        self.prior = prior

    def fit(self, X, y):
        self.taught_ = y
        return self

    def decision_function(self, X):
        return np.full(len(X), self.prior - 0.3)


class TestSensitivity:
    def test_rows_are_the_second_moment_risk_at_each_prior(self, fitted):
        clf, sup = fitted
        scores = clf.decision_function(DATA.X_train)
        for row in prior_sensitivity(clf, DATA.X_train, sup, [0.2, 0.35]):
            risk = second_moment_risk(scores[sup.rows], scores[sup.unlabeled], row.prior)
            assert (row.risk, row.standard_error) == (risk.value, risk.standard_error)
            plain = np.r_[scores[sup.rows[:, 1:]].ravel(), scores[sup.unlabeled]]
            assert row.predicted_positive == np.mean(plain >= 0)

    def test_trained_again_it_follows_the_prior(self, fitted):
        told = Told(prior=0.3)
        rows = prior_sensitivity(told, DATA.X_train, fitted[1], [0.15, 0.45], retrain=True, random_state=0)
        assert [row.predicted_positive for row in rows] == [0.0, 1.0]
        assert not hasattr(told, "taught_")  # a copy was trained

    def test_judges_are_not_the_teachers(self, fitted):
        clf, sup = fitted
        judge = sample_triplets(DATA.y_train, 300, n_unlabeled=300, prior=0.3, random_state=9)
        (row,) = prior_sensitivity(clf, DATA.X_train, sup, [0.3], retrain=True, judge=judge)
        (same,) = prior_sensitivity(clf, DATA.X_train, judge, [0.3])  # trained on all of sup with the same seed
        assert row == same

    def test_held_out_points_are_not_taught(self, monkeypatch):
        """Each point in one triplet: all can be divided. A point in many: triplets are, and the rows say so."""
        taught = []
        monkeypatch.setattr(Told, "fit", lambda self, X, y: taught.append(y) or self)
        X = np.zeros((900, 2))
        rng = np.random.default_rng(0)
        many = np.stack([rng.choice(90, 3, replace=False) for _ in range(300)])
        for rows, divided in ((rng.permutation(900).reshape(300, 3), "points"), (many, "tuples")):
            sup = Triplets(rows, unlabeled=range(900))
            found = prior_sensitivity(Told(prior=0.3), X, sup, [0.2], retrain=True, random_state=0)
            assert found[0].held_out == divided
            assert taught[-1].n_tuples == pytest.approx(225, abs=10)
        assert np.unique(np.r_[taught[0].rows.ravel(), taught[0].unlabeled]).size == 675

    @pytest.mark.parametrize(
        ("priors", "also", "words"),
        [([], {}, "at least one"), ([1.2], {}, "prior"), ([0.3], {"judge": Triplets([[0, 1, 2]])}, "retrain=True")],
    )
    def test_refusals(self, fitted, priors, also, words):
        with pytest.raises(InputError, match=words):
            prior_sensitivity(fitted[0], DATA.X_train, fitted[1], priors, **also)

    def test_only_triplets(self, fitted):
        with pytest.raises(InputTypeError, match="Got SimilarPairs"):
            prior_sensitivity(fitted[0], DATA.X_train, SimilarPairs([[0, 1]]), [0.3])
