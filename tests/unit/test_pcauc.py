"""PC-AUC: the ranking risk, its linear relation to AUC, the three thresholds, and how a threshold reaches the model."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import usimul as us
from usimul.datasets import make_gaussians
from usimul.losses import LOSSES
from usimul.methods import get_method, pcauc
from usimul.methods.base import Objective, Orientation, Recipe
from usimul.methods.pcauc import PAIRS, THRESHOLDS, estimate_auc, pcomp_risk, pooled_quantile
from usimul.models import build_model, negate_output, shift_output
from usimul.risk import Risk
from usimul.sampling import sample_compared_pairs
from usimul.supervision import ComparedPairs
from usimul.testing import DiscreteWorld, batch_of, check_method, enumerate_world
from usimul.training import scores, train
from usimul.validation import InputError, InputTypeError

PRIORS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

# Each loss once more, from its formula and with plain numbers.
PHI = {
    "square": lambda m: (1 - m) ** 2,
    "logistic": lambda m: math.log(1 + math.exp(-m)),
    "sigmoid": lambda m: 1 / (1 + math.exp(m)),
    "hinge": lambda m: max(-m, max(0.0, (1 - m) / 2)),
}


def zero_one(m):
    return 0.5 if m == 0 else float(m < 0)


def pairs_of(n):
    return ComparedPairs(np.arange(2 * n).reshape(n, 2), n_points=2 * n)


def risk_of(table, **how):
    by_point = torch.tensor(table, dtype=torch.float64).flatten()
    sup = pairs_of(len(table))
    return get_method("pc-auc").objective(sup, how.pop("prior", 0.4), **how).step(batch_of(sup, by_point))


def test_public_contract():
    check_method(get_method("pc-auc"))


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("loss", LOSSES)
def test_risk_is_the_mean_over_pairs_written_as_loops(loss, pairs):
    rng = np.random.default_rng(0)
    for n in (1, 2, 7):
        table = rng.normal(scale=2.0, size=(n, 2))
        total = 0.0
        for i in range(n):
            for j in range(n) if pairs == "cross" else [i]:
                total += PHI[loss](table[i, 0] - table[j, 1])
        expected = total / (n * n if pairs == "cross" else n)
        risk = risk_of(table, loss=loss, options={"pairs": pairs})
        assert float(risk.total) == pytest.approx(expected, abs=1e-10)
        assert float(risk.raw) == float(risk.total)


def test_unlabeled_points_in_the_batch_play_no_part():
    table = np.array([[0.5, -1.0], [2.0, 0.3]])
    sup = replace(pairs_of(2), unlabeled=np.array([0, 1, 2]))
    step = get_method("pc-auc").objective(sup, 0.4).step(batch_of(sup, torch.tensor(table).flatten()))
    assert float(step.total) == float(risk_of(table).total)


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("loss", LOSSES)
def test_swapping_the_names_of_the_classes_changes_nothing(loss, pairs):
    table = np.random.default_rng(1).normal(size=(6, 2))
    one = risk_of(table, loss=loss, options={"pairs": pairs}, prior=0.3)
    other = risk_of(-table[:, ::-1].copy(), loss=loss, options={"pairs": pairs}, prior=0.7)
    assert float(one.total) == pytest.approx(float(other.total), abs=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_constant_added_to_all_scores_changes_nothing(loss):
    table = np.random.default_rng(2).normal(size=(6, 2))
    assert float(risk_of(table, loss=loss).total) == pytest.approx(float(risk_of(table + 3.7, loss=loss).total))


def expectations(urn, f, phi):
    """Exact E[phi] over all cross pairs and over the pairs themselves, and over P+ x P-, by enumeration."""
    found = enumerate_world(urn, ComparedPairs)
    first, second = found.points.T
    of = np.array([[phi(a - b) for b in f] for a in f])
    law_first, law_second = (np.bincount(side, minlength=urn.n_points) / len(side) for side in (first, second))
    positive, negative = urn.class_laws
    return law_first @ of @ law_second, of[first, second].mean(), positive @ of @ negative


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("phi", [PHI["sigmoid"], zero_one], ids=["sigmoid", "zero-one"])
def test_symmetric_losses_are_linear_in_the_loss_between_the_classes(phi, prior):
    rng = np.random.default_rng(round(100 * prior))
    gamma = prior * (1 - prior) / (1 - prior * (1 - prior))
    for _ in range(3):
        urn = DiscreteWorld.random(prior, random_state=rng)
        f = rng.integers(-2, 3, size=urn.n_points).astype(float)  # ties on purpose
        cross, within, between = expectations(urn, f, phi)
        expected = gamma * between + (1 - gamma) / 2
        assert cross == pytest.approx(expected, abs=1e-10)
        assert within == pytest.approx(expected, abs=1e-10)


def test_other_losses_are_not_linear():
    urn = DiscreteWorld.random(0.4, random_state=0)
    f = np.linspace(-2, 2, urn.n_points)
    gamma = 0.24 / 0.76
    cross, _, between = expectations(urn, f, PHI["square"])
    assert abs(cross - gamma * between - (1 - gamma) / 2 * 2) > 0.1


class TestEstimateAUC:
    @pytest.mark.parametrize("pairs", PAIRS)
    @pytest.mark.parametrize("prior", PRIORS)
    def test_exact_on_the_whole_law(self, prior, pairs):
        urn = DiscreteWorld.random(prior, random_state=1)
        f = np.random.default_rng(3).integers(-2, 3, size=urn.n_points).astype(float)
        found = enumerate_world(urn, ComparedPairs)
        auc = 1 - expectations(urn, f, zero_one)[2]
        assert estimate_auc(f[found.points], prior, pairs=pairs) == pytest.approx(auc, abs=1e-10)

    def test_equals_counting_all_cross_pairs(self):
        table = np.random.default_rng(4).integers(-3, 4, size=(40, 2)).astype(float)
        in_order = np.mean([1 - zero_one(a - b) for a in table[:, 0] for b in table[:, 1]])
        gamma = 0.21 / 0.79
        assert estimate_auc(table, 0.3) == pytest.approx((in_order - (1 - gamma) / 2) / gamma, abs=1e-10)

    def test_constant_scores_have_one_half(self):
        assert estimate_auc(np.zeros((5, 2)), 0.3) == pytest.approx(0.5)
        assert estimate_auc(np.zeros((5, 2)), 0.3, pairs="within") == pytest.approx(0.5)

    def test_wrong_option(self):
        with pytest.raises(InputError, match=r"`pairs` must be one of: cross, within\. Got 'all'"):
            estimate_auc(np.zeros((5, 2)), 0.3, pairs="all")

    def test_large_data_needs_no_square_of_memory(self):
        table = np.random.default_rng(5).normal(size=(300_000, 2)) + np.array([1.0, 0.0])
        assert estimate_auc(table, 0.5) > 0.7


def weak_error(table, prior, t):
    """Pcomp estimate of the error rate of "f >= t is positive", as two plain means."""
    p, q, total = prior, 1 - prior, 0.0
    for x, other in table:
        total += float(x < t) - p * float(x >= t)
        total += float(other >= t) - q * float(other < t)
    return total / len(table)


class TestThresholds:
    @pytest.mark.parametrize("ties", [False, True])
    @pytest.mark.parametrize("prior", [0.1, 0.4, 0.5, 0.8])
    def test_pcomp_risk_equals_a_search_of_all_thresholds(self, prior, ties):
        rng = np.random.default_rng(6)
        for n in (1, 2, 5, 30):
            table = rng.normal(size=(n, 2)) + np.array([1.0, 0.0])
            table = np.round(2 * table) if ties else table
            candidates = [-math.inf, math.inf, *(table.ravel() + 1e-9), *(table.ravel() - 1e-9)]
            least = min(weak_error(table, prior, t) for t in candidates)
            found = pcomp_risk(table, prior)
            assert math.isfinite(found)
            assert weak_error(table, prior, found) == pytest.approx(least, abs=1e-10)

    def test_pcomp_risk_of_everything_positive_and_everything_negative(self):
        table = np.random.default_rng(7).normal(size=(9, 2))
        assert weak_error(table, 0.3, -math.inf) == pytest.approx(0.7)
        assert weak_error(table, 0.3, math.inf) == pytest.approx(0.3)
        # Scores the wrong way round: no threshold between them beats naming the larger class everywhere.
        wrong = np.stack([np.linspace(-2, -1, 9), np.linspace(1, 2, 9)], axis=1)
        assert pcomp_risk(wrong, 0.3) > 2
        assert pcomp_risk(wrong, 0.7) < -2

    @pytest.mark.parametrize("prior", PRIORS)
    def test_pooled_quantile_leaves_the_share_of_positives_above(self, prior):
        urn = DiscreteWorld.random(prior, random_state=2)
        share = (enumerate_world(urn, ComparedPairs).labels > 0).mean()
        table = np.random.default_rng(8).permutation(2000).reshape(1000, 2).astype(float)
        above = np.mean(table >= pooled_quantile(table, prior))
        assert above == pytest.approx(share, abs=1 / 2000 + 1e-12)

    def test_unlabeled_quantile_leaves_the_prior_above(self):
        sup = replace(pairs_of(3), unlabeled=np.arange(6))
        objective = get_method("pc-auc").objective(sup, 0.3, options={"threshold": "unlabeled_quantile"})
        plain = np.random.default_rng(9).permutation(1000).astype(float)[:, None]
        t = objective.threshold({"compared": np.zeros((3, 2)), "unlabeled": plain})
        assert np.mean(plain >= t) == pytest.approx(0.3, abs=1e-3)

    @pytest.mark.parametrize("rule", THRESHOLDS)
    def test_shifted_scores_shift_the_threshold(self, rule):
        sup = replace(pairs_of(3), unlabeled=np.arange(6))
        objective = get_method("pc-auc").objective(sup, 0.3, options={"threshold": rule})
        rng = np.random.default_rng(10)
        found = {"compared": rng.normal(size=(50, 2)), "unlabeled": rng.normal(size=(50, 1))}
        moved = {name: values + 5.0 for name, values in found.items()}
        assert objective.threshold(moved) == pytest.approx(objective.threshold(found) + 5.0)

    @pytest.mark.parametrize("rule", THRESHOLDS)
    def test_empty_and_constant_scores(self, rule):
        sup = replace(pairs_of(3), unlabeled=np.arange(6))
        objective = get_method("pc-auc").objective(sup, 0.3, options={"threshold": rule})
        assert objective.threshold({"compared": np.empty((0, 2)), "unlabeled": np.empty((0, 1))}) == 0.0
        same = {"compared": np.full((4, 2), 2.5), "unlabeled": np.full((4, 1), 2.5)}
        t = objective.threshold(same)
        assert math.isfinite(t)
        if rule == "pcomp_risk":  # the larger class, negative, everywhere
            assert t > 2.5
        else:
            assert t == 2.5


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"pairs": "al"}, InputError, "`pairs` must be one of: cross, within. Got 'al'"),
        ({"threshold": "pooled"}, InputError, "Did you mean 'pooled_quantile'"),
        ({"threshold": 0.5}, InputTypeError, "`threshold` must be one of"),
        ({"treshold": "pooled_quantile"}, InputError, "options of method 'pc-auc'"),
        ({"threshold": "unlabeled_quantile"}, InputError, "needs unlabeled points for threshold='unlabeled_quantile'"),
    ],
)
def test_wrong_options(options, error, message):
    with pytest.raises(error, match=message):
        get_method("pc-auc").objective(pairs_of(2), 0.4, options=options)


def gaussian_pairs(prior, seed=0, n=1500):
    data = make_gaussians(2000, 4000, prior=prior, random_state=seed)
    return data, sample_compared_pairs(data.y_train, n, n_unlabeled=n, prior=prior, random_state=seed)


@pytest.mark.parametrize("prior", [0.2, 0.4, 0.6])
def test_each_rule_comes_near_the_best_accuracy(prior):
    data, sup = gaussian_pairs(prior)
    for rule in THRESHOLDS:
        clf = us.WeakClassifier(
            "pc-auc", prior=prior, model="linear", lr=0.03, epochs=10, options={"threshold": rule}, random_state=0
        ).fit(data.X_train, sup)
        assert clf.score(data.X_test, data.y_test) > data.bayes_accuracy - 0.03, rule
        auc = us.metrics.area_under_curve(data.y_test, clf.decision_function(data.X_test))
        found = clf.decision_function(data.X_train)[sup.rows]
        assert estimate_auc(found, prior) == pytest.approx(auc, abs=0.1)


def test_a_rule_shifts_the_network_and_nothing_else(tmp_path):
    data, sup = gaussian_pairs(0.4, n=300)
    fits = {
        rule: us.WeakClassifier("pc-auc", prior=0.4, epochs=2, options={"threshold": rule}, random_state=0).fit(
            data.X_train, sup
        )
        for rule in THRESHOLDS
    }
    found = [clf.decision_function(data.X_test) for clf in fits.values()]
    for other in found[1:]:
        assert np.ptp(other - found[0]) < 1e-5
    trained = fits["pooled_quantile"]
    share = np.mean(trained.decision_function(data.X_train)[sup.rows] >= 0)
    assert share == pytest.approx((0.4 + 0.16) / (2 * 0.76), abs=2 / 600)
    us.save(trained, tmp_path / "model")
    assert np.array_equal(us.load(tmp_path / "model").decision_function(data.X_test), found[0])


def test_a_watched_figure_sees_the_threshold_of_its_epoch():
    data, sup = gaussian_pairs(0.2, n=300)
    shares = []

    def watch(net):
        shares.append(np.mean(scores(net, torch.from_numpy(data.X_train[sup.rows.ravel()])) >= 0))
        return float(shares[-1])

    us.WeakClassifier("pc-auc", prior=0.2, epochs=3, random_state=0).fit(data.X_train, sup, watch=watch)
    assert shares == pytest.approx([0.24 / (2 * 0.84)] * 3, abs=2 / 600)


# --- how a threshold reaches the network ----------------------------------------------------------------------------


class Plain(Objective):
    """Pulls nowhere: the network stays as it was built."""

    def __init__(self, ranks=True, flipped=False):
        self.only_ranks = ranks
        self.flipped = flipped
        self.asked = []

    def step(self, batch):
        risk = 0.0 * batch.flat.mean()
        return Risk(risk, {"nothing": risk})

    def orient(self, scores):
        return Orientation("evidence", flipped=self.flipped)

    def threshold(self, scores):
        self.asked.append(copy.deepcopy(scores))
        return float(scores["points"].max())


@pytest.mark.parametrize("flipped", [False, True])
def test_the_threshold_is_taken_after_the_orientation(flipped):
    pool = torch.randn(20, 3)
    objective = Plain(flipped=flipped)
    net = build_model("linear", 3, seed=0)
    before = scores(net, pool)
    rows = {"points": np.arange(20)[:, None]}
    fitted = train(lambda _: copy.deepcopy(net), pool, rows, lambda: objective, Recipe(epochs=1), seed=0)
    expected = -before if flipped else before
    assert scores(fitted.model, pool) == pytest.approx(expected - expected.max(), abs=1e-6)
    assert len(objective.asked) == 1


def test_the_epoch_chosen_by_validation_keeps_its_own_threshold():
    pool = torch.randn(20, 3)
    seen = []

    def validate(net):
        seen.append(scores(net, pool))
        return float(len(seen) != 2)  # the second epoch is best

    rows = {"points": np.arange(20)[:, None]}
    recipe = Recipe(epochs=3)
    fitted = train(lambda _: build_model("linear", 3), pool, rows, Plain, recipe, seed=0, validate=validate)
    assert fitted.chosen_epoch == 2
    assert all(found.max() == pytest.approx(0.0, abs=1e-6) for found in seen)
    assert scores(fitted.model, pool) == pytest.approx(seen[1], abs=1e-6)


def test_other_objectives_are_never_asked():
    objective = Plain(ranks=False)
    rows = {"points": np.arange(20)[:, None]}
    build, recipe = lambda _: build_model("linear", 3), Recipe(epochs=1)
    fitted = train(build, torch.randn(20, 3), rows, lambda: objective, recipe, seed=0, watch=lambda net: 0.0)
    assert objective.asked == []
    assert float(fitted.model.offset) == 0.0


def test_shifts_and_flips_compose_in_any_order():
    net = build_model("mlp", 4, seed=0)
    X = torch.randn(8, 4)
    with torch.no_grad():
        before = net(X)
        shift_output(net, 1.5)
        assert torch.allclose(net(X), before - 1.5)
        negate_output(net)
        assert torch.allclose(net(X), 1.5 - before)
        shift_output(net, -0.5)
        assert torch.allclose(net(X), 2.0 - before)
        negate_output(net)
        assert torch.allclose(net(X), before - 2.0)
    assert not net.offset.requires_grad
    with pytest.raises(InputTypeError, match="build_model"):
        shift_output(nn.Linear(2, 1), 1.0)


def test_module_documents_what_is_ours():
    assert "all three thresholds are ours" in " ".join(pcauc.__doc__.split())
