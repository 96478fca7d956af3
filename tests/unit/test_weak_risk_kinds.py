"""Judging without labels, for every kind: the estimate's mean is the true error, its standard error the true spread."""

from dataclasses import replace

import numpy as np
import pytest

import usimul as us
from usimul.batching import pool_tensor
from usimul.datasets import make_gaussians
from usimul.estimators import WeakClassifier
from usimul.methods import risk_terms
from usimul.risk import estimate_error
from usimul.sampling import draw
from usimul.supervision import ComparedPairs, ConfidenceDifference, Labels, Triplets, Unlabeled
from usimul.testing import LAWS, DiscreteWorld, enumerate_world
from usimul.training import scores
from usimul.validation import InputError, InputTypeError

PRIORS = (0.2, 0.4, 0.5, 0.7)
CASES = [(kind, world) for kind, world in LAWS]
each_case = pytest.mark.parametrize(("kind", "world"), CASES, ids=lambda v: getattr(v, "__name__", v or "-"))
CLAIMS = [(m, w) for m in us.list_methods() if hasattr(m, "terms") for w in m.unbiased]


def true_error(urn, by_point):
    """Share of balls on the wrong side, by counting."""
    wrong = 0
    for point, label in zip(urn.points, urn.labels, strict=True):
        wrong += (1 if by_point[point] >= 0 else -1) != label
    return wrong / urn.points.size


def score(sup, by_point):
    return {name: by_point[rows % len(by_point)] for name, rows in sup.sources().items()}


def rules(urn):
    """Every classifier of a few points, as scores."""
    rng = np.random.default_rng(0)
    yield from (rng.normal(size=urn.n_points) for _ in range(4))
    yield np.where(urn.eta >= 0.5, 1.0, -1.0)
    yield np.zeros(urn.n_points)
    yield np.full(urn.n_points, -1.0)


# --- expectation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(("method", "world"), CLAIMS, ids=lambda v: getattr(v, "name", v or "-"))
def test_expectation_is_the_true_error(method, world, prior):
    if prior == 0.5 and not method.defined_at_half:
        pytest.skip("undefined at prior 1/2, and says so")
    urn = DiscreteWorld.random(prior, random_state=1)
    sup = enumerate_world(urn, method.supervision, world).supervision
    for by_point in rules(urn):
        value, error = estimate_error(method.terms(sup, prior), score(sup, by_point))
        assert value == pytest.approx(true_error(urn, by_point), abs=1e-10)
        assert error >= 0


@pytest.mark.parametrize("prior", PRIORS)
@each_case
def test_a_risk_is_found_for_every_kind(kind, world, prior):
    urn = DiscreteWorld.random(prior, random_state=2)
    sup = enumerate_world(urn, kind, world).supervision
    by_point = next(iter(rules(urn)))
    if prior == 0.5:
        try:
            name, terms = risk_terms(sup, prior)
        except InputError as error:
            assert "0.5" in str(error)  # noqa: PT017  it depends on the kind which of the two happens
            return
    else:
        name, terms = risk_terms(sup, prior)
    record = us.get_method(name)
    assert record.supervision is kind
    assert record.unbiased
    assert estimate_error(terms, score(sup, by_point))[0] == pytest.approx(true_error(urn, by_point), abs=1e-10)


def test_a_printed_but_biased_risk_judges_nobody():
    urn = DiscreteWorld.random(0.4)
    for world in ("definition1", "pair_plus_unlabeled"):
        assert risk_terms(enumerate_world(urn, Triplets, world).supervision, 0.4)[0] == "usimul-exact"


def test_unlabeled_points_alone_judge_nobody():
    with pytest.raises(InputTypeError, match="no unbiased risk is known for this Unlabeled"):
        risk_terms(Unlabeled([0, 1]), 0.4)


def test_a_score_of_zero_is_positive():
    """As in ``predict``: at zero, a positive point is right and a negative one wrong."""
    terms = us.get_method("supervised").terms(Labels([0, 1], values=[1, -1]), 0.5)
    assert estimate_error(terms, {"labeled": np.zeros((2, 1))})[0] == 0.5
    assert estimate_error(terms, {"labeled": np.array([[0.0], [-1e-300]])})[0] == 0.0


# --- spread -------------------------------------------------------------------------------------------------------


@each_case
def test_standard_error_is_the_spread_over_collections(kind, world):
    prior, n, repeats = 0.3, 400, 300
    urn = DiscreteWorld.random(prior, random_state=3)
    by_point = np.where(urn.eta >= 0.4, 1.0, -1.0) * np.linspace(0.5, 1.5, urn.n_points)
    everything = enumerate_world(urn, kind, world).supervision
    rng = np.random.default_rng(0)
    values, errors = [], []
    for _ in range(repeats):
        part = everything.take(rng.integers(everything.n_tuples, size=n), rng.integers(20, size=n))
        value, error = estimate_error(risk_terms(part, prior)[1], score(part, by_point))
        values.append(value)
        errors.append(error)
    spread = np.std(values, ddof=1)
    assert spread > 0
    # A deviation from `repeats` values is itself uncertain by about 1/sqrt(2 repeats) of it.
    assert np.mean(errors) == pytest.approx(spread, rel=4 / np.sqrt(2 * repeats))
    assert np.mean(values) == pytest.approx(true_error(urn, by_point), abs=4 * spread / np.sqrt(repeats))


def test_weights_by_tuple_enter_the_standard_error():
    """By hand: two pairs with c = 0.5 and -0.5, p = 0.4, all scores positive, so that only l- costs."""
    sup = ConfidenceDifference([[0, 1], [2, 3]], values=[0.5, -0.5])
    terms = us.get_method("confdiff-unbiased").terms(sup, 0.4)
    value, error = estimate_error(terms, {"pairs": np.ones((2, 2))})
    by_pair = [0.5 * (0.6 + c) + 0.5 * (0.6 - c) for c in (0.5, -0.5)]
    assert value == pytest.approx(np.mean(by_pair))
    assert error == pytest.approx(0.0, abs=1e-12)
    value, error = estimate_error(terms, {"pairs": np.array([[1.0, -1.0], [1.0, -1.0]])})
    by_pair = [0.5 * (0.6 + c) + 0.5 * (0.4 + c) for c in (0.5, -0.5)]  # l- of the first, l+ of the second
    assert value == pytest.approx(np.mean(by_pair))
    assert error == pytest.approx(np.std(by_pair, ddof=1) / np.sqrt(2))


# --- through the estimator ------------------------------------------------------------------------------------------


@each_case
def test_classifiers_are_judged_by_any_kind(kind, world):
    """One classifier, trained on labels, judged by every kind of answers about the same urn."""
    prior = 0.4
    urn = DiscreteWorld.random(prior, random_state=4)
    sup = enumerate_world(urn, kind, world).supervision
    width = sup.rows.shape[1]
    X = np.tile(np.eye(urn.n_points, dtype=np.float32), (width, 1))  # row r is point r % n_points
    labels = enumerate_world(urn, Labels).supervision
    clf = WeakClassifier("supervised", prior=prior, model="linear", epochs=60, lr=0.1, random_state=0)
    clf.fit(X, replace(labels, n_points=len(X)))
    by_point = clf.decision_function(X[: urn.n_points])
    error = true_error(urn, by_point)
    assert error < 0.5
    ways = ("second-moment", "position-aware") if kind is Triplets else ("second-moment",)
    for way in ways:
        found = clf.weak_risk(X, sup, kind=way)
        assert found.value == pytest.approx(error, abs=1e-10)
        assert found.standard_error >= 0
        assert clf.score(X, sup) == pytest.approx(1 - error, abs=1e-10)
    if kind is Triplets:
        assert found.kind == "position-aware"
    elif kind is Labels:
        assert found.kind == "labels"
    else:
        assert found.kind == f"unbiased, {risk_terms(sup, prior)[0]}"


DATA = make_gaussians(800, 2000, prior=0.3, random_state=0)


@pytest.mark.parametrize("method", us.list_methods(), ids=lambda m: m.name)
def test_every_method_can_choose_its_epoch_without_labels(method):
    sup = draw(
        method.supervision,
        DATA.y_train,
        600,
        n_unlabeled=300,
        posterior=DATA.posterior_train,
        prior=0.3,
        random_state=0,
    )
    options = {"model": "linear", "epochs": 4, "batch_size": 64, "lr": 0.05, "random_state": 0}
    clf = WeakClassifier(method.name, prior=0.3, selection="label-free", **options)
    clf.fit(DATA.X_train, sup)
    risks = np.array(clf.history_["weak_risk"])
    assert risks.shape == (4 * (clf.n_restarts_ + 1),)
    assert np.isfinite(risks).all()
    assert clf.n_epochs_ == np.flatnonzero(risks == risks.min())[-1] + 1
    assert np.isfinite(clf.decision_function(DATA.X_test)).all()
    judged = clf.weak_risk(DATA.X_train, sup)
    assert np.isfinite([judged.value, judged.standard_error]).all()


def test_held_out_pairs_tell_good_epochs_from_bad():
    """A far too high rate, so that the epochs differ; the one that is kept is near the best of them by the labels."""
    sup = draw(ComparedPairs, DATA.y_train, 1500, prior=0.3, random_state=1)
    by_epoch = []

    def watch(net):
        by_epoch.append(np.mean((scores(net, pool_tensor(DATA.X_test, "cpu")) >= 0) != (DATA.y_test > 0)))
        return float(by_epoch[-1])

    options = {"prior": 0.3, "model": "linear", "epochs": 12, "batch_size": 64, "lr": 3.0, "random_state": 0}
    clf = WeakClassifier("pcomp-abs", selection="label-free", **options).fit(DATA.X_train, sup, watch=watch)
    assert max(by_epoch) > min(by_epoch) + 0.02
    kept = 1 - clf.score(DATA.X_test, DATA.y_test)
    assert kept == pytest.approx(by_epoch[clf.n_epochs_ - 1], abs=1e-12)
    assert kept < np.median(by_epoch) + 0.01
