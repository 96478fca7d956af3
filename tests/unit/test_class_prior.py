"""Whether a stated prior contradicts the supervision: never the true one, and a wrong one with the right numbers."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

from usimul.class_prior import CONFLICT_Z, Conflict, prior_conflict
from usimul.datasets import make_gaussians
from usimul.estimators import WeakClassifier
from usimul.sampling import draw, sample_triplets
from usimul.supervision import (
    ComparedPairs,
    ConfidenceDifference,
    DissimilarPairs,
    Labels,
    PairAnswers,
    SimilarityConfidence,
    SimilarPairs,
    Supervision,
    TripletAnswers,
    Triplets,
    Unlabeled,
    UnlabeledSets,
)
from usimul.validation import InputError, PriorMismatchWarning

PRIORS = (0.2, 0.4, 0.5, 0.7)
N = 4000
# Three kinds of points: their shares among the positives and among the negatives.
PLUS, MINUS = np.array([0.7, 0.25, 0.05]), np.array([0.05, 0.15, 0.8])
Y = np.repeat([1, -1], 1000)
PLACE = np.concatenate([np.repeat(range(3), np.rint(1000 * law).astype(int)) for law in (PLUS, MINUS)])

COUNTED = (Triplets, SimilarPairs, DissimilarPairs, ComparedPairs, PairAnswers, TripletAnswers)
MEASURED = (SimilarityConfidence, ConfidenceDifference)
SILENT = (UnlabeledSets, Labels, Unlabeled)
each_kind = pytest.mark.parametrize("kind", [*COUNTED, *MEASURED, *SILENT], ids=lambda k: k.__name__)
at_priors = pytest.mark.parametrize("prior", PRIORS)


def posterior(prior):
    eta = prior * PLUS / (prior * PLUS + (1 - prior) * MINUS)
    return eta[PLACE]


def collect(kind, prior, seed, n=N):
    return draw(kind, Y, n, posterior=posterior(prior), prior=prior, random_state=seed)


def rate_of(kind, p):
    """Probability of what is counted."""
    if kind in (Triplets, ComparedPairs, TripletAnswers):
        return 1 - p * (1 - p)
    return 2 * p * (1 - p) if kind is DissimilarPairs else p**2 + (1 - p) ** 2


def test_every_kind_is_tested():
    assert {*COUNTED, *MEASURED, *SILENT} == set(Supervision.kinds().values())


@at_priors
@each_kind
def test_the_true_prior_is_never_contradicted(kind, prior):
    # 20 seeds for which nothing rare happens: a true prior is contradicted once in 16,000 collections.
    assert [prior_conflict(collect(kind, prior, seed), prior) for seed in range(100, 120)] == [None] * 20


@at_priors
@pytest.mark.parametrize("kind", [*COUNTED, *MEASURED], ids=lambda k: k.__name__)
def test_the_mirrored_prior_is_not_contradicted(kind, prior):
    """Rates depend on p (1 - p): which class is the positive one cannot be counted."""
    assert prior_conflict(collect(kind, prior, 0), 1 - prior) is None


@pytest.mark.parametrize("kind", COUNTED, ids=lambda k: k.__name__)
class TestCounted:
    @pytest.mark.parametrize(("true", "stated"), [(0.2, 0.4), (0.4, 0.15), (0.7, 0.5), (0.5, 0.9)])
    def test_a_wrong_prior_is_named(self, kind, true, stated):
        sup = collect(kind, true, 1)
        found = prior_conflict(sup, stated)
        if kind in (PairAnswers, TripletAnswers):
            hits, n = int((sup.values > 0).sum()), sup.n_tuples
        else:
            hits, n = sup.n_accepted, sup.n_asked
        expected = rate_of(kind, stated)
        assert found.counted
        assert found.observed == hits / n
        assert found.expected == pytest.approx(expected, abs=1e-12)
        error = math.sqrt(expected * (1 - expected) / n)
        assert found.z == pytest.approx((hits / n - expected) / error, abs=1e-9)
        assert abs(found.z) > CONFLICT_Z
        text = str(found)
        assert f"{hits / n:.4f} observed, {expected:.4f} expected, {abs(found.z):.1f} standard errors away" in text

    def test_the_priors_that_fit_are_right(self, kind):
        found = prior_conflict(collect(kind, 0.3, 2, n=60_000), 0.45)
        low, high = found.hint.split("a prior of ")[1].rstrip(".").split(" or ")
        assert float(low) + float(high) == pytest.approx(1.0, abs=0.0015)
        assert float(low) == pytest.approx(0.3, abs=0.02)
        assert rate_of(kind, float(low)) == pytest.approx(found.observed, abs=0.001)

    def test_a_rate_that_no_prior_gives(self, kind):
        # As if the tuples had been chosen on purpose: 60 % of the triplets, 30 % of the similar pairs and so on.
        impossible = {DissimilarPairs: 0.7, SimilarPairs: 0.3, PairAnswers: 0.3}.get(kind, 0.6)
        sup = collect(kind, 0.4, 0, n=1000)
        if kind in (PairAnswers, TripletAnswers):
            sup = replace(sup, values=np.where(np.arange(1000) < 1000 * impossible, 1.0, -1.0))
        else:
            sup = replace(sup, n_asked=round(1000 / impossible))
        assert str(prior_conflict(sup, 0.4)).endswith("No prior fits the observed rate better than 0.500.")

    def test_few_tuples_contradict_little(self, kind):
        assert prior_conflict(collect(kind, 0.35, 0, n=40), 0.45) is None


def test_by_hand():
    sup = Triplets([[0, 1, 2]] * 910, n_asked=1000)
    found = prior_conflict(sup, 0.4)
    assert (found.observed, found.expected) == (0.91, pytest.approx(0.76))
    assert found.z == pytest.approx(0.15 / math.sqrt(0.76 * 0.24 / 1000))
    assert str(found) == (
        "accepted share of the tuples asked about: 0.9100 observed, 0.7600 expected, 11.1 standard errors away. "
        "The observed rate fits a prior of 0.100 or 0.900."
    )


@pytest.mark.parametrize("kind", COUNTED[:4], ids=lambda k: k.__name__)
def test_without_a_count_there_is_nothing_to_compare(kind):
    sup = replace(collect(kind, 0.2, 0), n_asked=None, n_accepted=None)
    assert prior_conflict(sup, 0.5) is None


def test_only_definition_1_has_an_acceptance_rate():
    sup = collect(Triplets, 0.2, 0)
    assert prior_conflict(sup, 0.5) is not None
    assert prior_conflict(replace(sup, world="pair_plus_unlabeled"), 0.5) is None
    in_pairs = sample_triplets(Y, 1000, prior=0.2, world="pair_plus_unlabeled", random_state=0)
    assert prior_conflict(in_pairs, 0.5) is None


class TestSimilarityConfidence:
    @pytest.mark.parametrize(("true", "stated"), [(0.2, 0.4), (0.7, 0.5), (0.5, 0.1)])
    def test_a_wrong_prior_is_named(self, true, stated):
        sup = collect(SimilarityConfidence, true, 1)
        found = prior_conflict(sup, stated)
        assert not found.counted
        assert found.observed == pytest.approx(np.mean(sup.values), abs=1e-12)
        assert found.expected == pytest.approx(stated**2 + (1 - stated) ** 2, abs=1e-12)
        error = np.std(sup.values, ddof=1) / math.sqrt(N)
        assert found.z == pytest.approx((found.observed - found.expected) / error, abs=1e-9)
        assert "mean similarity confidence" in str(found)
        assert "usimul.posterior.rescale" in str(found)

    def test_confidences_of_another_prior_are_noticed(self):
        """Pairs drawn at 0.2, confidences of a classifier that saw balanced classes, not re-scaled."""
        sup = draw(SimilarityConfidence, Y, N, posterior=posterior(0.5), prior=0.2, random_state=0)
        assert prior_conflict(sup, 0.2) is not None


class TestConfidenceDifference:
    def test_a_prior_too_far_from_one_half(self):
        sup = collect(ConfidenceDifference, 0.5, 1)
        found = prior_conflict(sup, 0.1)
        squares = 0.5 * sup.values**2
        assert not found.counted
        assert found.observed == pytest.approx(squares.mean(), abs=1e-12)
        assert found.expected == pytest.approx(0.09)
        assert found.z == pytest.approx((squares.mean() - 0.09) / (squares.std(ddof=1) / math.sqrt(N)), abs=1e-9)
        assert "variance of P(y = +1 | x), which cannot exceed p (1 - p)" in str(found)

    def test_a_prior_nearer_to_one_half_cannot_be_seen(self):
        # The variance of eta may be anything below p (1 - p), so this is no proof.
        assert prior_conflict(collect(ConfidenceDifference, 0.2, 1), 0.5) is None

    def test_sorted_pairs_are_noticed(self):
        """All differences turned positive, as if somebody had put the surer point second."""
        sup = collect(ConfidenceDifference, 0.4, 1)
        found = prior_conflict(replace(sup, values=np.abs(sup.values)), 0.4)
        assert (found.expected, found.observed) == (0.0, pytest.approx(np.abs(sup.values).mean()))
        assert str(found).endswith("The two points of a pair must be drawn alike.")

    def test_separable_classes_are_the_limit(self):
        """eta in {0, 1}: half the mean square is p (1 - p) itself, up to chance."""
        for seed in range(20):
            sup = draw(ConfidenceDifference, Y, N, posterior=(Y > 0) * 1.0, prior=0.3, random_state=seed)
            assert prior_conflict(sup, 0.3) is None


class TestValuesWithoutSpread:
    def test_off_by_any_number_of_standard_errors(self):
        for sup in (
            SimilarityConfidence([[0, 1]] * 5, values=[0.6] * 5),
            ConfidenceDifference([[0, 1]] * 5, values=[0.1] * 5),
        ):
            assert prior_conflict(sup, 0.4).z == math.inf

    def test_exactly_right(self):
        assert prior_conflict(SimilarityConfidence([[0, 1]] * 5, values=[0.5] * 5), 0.5) is None
        assert prior_conflict(ConfidenceDifference([[0, 1]] * 5, values=[0.0] * 5), 0.4) is None

    def test_one_value_says_nothing(self):
        assert prior_conflict(SimilarityConfidence([[0, 1]], values=[0.9]), 0.4) is None
        assert prior_conflict(ConfidenceDifference([[0, 1]], values=[0.9]), 0.4) is None


def test_text_of_a_conflict():
    assert str(Conflict("what", 0.25, 0.5, -7.04)) == (
        "what: 0.2500 observed, 0.5000 expected, 7.0 standard errors away."
    )


# --- through the estimators -----------------------------------------------------------------------------------------

DATA = make_gaussians(400, 10, prior=0.45, random_state=0)
METHODS = {
    "joint-plain": Triplets,
    "su": SimilarPairs,
    "du": DissimilarPairs,
    "pcomp-abs": ComparedPairs,
    "sd": PairAnswers,
    "triplet-comparison": TripletAnswers,
    "sconf-abs": SimilarityConfidence,
    "confdiff-abs": ConfidenceDifference,
}


def fit(method, prior_check, sup):
    options = {"prior": 0.05, "model": "linear", "epochs": 1, "random_state": 0}
    return WeakClassifier(method, prior_check=prior_check, **options).fit(DATA.X_train, sup)


@pytest.fixture(params=METHODS)
def contradicted(request):
    kind = METHODS[request.param]
    return request.param, draw(
        kind, DATA.y_train, 1500, n_unlabeled=200, posterior=DATA.posterior_train, prior=0.45, random_state=0
    )


class TestEstimator:
    def test_counts_are_an_error_and_confidences_a_warning(self, contradicted):
        method, sup = contradicted
        if METHODS[method] in MEASURED:
            with pytest.warns(PriorMismatchWarning, match=r"`prior`=0.05 contradicts the supervision: (mean|half)"):
                fit(method, "error", sup)
        else:
            with pytest.raises(InputError, match=r"`prior`=0.05 contradicts .* fits .*prior_check='warn'"):
                fit(method, "error", sup)

    def test_warn(self, contradicted):
        with pytest.warns(PriorMismatchWarning, match="`prior`=0.05 contradicts the supervision"):
            clf = fit(contradicted[0], "warn", contradicted[1])
        assert clf.prior_ == 0.05

    def test_ignore(self, contradicted):
        with warnings.catch_warnings():
            warnings.simplefilter("error", PriorMismatchWarning)
            fit(contradicted[0], "ignore", contradicted[1])


def test_prior_check_is_one_of_three():
    with pytest.raises(InputError, match=r"`prior_check` must be one of: error, warn, ignore\. Got 'never'"):
        fit("su", "never", collect(SimilarPairs, 0.4, 0))


def test_the_true_prior_passes_through_the_estimator():
    for method, kind in METHODS.items():
        sup = draw(kind, DATA.y_train, 300, n_unlabeled=100, posterior=DATA.posterior_train, prior=0.45, random_state=1)
        with warnings.catch_warnings():
            warnings.simplefilter("error", PriorMismatchWarning)
            clf = WeakClassifier(method, prior=0.45, model="linear", epochs=1, random_state=0)
            assert clf.fit(DATA.X_train, sup).prior_ == 0.45
