"""Pcomp-Teacher: each part of the risk against plain loops, the teacher's schedule, and stability over seeds."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

import usimul as us
from usimul.datasets import make_gaussians
from usimul.losses import LOSSES
from usimul.methods import get_method
from usimul.methods.base import Batch, Run
from usimul.models import build_model, negate_output
from usimul.sampling import sample_compared_pairs
from usimul.supervision import ComparedPairs
from usimul.testing import check_method
from usimul.validation import InputError, InputTypeError

# Each loss once more, from its formula and with plain numbers.
PHI = {
    "square": lambda m: (1 - m) ** 2,
    "logistic": lambda m: math.log(1 + math.exp(-m)),
    "sigmoid": lambda m: 1 / (1 + math.exp(m)),
    "hinge": lambda m: max(-m, max(0.0, (1 - m) / 2)),
}


def sigma(z):
    return 1 / (1 + math.exp(-z))


def small_net():
    return nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))


def objective_of(prior=0.4, *, model=None, n_steps=10, loss="logistic", **options):
    sup = ComparedPairs([[0, 1]], n_points=2)
    objective = get_method("pcomp-teacher").objective(sup, prior, loss=loss, options=options)
    model = build_model("linear", 2, seed=0).double() if model is None else model
    objective.begin(Run(model, n_steps, score=dict, negate=negate_output))
    return objective


def step_of(objective, table, inputs=None):
    flat = torch.tensor(table, dtype=torch.float64).flatten()
    inputs = torch.zeros(len(flat), 2, dtype=torch.float64) if inputs is None else inputs
    return objective.step(Batch(inputs, flat, {"compared": flat.view(-1, 2)}, {"compared": torch.arange(len(table))}))


def supervised(table, p, phi, selection, weights):
    """Both supervised parts, by loops."""
    q, n = 1 - p, len(table)
    accepted = 1 - p * q
    if selection == "sign":
        first = [x for x, _ in table if x > 0]
        second = [x for _, x in table if x <= 0]
    else:
        first = sorted((x for x, _ in table), reverse=True)[: round(p / accepted * n)]
        second = sorted(x for _, x in table)[: round(q / accepted * n)]
    v_first, v_second = (accepted, accepted) if weights == "exact" else (1 + p, 1 + q)
    positive = negative = 0.0
    for x in first:
        positive += v_first * phi(x) / n
    for x in second:
        negative += v_second * phi(-x) / n
    return positive, negative


def test_public_contract():
    check_method(get_method("pcomp-teacher"))


@pytest.mark.parametrize("loss", LOSSES)
def test_warm_up_is_the_corrected_pcomp_risk(loss):
    rng = np.random.default_rng(0)
    negative_parts = 0
    for p in (0.2, 0.5, 0.8):
        for _ in range(10):
            table = rng.normal(scale=2.0, size=(4, 2))
            positive = negative = 0.0
            for x, other in table:
                positive += (PHI[loss](x) - (1 - p) * PHI[loss](other)) / 4
                negative += (PHI[loss](-other) - p * PHI[loss](-x)) / 4
            risk = step_of(objective_of(p, loss=loss), table)
            assert float(risk.parts["positive"]) == pytest.approx(positive, abs=1e-10)
            assert float(risk.parts["negative"]) == pytest.approx(negative, abs=1e-10)
            assert float(risk.total) == pytest.approx(abs(positive) + abs(negative), abs=1e-10)
            negative_parts += min(positive, negative) < 0
    assert negative_parts > 0


@pytest.mark.parametrize("weights", ["rp", "exact"])
@pytest.mark.parametrize("selection", ["rank", "sign"])
@pytest.mark.parametrize("loss", LOSSES)
def test_supervised_parts(loss, selection, weights):
    rng = np.random.default_rng(1)
    for p in (0.2, 0.4, 0.5, 0.9):
        for n in (1, 3, 16):
            table = rng.normal(scale=2.0, size=(n, 2))
            objective = objective_of(p, loss=loss, warm_up=0.0, selection=selection, weights=weights, lam=0.0)
            risk = step_of(objective, table)
            positive, negative = supervised(table, p, PHI[loss], selection, weights)
            assert float(risk.parts["positive"]) == pytest.approx(positive, abs=1e-10)
            assert float(risk.parts["negative"]) == pytest.approx(negative, abs=1e-10)
            assert float(risk.parts["consistency"]) == 0.0
            assert float(risk.total) == pytest.approx(positive + negative, abs=1e-10)


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.8])
def test_weights_and_shares_come_from_the_law_of_the_pairs(p):
    """With perfect pruning "exact" is the risk, and "rp" twice the risk under the pool's own prior."""
    q = 1 - p
    accepted = 1 - p * q
    joint = {(1, 1): p * p / accepted, (1, -1): p * q / accepted, (-1, -1): q * q / accepted}
    share_first = sum(v for (y, _), v in joint.items() if y > 0)
    share_second = sum(v for (_, y), v in joint.items() if y < 0)
    exact, rp = objective_of(p, weights="exact"), objective_of(p, weights="rp")
    assert exact.shares == pytest.approx((share_first, share_second), abs=1e-12)
    assert exact.weights[0] * share_first == pytest.approx(p, abs=1e-12)
    assert exact.weights[1] * share_second == pytest.approx(q, abs=1e-12)
    pool = (share_first + 1 - share_second) / 2
    assert rp.weights[0] * share_first == pytest.approx(2 * pool, abs=1e-12)
    assert rp.weights[1] * share_second == pytest.approx(2 * (1 - pool), abs=1e-12)


@pytest.mark.parametrize("selection", ["rank", "sign"])
def test_empty_selections_cost_nothing_and_do_not_crash(selection):
    objective = objective_of(0.05, warm_up=0.0, selection=selection, lam=0.0)
    table = torch.tensor([[-1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    parts = objective.supervised(table)
    assert parts["positive"].item() == 0.0
    if selection == "sign":
        assert parts["negative"].item() == 0.0
    sum(parts.values()).backward()
    assert torch.isfinite(table.grad).all()


def test_constant_scores_do_not_crash():
    for selection in ("rank", "sign"):
        objective = objective_of(0.4, warm_up=0.0, selection=selection)
        assert torch.isfinite(step_of(objective, np.zeros((8, 2))).total)


@pytest.mark.parametrize("ramp", ["none", "exponential"])
def test_consistency(ramp):
    rng = np.random.default_rng(2)
    objective = objective_of(0.4, warm_up=0.0, ramp=ramp, lam=3.0, n_steps=7)
    weight = objective.run.model.body.weight.detach().numpy().ravel()
    bias = float(objective.run.model.body.bias.detach())
    for t in range(4):
        table, inputs = rng.normal(size=(5, 2)), rng.normal(size=(10, 2))
        share = 1.0 if ramp == "none" else math.exp(-5 * (1 - t / 7) ** 2)
        total = 0.0
        for i in range(10):  # the teacher is still the first student
            total += (sigma(table.ravel()[i]) - sigma(inputs[i] @ weight + bias)) ** 2
        risk = step_of(objective, table, torch.from_numpy(inputs))
        assert float(risk.parts["consistency"]) == pytest.approx(3.0 * share * total / 10, abs=1e-10)
        positive, negative = supervised(table, 0.4, PHI["logistic"], "rank", "rp")
        assert float(risk.total) == pytest.approx(positive + negative + 3.0 * share * total / 10, abs=1e-10)
        objective.after_step()


def test_only_the_student_gets_a_gradient():
    objective = objective_of(0.4, warm_up=0.0, model=build_model("mlp", 2, seed=0).double())
    model = objective.run.model
    for p in model.parameters():
        p.data.mul_(1.1)
    inputs = torch.randn(12, 2, dtype=torch.float64)
    flat = model(inputs)
    objective.step(Batch(inputs, flat, {"compared": flat.view(6, 2)}, {})).total.backward()
    assert all(p.grad is not None for p in model.parameters())
    assert all(p.grad is None and not p.requires_grad for p in objective.teacher.parameters())
    assert objective.output() is model


@pytest.mark.parametrize("unlabeled_first", [False, True])
def test_the_teacher_looks_at_the_inputs_of_the_pairs(unlabeled_first):
    objective = objective_of(0.4, warm_up=0.0)
    table, inputs = np.arange(6.0).reshape(3, 2), torch.randn(6, 2, dtype=torch.float64)
    alone = step_of(objective, table, inputs)
    scores = {"compared": torch.tensor(table), "unlabeled": torch.ones(4, 1, dtype=torch.float64)}
    points = {"compared": inputs, "unlabeled": torch.full((4, 2), 9.0, dtype=torch.float64)}
    order = sorted(scores, reverse=unlabeled_first)
    flat = torch.cat([scores[name].flatten() for name in order])
    batch = Batch(torch.cat([points[name] for name in order]), flat, {name: scores[name] for name in order}, {})
    assert float(objective.step(batch).total) == float(alone.total)


def test_the_teacher_is_the_running_average_of_the_weights():
    objective = objective_of(0.4, alpha=0.7)
    parameter = objective.run.model.body.weight
    expected = parameter.detach().clone()
    for t in range(1, 8):
        with torch.no_grad():
            parameter.add_(torch.randn_like(parameter))
        a = min(1 - 1 / (t + 1), 0.7)
        expected = a * expected + (1 - a) * parameter.detach()
        objective.after_step()
        assert torch.allclose(objective.teacher.body.weight, expected, atol=1e-12)


def test_normalisation_buffers_are_copied_and_the_teacher_stays_in_evaluation_mode():
    model = build_model("mlp-bn", 2, seed=0)
    objective = objective_of(0.4, model=model)
    model.train()
    model(torch.randn(32, 2) + 5.0)
    objective.after_step()
    for held, current in zip(objective.teacher.buffers(), model.buffers(), strict=True):
        assert torch.equal(held, current)
    assert model.training
    assert not any(module.training for module in objective.teacher.modules())


@pytest.mark.parametrize(("warm_up", "n_warm"), [(0.0, 0), (0.15, 3), (0.5, 10), (1.0, 20)])
def test_warm_up_takes_its_share_of_the_steps(warm_up, n_warm):
    objective = objective_of(0.4, warm_up=warm_up, n_steps=20)
    stages = []
    for _ in range(20):
        stages.append("consistency" not in step_of(objective, np.ones((4, 2))).parts)
        objective.after_step()
    assert stages == [True] * n_warm + [False] * (20 - n_warm)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"selection": "ranks"}, InputError, "`selection` must be one of: rank, sign. Got 'ranks'. Did you mean"),
        ({"weights": "pr"}, InputError, "`weights` must be one of: rp, exact"),
        ({"ramp": "linear"}, InputError, "`ramp` must be one of: none, exponential"),
        ({"warm_up": 3}, InputError, r"`warm_up` must lie in \[0, 1\]"),
        ({"alpha": 1.0}, InputError, r"`alpha` must lie in \[0, 1\)"),
        ({"lam": -1.0}, InputError, "`lam` must lie in"),
        ({"lam": "10"}, InputTypeError, "`lam` must be a number"),
        ({"warmup": 0.1}, InputError, "Did you mean 'warm_up'"),
    ],
)
def test_wrong_options(options, error, message):
    with pytest.raises(error, match=message):
        get_method("pcomp-teacher").objective(ComparedPairs([[0, 1]]), 0.4, options=options)


def fit(prior, seed, **options):
    data = make_gaussians(2000, 4000, prior=prior, random_state=seed)
    sup = sample_compared_pairs(data.y_train, 1500, prior=prior, random_state=seed)
    clf = us.WeakClassifier(
        "pcomp-teacher", prior=prior, model=small_net, lr=1e-2, epochs=60, options=options, random_state=seed
    ).fit(data.X_train, sup)
    return clf.score(data.X_test, data.y_test) - data.bayes_accuracy


@pytest.mark.parametrize("prior", [0.2, 0.4, 0.6])
def test_stable_over_ten_seeds(prior):
    gaps = [fit(prior, seed) for seed in range(10)]
    assert np.mean(gaps) > -0.01
    assert min(gaps) > -0.025
    assert np.ptp(gaps) < 0.035  # of which the 4000 test points alone explain 0.02


def test_the_warm_up_is_what_makes_sign_selection_stable():
    cold = [fit(0.4, seed, selection="sign", warm_up=0.0) for seed in range(4)]
    warm = [fit(0.4, seed, selection="sign") for seed in range(4)]
    assert min(warm) > -0.03
    assert min(cold) < -0.1  # what the documentation warns of


def test_same_seed_same_bits():
    data = make_gaussians(200, 10, prior=0.4, random_state=0)
    sup = sample_compared_pairs(data.y_train, 200, prior=0.4, random_state=0)
    make = us.WeakClassifier("pcomp-teacher", prior=0.4, model="mlp-dropout", epochs=5, random_state=0)
    first, second = (copy.deepcopy(make).fit(data.X_train, sup).decision_function(data.X_test) for _ in range(2))
    assert np.array_equal(first, second)
