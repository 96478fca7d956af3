"""Corrections for wrong yes answers, by enumeration of small worlds whose yes answers are wrong in a known share.

Every right tuple of an urn is listed three times, every wrong one once. That is the law of an annotator who says yes
three times as often where the statement holds; the share r of wrong tuples is counted, never taken from the library.
"""

import math
from itertools import product

import numpy as np
import pytest
import torch

import usimul as us
from usimul import testing
from usimul.events import EVENTS, noisy
from usimul.methods import risk_terms
from usimul.methods.joint import EventModel
from usimul.mixture import signal_kept
from usimul.supervision import ComparedPairs, DissimilarPairs, PairAnswers, SimilarPairs, TripletAnswers, Triplets
from usimul.testing import DiscreteWorld, Enumerated, batch_of, bias, enumerate_world
from usimul.validation import InputError
from usimul.weak_risk import position_aware_risk, second_moment_risk

OFF_HALF = (0.1, 0.3, 0.4, 0.45, 0.6, 0.9)
WORLDS = ("definition1", "pair_plus_unlabeled")
RIGHT, WRONG = 3, 1  # copies
EXACT = 1e-10

# The statements, worded a second time.
HOLDS = {
    Triplets: lambda y: (y[:, 0] == y[:, 1]) | (y[:, 0] == y[:, 2]),
    TripletAnswers: lambda y: (y[:, 1] == y[:, 0]) | (y[:, 1] == y[:, 2]),
    SimilarPairs: lambda y: y[:, 0] == y[:, 1],
    PairAnswers: lambda y: y[:, 0] == y[:, 1],
    DissimilarPairs: lambda y: y[:, 0] != y[:, 1],
    ComparedPairs: lambda y: ~((y[:, 0] < 0) & (y[:, 1] > 0)),
}
ANSWERS = (PairAnswers, TripletAnswers)

at_priors = pytest.mark.parametrize("p", OFF_HALF)
at_all_priors = pytest.mark.parametrize("p", [*OFF_HALF, 0.5])
in_worlds = pytest.mark.parametrize("world", WORLDS)


def noisy_world(urn, kind, sampling=""):
    """All noisy observations, equally likely, and the share of wrong ones among those with a yes."""
    balls = urn.draws(kind.width)
    if sampling == "pair_plus_unlabeled":  # a pair, said to be similar, and one more point, in both orders
        balls = np.concatenate([balls, balls[:, [0, 2, 1]]])
        y = urn.labels[balls]
        half = len(balls) // 2
        right = np.concatenate([y[:half, 0] == y[:half, 1], y[half:, 0] == y[half:, 2]])
    else:
        right = HOLDS[kind](urn.labels[balls])
    values = None
    if kind in ANSWERS:  # one answer in four is flipped, both ways
        answers = np.where(right, 1.0, -1.0)
        values = np.concatenate([answers] * RIGHT + [-answers] * WRONG)
        yes = values > 0
        balls, right = np.concatenate([balls] * 4), np.concatenate([right] * 4)
        share = float(np.mean(~right[yes]))
    else:
        order = np.repeat(np.arange(len(balls)), np.where(right, RIGHT, WRONG))
        balls, right = balls[order], right[order]
        share = float(np.mean(~right))
    supervision = kind(
        urn.points[balls] + urn.n_points * np.arange(kind.width),
        unlabeled=None if kind in ANSWERS else urn.points,
        values=values,
        n_points=urn.n_points * kind.width,
        world=sampling or None,
    )
    return Enumerated(urn, supervision, urn.labels[balls]), share


def urn_at(p, seed=0):
    return DiscreteWorld.random(p, random_state=seed)


def smooth_urn(p, seed=0):
    """An urn whose points hold both classes, so that every logit is finite."""
    rng = np.random.default_rng(seed)
    labels = np.repeat([1, -1], [round(p * 20), 20 - round(p * 20)])
    points = np.where(labels > 0, rng.integers(0, 3, 20), rng.integers(1, 4, 20))
    points[[0, -1]] = 0
    return DiscreteWorld(points, labels, 4)


def event_in(world):
    return EVENTS["triplet" if world == "definition1" else "shuffled-pair"]


# --- laws -----------------------------------------------------------------------------------------------------------


@in_worlds
@at_all_priors
def test_observed_label_tuples_follow_the_noisy_event(world, p):
    found, r = noisy_world(urn_at(p), Triplets, world)
    event = noisy(event_in(world), r, p)
    names, counts = np.unique(found.labels > 0, axis=0, return_counts=True)
    law = {tuple(map(int, y)): n / len(found.labels) for y, n in zip(names, counts, strict=True)}
    expected = dict(zip(event.admissible, event.posterior(p), strict=True))
    assert law == pytest.approx(expected, abs=EXACT)
    assert event.marginals(p) == pytest.approx((found.labels > 0).mean(axis=0), abs=EXACT)
    assert event.accepted.max() == pytest.approx(1.0)


@at_all_priors
def test_companions_follow_the_unlabeled_law_point_by_point_in_spite_of_noise(p):
    urn = urn_at(p, seed=1)
    found, _ = noisy_world(urn, Triplets, "definition1")
    for column in (1, 2):
        law = np.bincount(found.points[:, column], minlength=6) / found.supervision.n_tuples
        assert law == pytest.approx(urn.law, abs=EXACT)


@in_worlds
@at_all_priors
def test_noise_is_a_mixture_of_the_clean_law_and_independent_points(world, p):
    """The identity behind every correction, for whole tuples of points."""
    urn = urn_at(p, seed=2)
    found, r = noisy_world(urn, Triplets, world)
    clean = enumerate_world(urn, Triplets, world)

    def law(points):
        counts = np.zeros((6, 6, 6))
        np.add.at(counts, tuple(points.T), 1.0 / len(points))
        return counts

    kept = signal_kept(r, event_in(world).probability(p))
    independent = np.einsum("i,j,k", urn.law, urn.law, urn.law)
    assert law(found.points) == pytest.approx(kept * law(clean.points) + (1 - kept) * independent, abs=EXACT)


# --- linear risks ---------------------------------------------------------------------------------------------------

LINEAR = [
    (method.name, world)
    for method in us.list_methods()
    if method.corrects_wrong_yes and hasattr(method, "terms")
    for world in (method.unbiased or ("",))
]


def use_noisy_law(monkeypatch, kind, sampling):
    monkeypatch.setitem(testing.LAWS, (kind, sampling), lambda urn: noisy_world(urn, kind, sampling)[0])


def test_the_linear_risks_that_claim_a_correction_are_these():
    kinds = {us.get_method(name).supervision for name, _ in LINEAR}
    assert kinds == set(HOLDS)


@pytest.mark.parametrize(("name", "world"), LINEAR)
@at_priors
def test_corrected_risk_is_unbiased(name, world, p, monkeypatch):
    method = us.get_method(name)
    use_noisy_law(monkeypatch, method.supervision, world)
    _, r = noisy_world(urn_at(p), method.supervision, world)
    assert r > 0.005
    assert bias(method, urn_at(p), world, options={"wrong_yes": r}) < EXACT
    # Uncorrected, the same risk is biased by noise: the test above can fail.
    assert max(bias(method, urn_at(p, seed), world) for seed in range(3)) > 1e-3


@pytest.mark.parametrize("lam", [0, 0.3, 1])
@at_priors
def test_corrected_pointwise_risk_is_unbiased_for_every_lam(lam, p, monkeypatch):
    use_noisy_law(monkeypatch, Triplets, "definition1")
    _, r = noisy_world(urn_at(p), Triplets, "definition1")
    assert bias(us.get_method("usimul-exact"), urn_at(p), "definition1", options={"lam": lam, "wrong_yes": r}) < EXACT


@at_priors
def test_weights_in_closed_form(p):
    """c = Z/(kappa D) with kappa = 1 - r/(p q) in place of Z/D."""
    r = 0.5 * p * (1 - p)
    c = (1 - p * (1 - p)) / (0.5 * (2 * p - 1))
    sup = Triplets([[0, 1, 2]], unlabeled=[3], world="definition1")
    weights = {(t.source, t.label): t.weight for t in us.get_method("usimul-exact").terms(sup, p, lam=0, wrong_yes=r)}
    expected = {
        ("triplets", 1): c,
        ("triplets", -1): -c,
        ("unlabeled", 1): p - c,
        ("unlabeled", -1): 1 - p + c,
    }
    assert weights == pytest.approx(expected, rel=1e-9)


# --- tuple-level risks ----------------------------------------------------------------------------------------------


def true_logits(urn):
    eta = np.clip(urn.eta, 1e-12, 1 - 1e-12)
    return np.log(eta / (1 - eta))


def competitors(truth, seed=0, n=16):
    rng = np.random.default_rng(seed)
    yield from rng.normal(scale=3.0, size=(n, truth.size))
    for scale in (0.01, 0.1, 1.0, 5.0):
        yield from truth + rng.normal(scale=scale, size=(n // 4, truth.size))
    for factor in (0.5, 0.8, 1.2, 2.0):  # less and more certain, which is what noise moves
        yield factor * truth
    for constant in (-40.0, 0.0, 40.0):
        yield np.full(truth.size, constant)


def objective_value(name, sup, p, logits, **options):
    objective = us.get_method(name).objective(sup, p, options=options)
    trial = torch.nn.Linear(1, 1).double()
    objective.begin(us.methods.base.Run(trial, 100, score=dict, negate=lambda _: None))
    return objective.step(batch_of(sup, torch.from_numpy(np.asarray(logits, dtype=np.float64))))


@in_worlds
@pytest.mark.parametrize("p", [0.2, 0.4, 0.5, 0.7])
def test_brier_risk_of_noisy_answers_is_the_clean_one_plus_a_constant(world, p):
    urn = smooth_urn(p, seed=3)
    noisy_found, r = noisy_world(urn, Triplets, world)
    clean = enumerate_world(urn, Triplets, world)
    truth = true_logits(urn)

    def gain(sup, logits, **options):
        at = [float(objective_value("joint-plain", sup, p, f, correction="none", **options).total) for f in logits]
        return at[0] - at[1]

    for other in competitors(truth, seed=1):
        corrected = gain(noisy_found.supervision, (other, truth), wrong_yes=r)
        assert corrected == pytest.approx(gain(clean.supervision, (other, truth)), abs=1e-6)


@pytest.mark.parametrize("correction", ["none", "abs", "relu"])
@in_worlds
@pytest.mark.parametrize("p", [0.2, 0.4, 0.5, 0.7])
def test_corrected_brier_risk_is_least_at_the_truth(correction, world, p):
    urn = smooth_urn(p, seed=4)
    found, r = noisy_world(urn, Triplets, world)
    truth, options = true_logits(urn), {"correction": correction, "wrong_yes": r}
    best = float(objective_value("joint-plain", found.supervision, p, truth, **options).total)
    for other in competitors(truth):
        assert float(objective_value("joint-plain", found.supervision, p, other, **options).total) >= best - 1e-7


@in_worlds
@pytest.mark.parametrize("p", [0.2, 0.4, 0.7])
def test_parts_of_the_corrected_brier_risk(world, p):
    """They are those of right answers: E[g* (1-g)^2] and E[(1-g*) g^2] over independent points, both non-negative."""
    urn = smooth_urn(p, seed=5)
    found, r = noisy_world(urn, Triplets, world)
    logits = np.random.default_rng(4).normal(scale=2.0, size=4)
    h = 1 / (1 + np.exp(-logits))

    def holds(a, b, c):
        if world == "pair_plus_unlabeled":
            return 0.5 * (a * b + (1 - a) * (1 - b)) + 0.5 * (a * c + (1 - a) * (1 - c))
        return 1 - a * (1 - b) * (1 - c) - (1 - a) * b * c

    positive = negative = 0.0
    for x in product(range(4), repeat=3):
        mass, g, truth = math.prod(urn.law[list(x)]), holds(*h[list(x)]), holds(*urn.eta[list(x)])
        positive += mass * truth * (1 - g) ** 2
        negative += mass * (1 - truth) * g**2
    parts = objective_value("joint-plain", found.supervision, p, logits, wrong_yes=r).parts
    assert float(parts["positive"]) == pytest.approx(positive, abs=1e-6)
    assert float(parts["negative"]) == pytest.approx(negative, abs=1e-6)
    assert float(parts["prior"]) == pytest.approx((urn.law @ h - p) ** 2, abs=1e-9)


@in_worlds
@pytest.mark.parametrize("p", [0.2, 0.4, 0.5, 0.7])
def test_corrected_likelihood_is_least_at_the_truth(world, p):
    urn = smooth_urn(p, seed=6)
    found, r = noisy_world(urn, Triplets, world)
    truth = true_logits(urn)
    best = float(objective_value("joint-likelihood", found.supervision, p, truth, wrong_yes=r).total)
    for other in competitors(truth, seed=1):
        assert float(objective_value("joint-likelihood", found.supervision, p, other, wrong_yes=r).total) >= best - 1e-7


@pytest.mark.parametrize("name", ["joint-plain", "joint-likelihood"])
def test_without_the_correction_the_truth_is_not_least(name):
    p = 0.4
    urn = smooth_urn(p, seed=4)
    found, _ = noisy_world(urn, Triplets, "definition1")
    truth = true_logits(urn)
    best = float(objective_value(name, found.supervision, p, truth).total)
    assert min(float(objective_value(name, found.supervision, p, f).total) for f in competitors(truth)) < best - 1e-4


@in_worlds
@pytest.mark.parametrize("p", [0.2, 0.4, 0.5, 0.7])
def test_posterior_given_a_noisy_yes_is_bayes(world, p):
    urn = smooth_urn(p)
    found, r = noisy_world(urn, Triplets, world)
    event = noisy(event_in(world), r, p)
    keys, place = np.unique(found.points, axis=0, return_inverse=True)
    place = place.ravel()
    counted = np.stack(
        [np.bincount(place, weights=found.labels[:, i] > 0) / np.bincount(place) for i in range(3)], axis=1
    )
    eta = np.clip(urn.eta, 1e-15, 1 - 1e-15)
    logits = torch.from_numpy(np.log(eta / (1 - eta)))[torch.from_numpy(keys)]
    got = EventModel(event, torch.device("cpu")).posterior(logits)
    assert got.numpy() == pytest.approx(counted, abs=1e-7)
    assert event.member_posterior(eta[keys]) == pytest.approx(counted, abs=1e-9)


# --- risk without labels --------------------------------------------------------------------------------------------


def error_of(urn, by_point):
    return float(np.mean(np.where(by_point[urn.points] >= 0, 1, -1) != urn.labels))


@in_worlds
@at_priors
def test_position_aware_estimate_of_a_whole_noisy_world_is_the_error_rate(world, p):
    for seed in range(4):
        urn = urn_at(p, seed)
        by_point = np.random.default_rng(seed).normal(size=6)
        found, r = noisy_world(urn, Triplets, world)
        tuples, plain = by_point[found.points], by_point[urn.points]
        estimate = position_aware_risk(tuples, plain, p, world=world, wrong_yes=r).value
        assert estimate == pytest.approx(error_of(urn, by_point), abs=1e-9)


@in_worlds
@at_all_priors
def test_second_moment_estimate_of_a_whole_noisy_world_is_the_error_rate(world, p):
    missed = 0.0
    for seed in range(4):
        urn = urn_at(p, seed)
        found, r = noisy_world(urn, Triplets, world)
        by_point = urn.eta - 0.5
        tuples, plain = by_point[found.points], by_point[urn.points]
        truth = error_of(urn, by_point)
        estimate = second_moment_risk(tuples, plain, p, world=world, wrong_yes=r).value
        assert estimate == pytest.approx(truth, abs=1e-7)
        missed = max(missed, abs(second_moment_risk(tuples, plain, p, world=world).value - truth))
    assert missed > 0.005  # noise that nobody allows for makes it too high


@pytest.mark.parametrize("kind", [SimilarPairs, DissimilarPairs, ComparedPairs, PairAnswers, TripletAnswers])
@at_priors
def test_estimates_by_other_kinds_allow_for_noise(kind, p, monkeypatch):
    found, r = noisy_world(urn_at(p), kind)
    name, terms = risk_terms(found.supervision, p, r)
    use_noisy_law(monkeypatch, kind, "")
    again = us.get_method(name).terms(found.supervision, p, wrong_yes=r)
    assert [t.weight for t in terms] == [t.weight for t in again]
    assert bias(us.get_method(name), urn_at(p), options={"wrong_yes": r}) < EXACT


def draw(rng, p, n, r):
    """Scores of noisy triplets and of unlabeled points: a Gaussian for each class, at +1 and -1; the rule is x >= 0."""

    def score(positive):
        return rng.normal(size=positive.shape) + np.where(positive, 1.0, -1.0)

    y = rng.random((12 * n, 3)) < p
    holds = (y[:, 0] == y[:, 1]) | (y[:, 0] == y[:, 2])
    n_wrong = rng.binomial(n, r)
    y = np.concatenate([y[holds][: n - n_wrong], y[~holds][:n_wrong]])
    assert len(y) == n
    return score(y), score(rng.random(n) < p)


@pytest.mark.parametrize("estimate", [second_moment_risk, position_aware_risk])
@pytest.mark.parametrize("p", [0.2, 0.4])
def test_standard_error_and_coverage_with_noise(estimate, p):
    rng, r = np.random.default_rng(7), 0.4 * p * (1 - p)
    found = [estimate(*draw(rng, p, 2000, r), p, wrong_yes=r) for _ in range(300)]
    values, errors = np.array([(f.value, f.standard_error) for f in found]).T
    truth, spread = 0.5 * (1 - math.erf(1 / math.sqrt(2))), values.std(ddof=1)
    assert abs(values.mean() - truth) < 4 * spread / math.sqrt(300) + 0.003
    assert errors.mean() == pytest.approx(spread, rel=0.15)
    covered = np.mean([low <= truth <= high for low, high in (f.interval() for f in found)])
    assert 0.90 <= covered <= 0.99


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", HOLDS, ids=lambda k: k.__name__)
@at_all_priors
def test_a_share_that_leaves_no_signal_is_refused(kind, p):
    q = 1 - p
    same, one_of = p * p + q * q, 1 - p * q
    holds = {SimilarPairs: same, PairAnswers: same, DissimilarPairs: 1 - same}.get(kind, one_of)
    rows = [list(range(kind.width))] * 2
    sup = kind(rows, unlabeled=None if kind in ANSWERS else [5], values=[1, -1] if kind in ANSWERS else None)
    method = next(m for m in us.list_methods() if m.corrects_wrong_yes and m.supervision is kind)
    method.check_wrong_yes(sup, p, 1 - holds - 1e-9)
    for share in (1 - holds + 1e-9, 0.99):
        with pytest.raises(InputError, match=r"`wrong_yes` must be less than .* a yes carries no information. Got"):
            method.check_wrong_yes(sup, p, share)


@pytest.mark.parametrize("method", [m for m in us.list_methods() if not m.corrects_wrong_yes], ids=lambda m: m.name)
def test_methods_without_a_correction_refuse(method):
    sampling = testing.worlds_of(method)[0]
    sup = enumerate_world(urn_at(0.4), method.supervision, sampling).supervision
    method.check_wrong_yes(sup, 0.4, 0.0)
    with pytest.raises(
        InputError, match=rf"'{method.name}' has no correction for wrong yes answers .* Got wrong_yes=0"
    ):
        method.check_wrong_yes(sup, 0.4, 0.05)


def test_the_world_without_answers_is_refused():
    sup = Triplets([[0, 1, 2]], unlabeled=[3], world="release")
    with pytest.raises(InputError, match=r"no correction for wrong yes answers in triplets. Got wrong_yes=0.1. Leave"):
        us.get_method("joint").check_wrong_yes(sup, 0.4, 0.1)
