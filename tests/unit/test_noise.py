"""Flip rates, repeated questions, and everything that takes ``wrong_yes``, away from the theory of the risks."""

import json
import math
import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import usimul as us
from usimul.class_prior import prior_conflict
from usimul.datasets import make_gaussians
from usimul.estimators import WeakClassifier
from usimul.events import EVENTS, noisy
from usimul.mixture import signal_kept
from usimul.noise import (
    NEGLIGIBLE_FLIPS,
    Repeats,
    disagreement,
    estimate_flip_rate,
    estimate_wrong_yes,
    flip_rate_of,
    information_kept,
    repeats,
    statement_of,
    wrong_no_share,
    wrong_yes_of,
)
from usimul.sampling import (
    draw,
    sample_compared_pairs,
    sample_dissimilar_pairs,
    sample_pair_answers,
    sample_similar_pairs,
    sample_triplet_answers,
    sample_triplets,
)
from usimul.supervision import PairAnswers, SimilarPairs, Supervision, TripletAnswers, Triplets, Unlabeled
from usimul.validation import FileFormatError, InputError, InputTypeError, NoisyAnswersWarning

PRIORS = (0.2, 0.4, 0.5, 0.7)
at_priors = pytest.mark.parametrize("p", PRIORS)


# --- shares and rates -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("z", [0.52, 0.76, 0.9])
@pytest.mark.parametrize("e", [0.0, 0.05, 0.26, 0.49])
def test_shares_of_wrong_answers_by_counting(z, e):
    """All four cells of truth and answer, as masses."""
    yes_right, yes_wrong, no_right, no_wrong = z * (1 - e), (1 - z) * e, (1 - z) * (1 - e), z * e
    r = wrong_yes_of(z, e, e)
    assert r == pytest.approx(yes_wrong / (yes_right + yes_wrong), abs=1e-12)
    assert flip_rate_of(r, z) == pytest.approx(e, abs=1e-12)
    assert wrong_no_share(r, z) == pytest.approx(no_wrong / (no_right + no_wrong), abs=1e-12)
    # What noise leaves of the law, from the cells: P(.|yes) = k P(.|Y) + (1 - k) (z P(.|Y) + (1 - z) P(.|not Y)).
    kept = signal_kept(r, z)
    assert (1 - kept) * (1 - z) == pytest.approx(r, abs=1e-12)


def test_rates_of_one_kind_each():
    assert wrong_yes_of(0.76, 0.5, 0.0) == pytest.approx(0.12 / 0.88)
    assert wrong_yes_of(0.76, 0.0, 0.9) == 0.0
    assert wrong_yes_of(0.76, 0.1, 1.0) == 1.0
    with pytest.raises(InputError, match="an annotator who never says yes has no share"):
        wrong_yes_of(0.76, 0.0, 1.0)
    with pytest.raises(InputError, match=r"`false_yes` must lie in \[0, 1\]"):
        wrong_yes_of(0.76, 1.2, 0.0)


def test_half_of_all_answers_flipped_is_the_limit():
    for z in (0.52, 0.76):
        assert wrong_yes_of(z, 0.5, 0.5) == pytest.approx(1 - z)
        with pytest.raises(InputError, match="carries no information"):
            signal_kept(1 - z, z)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_shares_outside_are_refused(value):
    with pytest.raises(InputError, match=r"`wrong_yes` must lie in \[0, 1\]"):
        signal_kept(value, 0.76)


@pytest.mark.parametrize("value", ["0.1", None, True])
def test_shares_that_are_no_numbers_are_refused(value):
    with pytest.raises(InputTypeError, match="`wrong_yes` must be a number"):
        signal_kept(value, 0.76)


def test_statements():
    assert statement_of(SimilarPairs([[0, 1]])).name == "similar-pair"
    assert statement_of(Triplets([[0, 1, 2]], world="pair_plus_unlabeled")).name == "shuffled-pair"
    assert statement_of(Triplets([[0, 1, 2]], world="release")) is None
    assert statement_of(Unlabeled([[0]])) is None


# --- repeated questions ---------------------------------------------------------------------------------------------


def test_repeats_are_found():
    rows = [[0, 1], [1, 0], [0, 1], [2, 3], [4, 5], [4, 5]]
    found = repeats(PairAnswers(rows, values=[1, -1, 1, 1, -1, -1]))
    assert sorted(zip(found.sizes.tolist(), found.minority.tolist(), strict=True)) == [(2, 0), (3, 1)]
    assert (found.n_pairs, found.n_disagreeing) == (4, 2)


def test_three_points_in_another_order_are_another_question():
    rows = [[0, 1, 2], [2, 1, 0], [0, 1, 2]]
    found = repeats(TripletAnswers(rows, values=[1, -1, -1]))
    assert (found.sizes.tolist(), found.minority.tolist()) == ([2], [1])


@pytest.mark.parametrize("sizes", [[2], [3], [2, 3, 5]])
@pytest.mark.parametrize("e", [0.05, 0.3])
def test_score_of_repeats_by_enumerating_all_answers(sizes, e):
    """Mean and variance of the number of disagreeing pairs over every pattern of flips."""
    mean = variance = 0.0
    for k in sizes:
        law = [
            (math.prod(e if flip else 1 - e for flip in flips), sum(flips) * (k - sum(flips)))
            for flips in product((0, 1), repeat=k)
        ]
        first = sum(w * d for w, d in law)
        mean, variance = mean + first, variance + sum(w * d * d for w, d in law) - first**2
        assert first == pytest.approx(math.comb(k, 2) * 2 * e * (1 - e))
    found = Repeats(np.array(sizes), np.ones(len(sizes), dtype=np.int64))
    assert found.z(e) == pytest.approx((found.n_disagreeing - mean) / math.sqrt(variance))


def test_score_at_a_rate_of_zero():
    assert Repeats(np.array([2]), np.array([1])).z(0.0) == math.inf
    assert Repeats(np.array([2]), np.array([0])).z(0.0) == 0.0


def wilson(hits, n, z=1.96):
    centre = (hits / n + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(hits / n * (1 - hits / n) / n + z * z / (4 * n * n))
    return centre - half, centre + half


def asked_twice(n, n_differ):
    rows = np.arange(2 * n).reshape(n, 2)
    return PairAnswers(np.tile(rows, (2, 1)), values=[1] * n + [-1] * n_differ + [1] * (n - n_differ))


@pytest.mark.parametrize(("n", "hits"), [(200, 38), (50, 1), (1000, 480), (30, 0)])
def test_interval_of_questions_asked_twice_is_wilsons(n, hits):
    found = estimate_flip_rate(asked_twice(n, hits))
    rate = [0.5 * (1 - math.sqrt(max(0.0, 1 - 2 * s))) for s in (hits / n, *wilson(hits, n))]
    assert found.value == pytest.approx(rate[0], abs=1e-12)
    assert found.low == pytest.approx(rate[1] if hits else 0.0, abs=1e-6)
    assert found.high == pytest.approx(rate[2], abs=1e-6)


def test_more_disagreement_than_coin_flips_make():
    found = estimate_flip_rate(asked_twice(40, 40))
    assert found.value == found.high == 0.5
    assert found.low > 0.3


@pytest.mark.parametrize(("e", "k"), [(0.03, 2), (0.1, 3), (0.25, 2), (0.25, 5)])
def test_flip_rate_is_found_and_covered(e, k):
    rng = np.random.default_rng(round(100 * e) + k)
    rows = np.repeat(np.arange(600).reshape(300, 2), k, axis=0)
    values, covered = [], 0
    for _ in range(200):
        truth = np.repeat(rng.choice([-1.0, 1.0], 300), k)
        found = estimate_flip_rate(PairAnswers(rows, values=np.where(rng.random(300 * k) < e, -truth, truth)))
        values.append(found.value)
        covered += found.low <= e <= found.high
    assert np.mean(values) == pytest.approx(e, abs=4 * np.std(values) / math.sqrt(200) + 0.003)
    assert covered >= 180  # 190 expected; fewer than 180 once in ten thousand


def test_wrong_yes_is_the_flip_rate_seen_through_z():
    sup = asked_twice(200, 38)
    flips, wrong = estimate_flip_rate(sup), estimate_wrong_yes(sup, 0.4)
    for e, r in ((flips.value, wrong.value), (flips.low, wrong.low), (flips.high, wrong.high)):
        assert r == pytest.approx(wrong_yes_of(0.52, e, e))
    triples = TripletAnswers([[0, 1, 2]] * 6 + [[3, 4, 5]] * 6, values=[1] * 5 + [-1] * 7)
    e = estimate_flip_rate(triples).value
    assert estimate_wrong_yes(triples, 0.4).value == pytest.approx(wrong_yes_of(0.76, e, e))


def test_kept_tuples_hold_no_disagreement():
    with pytest.raises(InputError, match=r"triplets hold no disagreement: .*Pass all answers, yes and no, as PairAns"):
        estimate_flip_rate(Triplets([[0, 1, 2], [0, 1, 2]]))


def test_without_repeats_nothing_is_estimated():
    with pytest.raises(InputError, match=r"none of the 2 questions was asked more than once.*Ask some of them again"):
        estimate_flip_rate(PairAnswers([[0, 1], [2, 3]], values=[1, -1]))


class TestDisagreement:
    def test_as_stated_is_silent(self):
        e = flip_rate_of(0.1, 0.52)
        assert disagreement(asked_twice(400, round(400 * 2 * e * (1 - e))), 0.4, 0.1) is None

    def test_more_than_stated_is_told_with_numbers(self):
        words = disagreement(asked_twice(400, 120), 0.4, 0.05)
        assert words.startswith("the same questions were answered differently too often: 120 of 400 pairs of answers")
        assert "while wrong_yes=0.05 means 0.054. State wrong_yes=0.172" in words
        # By hand: s = 0.3, e = (1 - sqrt(0.4))/2 = 0.1838; r = e 0.48 / (e 0.48 + (1 - e) 0.52).
        assert "The flip rate is about 0.184" in words

    def test_slips_are_tolerated(self):
        allowed = 2 * NEGLIGIBLE_FLIPS * (1 - NEGLIGIBLE_FLIPS)
        n = 2000
        error = math.sqrt(allowed * (1 - allowed) / n)
        assert disagreement(asked_twice(n, round(n * (allowed + 3.5 * error))), 0.4) is None
        assert disagreement(asked_twice(n, round(n * (allowed + 4.5 * error))), 0.4) is not None

    def test_less_than_stated_is_silent(self):
        assert disagreement(asked_twice(400, 0), 0.4, 0.2) is None

    def test_nothing_to_compare(self):
        assert disagreement(PairAnswers([[0, 1], [2, 3]], values=[1, -1]), 0.4) is None
        assert disagreement(Triplets([[0, 1, 2]] * 9), 0.4) is None

    def test_without_a_prior(self):
        assert disagreement(asked_twice(400, 120), None).endswith("The flip rate is about 0.184 (0.152 to 0.223).")


# --- samplers -------------------------------------------------------------------------------------------------------

Y = np.repeat([1, -1], [4000, 6000])
HOLDS = {
    sample_triplets: lambda y: (y[:, 0] == y[:, 1]) | (y[:, 0] == y[:, 2]),
    sample_similar_pairs: lambda y: y[:, 0] == y[:, 1],
    sample_dissimilar_pairs: lambda y: y[:, 0] != y[:, 1],
    sample_compared_pairs: lambda y: y[:, 0] >= y[:, 1],
}


@pytest.mark.parametrize("sampler", HOLDS, ids=lambda s: s.__name__)
@pytest.mark.parametrize(("p", "r"), [(0.3, 0.05), (0.4, 0.1), (0.5, 0.2)])
def test_samplers_draw_the_stated_share(sampler, p, r):
    n = 20_000
    sup = sampler(Y, n, prior=p, wrong_yes=r, random_state=1)
    y = Y[sup.rows]
    right = HOLDS[sampler](y)
    assert np.mean(~right) == pytest.approx(r, abs=4 * math.sqrt(r * (1 - r) / n))
    # Right tuples are always accepted: n (1 - r) of them are a share Z of what was asked.
    z = statement_of(sup).probability(p)
    asked = sup.n_accepted / sup.n_asked
    assert asked == pytest.approx(z / (1 - r), abs=4 * math.sqrt(asked * (1 - asked) / sup.n_asked) + 1e-3)


@pytest.mark.parametrize("p", [0.3, 0.5])
def test_right_and_wrong_triplets_each_follow_their_law(p):
    n = 40_000
    sup = sample_triplets(Y, n, prior=p, wrong_yes=0.15, random_state=2)
    y = Y[sup.rows] > 0
    right = HOLDS[sample_triplets](y)
    q = 1 - p
    for part, share in ((y[right], p * (1 - q * q) / (1 - p * q)), (y[~right], q)):
        error = 4 * math.sqrt(0.25 / len(part))
        assert part.mean(axis=0) == pytest.approx([share, p, p], abs=error)


def test_pairs_that_were_wrongly_taken_for_similar():
    sup = sample_triplets(Y, 20_000, prior=0.4, world="pair_plus_unlabeled", wrong_yes=0.2, random_state=3)
    y = Y[sup.rows] > 0
    share = 0.8 * 0.16 / 0.52 + 0.2 * 0.5  # anchors of similar and of dissimilar pairs
    assert y[:, 0].mean() == pytest.approx(share, abs=4 * math.sqrt(0.25 / 20_000))
    assert sup.n_asked is None


@pytest.mark.parametrize("sampler", [sample_pair_answers, sample_triplet_answers])
def test_answers_are_flipped_both_ways(sampler):
    n, p, r = 40_000, 0.4, 0.1
    sup = sampler(Y, n, prior=p, wrong_yes=r, random_state=4)
    y = Y[sup.rows]
    holds = y[:, 0] == y[:, 1] if sampler is sample_pair_answers else (y[:, 1] == y[:, 0]) | (y[:, 1] == y[:, 2])
    yes = sup.values > 0
    e = flip_rate_of(r, 0.52 if sampler is sample_pair_answers else 0.76)
    assert np.mean(~holds[yes]) == pytest.approx(r, abs=4 * math.sqrt(0.25 / n))
    for truth, answer in ((holds, ~yes), (~holds, yes)):
        assert answer[truth].mean() == pytest.approx(e, abs=4 * math.sqrt(0.25 / truth.sum()))


def test_a_share_of_zero_changes_no_draw():
    for sampler in (*HOLDS, sample_pair_answers, sample_triplet_answers):
        assert sampler(Y, 50, random_state=5) == sampler(Y, 50, random_state=5, wrong_yes=0.0)


@pytest.mark.parametrize("kind", [k for k in Supervision.kinds().values() if k.sampler], ids=lambda k: k.__name__)
def test_draw_takes_the_share_for_every_kind(kind):
    sup = draw(kind, Y, 50, posterior=np.where(Y > 0, 0.9, 0.1), random_state=6, wrong_yes=0.05)
    assert sup.n_tuples >= 50


def test_samplers_refuse():
    with pytest.raises(InputError, match="`wrong_yes` has no meaning in world 'release'"):
        sample_triplets(Y, 5, prior=0.4, world="release", wrong_yes=0.1)
    with pytest.raises(InputError, match=r"`wrong_yes` must be less than 0.24"):
        sample_triplets(Y, 5, prior=0.4, wrong_yes=0.3)
    with pytest.raises(InputTypeError, match="`wrong_yes` must be a number"):
        sample_pair_answers(Y, 5, wrong_yes="much")


# --- the prior against the counts -----------------------------------------------------------------------------------


@at_priors
@pytest.mark.parametrize("kind", [Triplets, SimilarPairs, PairAnswers, TripletAnswers], ids=lambda k: k.__name__)
def test_the_true_prior_is_not_contradicted_by_noisy_counts(kind, p):
    for seed in range(100, 110):  # seeds for which nothing rare happens
        sup = draw(kind, Y, 4000, prior=p, random_state=seed, wrong_yes=0.06)
        assert prior_conflict(sup, p, 0.06) is None


def test_wrong_noes_lower_the_accepted_share_and_contradict_nothing():
    sup = Triplets([[0, 1, 2]] * 500, n_asked=1000, world="definition1")
    assert prior_conflict(sup, 0.4) is not None
    assert prior_conflict(sup, 0.4, 0.1) is None


def test_an_accepted_share_that_no_annotator_can_reach():
    """At most Z/(1 - r) = 0.84/0.95 are accepted at prior 0.2; 0.95 of 1000 fit Z = 0.9025, p q = 0.0975."""
    sup = Triplets([[0, 1, 2]] * 950, n_asked=1000, world="definition1")
    found = prior_conflict(sup, 0.2, 0.05)
    assert found.expected == pytest.approx(0.84 / 0.95)
    root = math.sqrt(1 - 4 * 0.0975)
    assert f"prior of {0.5 * (1 - root):.3f} or {0.5 * (1 + root):.3f}" in found.hint


def test_answers_at_a_wrong_prior_are_told_with_the_right_one():
    sup = sample_pair_answers(Y, 100_000, prior=0.3, wrong_yes=0.1, random_state=7)
    found = prior_conflict(sup, 0.45, 0.1)
    e = flip_rate_of(0.1, 0.45**2 + 0.55**2)
    expected = (1 - e) * (0.45**2 + 0.55**2) + e * 2 * 0.45 * 0.55
    assert found.expected == pytest.approx(expected)
    assert found.hint.startswith(" The observed rate fits a prior of 0.")


# --- the estimator --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    return make_gaussians(1500, 1000, prior=0.4, random_state=0)


@pytest.fixture(scope="module")
def sup(data):
    return sample_triplets(data.y_train, 1500, n_unlabeled=1000, prior=0.4, random_state=0, wrong_yes=0.1)


def quick(method="joint-plain", **settings):
    plain = {"prior": 0.4, "model": "linear", "epochs": 3, "random_state": 0, "prior_check": "ignore"}
    return WeakClassifier(method, **{**plain, **settings})


@pytest.mark.parametrize("method", ["joint", "joint-plain", "joint-likelihood", "usimul-exact-abs"])
def test_stated_share_reaches_the_training(method, data, sup):
    plain, told = (quick(method, wrong_yes=r).fit(data.X_train, sup) for r in (0.0, 0.1))
    assert (plain.wrong_yes_, told.wrong_yes_) == (0.0, 0.1)
    assert not np.array_equal(plain.decision_function(data.X_test), told.decision_function(data.X_test))


def test_correction_is_off_at_zero(data):
    """The same bits as without the parameter: the reference is a method that does not know it."""
    clean = sample_triplets(data.y_train, 500, n_unlabeled=500, prior=0.4, random_state=0)
    first = quick().fit(data.X_train, clean).decision_function(data.X_test)
    assert np.array_equal(first, quick(wrong_yes=0).fit(data.X_train, clean).decision_function(data.X_test))


def test_label_free_risk_allows_for_noise(data, sup):
    clf = quick(epochs=30, wrong_yes=0.1).fit(data.X_train, sup)
    truth = 1 - clf.score(data.X_test, data.y_test)
    fresh = sample_triplets(data.y_test, 6000, n_unlabeled=3000, prior=0.4, random_state=1, wrong_yes=0.1)
    told, untold = clf.weak_risk(data.X_test, fresh), clf.weak_risk(data.X_test, fresh, wrong_yes=0.0)
    assert abs(told.value - truth) < 4 * told.standard_error
    assert untold.value - truth > 4 * untold.standard_error
    clean = sample_triplets(data.y_test, 6000, n_unlabeled=3000, prior=0.4, random_state=2)
    right = clf.weak_risk(data.X_test, clean, wrong_yes=0.0)
    assert abs(right.value - truth) < 4 * right.standard_error


@pytest.mark.parametrize("how", [{"selection": "label-free"}, {"method": "auto", "model": "linear"}])
def test_choosing_without_labels_allows_for_noise(how, data, sup):
    clf = quick(**{"wrong_yes": 0.1, **how}).fit(data.X_train, sup)
    seen = clf.history_["weak_risk"] if "selection" in how else [row["weak_risk"] for row in clf.auto_]
    untold = quick(**{**how, "wrong_yes": 0.0}).fit(data.X_train, sup)
    other = untold.history_["weak_risk"] if "selection" in how else [row["weak_risk"] for row in untold.auto_]
    assert min(seen) < min(other)


def test_labels_draw_noisy_answers(data):
    clf = quick(wrong_yes=0.1, n_tuples=300, n_unlabeled=300).fit(data.X_train, data.y_train)
    assert clf.wrong_yes_ == 0.1
    assert clf.from_labels_


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"wrong_yes": 0.24}, InputError, r"`wrong_yes` must be less than 0.24, .* Got 0.24"),
        ({"wrong_yes": -0.1}, InputError, r"`wrong_yes` must lie in \[0, 1\]. Got -0.1"),
        ({"wrong_yes": "0.1"}, InputTypeError, r"`wrong_yes` must be a number. Got '0.1'"),
        ({"wrong_yes": None}, InputTypeError, r"`wrong_yes` must be a number. Got None"),
        (
            {"method": "usimul-abs", "wrong_yes": 0.1},
            InputError,
            r"'usimul-abs' has no correction for wrong yes answers in triplets. Got wrong_yes=0.1. Use method='joint'",
        ),
        ({"options": {"wrong_yes": 0.1}}, InputError, r"`wrong_yes` is no option of a method. Pass it to the class"),
    ],
)
def test_bad_shares_are_refused_before_training(settings, error, words, data, sup):
    with pytest.raises(error, match=words):
        quick(**settings).fit(data.X_train, sup)


def test_judging_by_a_kind_without_correction_is_refused(data, sup):
    clf = quick(wrong_yes=0.1).fit(data.X_train, sup)
    eta = np.where(data.y_test > 0, 0.9, 0.1)
    confidences = draw(us.SimilarityConfidence, data.y_test, 50, posterior=eta, prior=0.4, random_state=0)
    with pytest.raises(InputError, match=r"has no correction for wrong yes answers in similarity-confidence"):
        clf.weak_risk(data.X_test, confidences)
    assert clf.weak_risk(data.X_test, confidences, wrong_yes=0.0).kind.startswith("unbiased")
    labels = us.Labels(np.arange(50)[:, None], values=data.y_test[:50])  # nothing to correct in labels
    assert clf.weak_risk(data.X_test, labels).kind == "labels"


def noisy_repeats(data, e, n=300):
    rng = np.random.default_rng(0)
    rows = np.tile(np.stack([rng.permutation(1500)[:n], 1499 - rng.permutation(1500)[:n]], axis=1), (2, 1))
    rows = rows[rows[:, 0] != rows[:, 1]]
    truth = np.where(data.y_train[rows[:, 0]] == data.y_train[rows[:, 1]], 1.0, -1.0)
    return PairAnswers(rows, values=np.where(rng.random(len(rows)) < e, -truth, truth), n_points=1500)


def test_fit_warns_of_annotators_who_disagree(data):
    answers = noisy_repeats(data, 0.15)
    settings = {"epochs": 1}
    with pytest.warns(NoisyAnswersWarning, match=r"The same questions were answered differently too often"):
        quick("sd", **settings).fit(data.X_train, answers)
    stated = estimate_wrong_yes(answers, 0.4).value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick("sd", wrong_yes=stated, **settings).fit(data.X_train, answers)
        quick("sd", **settings).fit(data.X_train, noisy_repeats(data, 0.0))


# --- files ----------------------------------------------------------------------------------------------------------


def test_saved_and_shown(data, sup, tmp_path):
    clf = quick(wrong_yes=0.1).fit(data.X_train, sup)
    us.save(clf, tmp_path / "model")
    again = us.load(tmp_path / "model")
    assert (again.wrong_yes, again.wrong_yes_) == (0.1, 0.1)
    assert again.weak_risk(data.X_train, sup).value == clf.weak_risk(data.X_train, sup).value
    assert "Share of wrong yes answers that the training corrected for, as stated: 0.1." in (
        tmp_path / "model" / "README.md"
    ).read_text(encoding="utf-8")
    us.save(quick().fit(data.X_train, sup), tmp_path / "plain")
    assert "wrong yes" not in (tmp_path / "plain" / "README.md").read_text(encoding="utf-8")


def test_worlds_of_other_counts(data, sup):
    in_pairs = replace(sup, world="pair_plus_unlabeled", n_asked=None, n_accepted=None)
    with pytest.raises(InputError, match=r"`wrong_yes` must be less than 0.48"):
        quick(wrong_yes=0.5).fit(data.X_train, in_pairs)


def test_folders_written_before_there_was_a_correction(data, sup, tmp_path):
    us.save(quick().fit(data.X_train, sup), tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    content = json.loads(path.read_text())
    del content["wrong_yes_"], content["params"]["wrong_yes"]
    path.write_text(json.dumps(content))
    again = us.load(tmp_path / "model")
    assert (again.wrong_yes, again.wrong_yes_) == (0.0, 0.0)
    for bad in (1.5, -0.1, "much", True, None):
        path.write_text(json.dumps({**content, "wrong_yes_": bad}))
        with pytest.raises(FileFormatError, match="wrong_yes_"):
            us.load(tmp_path / "model")


@pytest.mark.parametrize("share", [0.24, 0.9, 1.0])
def test_judging_with_a_share_that_leaves_nothing(share, data, sup):
    clf = quick(prior_check="warn", wrong_yes=0.1).fit(data.X_train, sup)
    with pytest.raises(InputError, match=r"`wrong_yes` must be less than 0.24"):
        clf.weak_risk(data.X_train, sup, wrong_yes=share)


def test_no_prior_outside_of_zero_and_one_is_advised():
    """More yes answers than a flip rate of 0.26 leaves possible: 990 of 1000."""
    sup = PairAnswers([[0, 1]] * 1000, values=[1.0] * 990 + [-1.0] * 10)
    assert "prior of 0.000 or 1.000" in prior_conflict(sup, 0.4, 0.1).hint


@pytest.mark.parametrize("name", ["triplet", "similar-pair", "dissimilar-pair"])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.15])
def test_information_kept_is_that_of_the_label_laws(name, share):
    """The divergence of the labels of noisy tuples from independent labels, counted over all label tuples."""
    prior, event = 0.35, EVENTS[name]
    heard = noisy(event, share, prior)

    def divergence(found):
        independent = prior ** found.table.sum(axis=1) * (1 - prior) ** (found.size - found.table.sum(axis=1))
        law = found.posterior(prior)
        return float(np.sum(law * np.log(law / independent)))

    assert information_kept(share, event.probability(prior)) == pytest.approx(divergence(heard) / divergence(event))
