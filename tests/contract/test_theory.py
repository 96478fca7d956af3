"""What docs/design and the method docstrings claim about the theory, by enumeration of small worlds.

References are counts over the balls of an urn, plain loops, or closed forms written out here.
"""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

import usimul as us
from usimul.events import EVENTS, companions
from usimul.losses import square
from usimul.methods.joint import EventModel
from usimul.mixture import rows_of, solve
from usimul.risk import evaluate
from usimul.supervision import Triplets
from usimul.testing import DiscreteWorld, batch_of, bias, enumerate_world
from usimul.weak_risk import position_aware_risk, second_moment_risk

OFF_HALF = (0.1, 0.2, 0.3, 0.4, 0.45, 0.6, 0.7, 0.9)
ALL = (*OFF_HALF, 0.5)
WORLDS = ("definition1", "pair_plus_unlabeled")
PRINTED = ("usimul", "usimul-abs", "usimul-relu")
EXACT = 1e-10

at_priors = pytest.mark.parametrize("p", OFF_HALF)
at_all_priors = pytest.mark.parametrize("p", ALL)
in_worlds = pytest.mark.parametrize("world", WORLDS)


def urn_at(p, seed=0):
    return DiscreteWorld.random(p, random_state=seed)


def smooth_urn(p, seed=0):
    """An urn whose points hold both classes, so that every logit is finite."""
    rng = np.random.default_rng(seed)
    n = 20
    labels = np.repeat([1, -1], [round(p * n), n - round(p * n)])
    points = np.where(labels > 0, rng.integers(0, 3, n), rng.integers(1, 4, n))
    first, last = np.flatnonzero(labels > 0)[0], np.flatnonzero(labels < 0)[0]
    points[first], points[last] = 0, 0
    return DiscreteWorld(points, labels, 4)


def triplets(urn, world):
    return enumerate_world(urn, Triplets, world)


def z_of(p):
    return 1 - p * (1 - p)


def weights_of(terms):
    """Sum of the weights of each (source, columns, label)."""
    return {(t.source, t.columns, t.label): t.weight for t in terms}


# --- the true laws (audit 1) ----------------------------------------------------------------------------------------


@at_all_priors
def test_laws_of_definition1(p):
    q, z = 1 - p, z_of(p)
    found = triplets(urn_at(p), "definition1")
    assert found.supervision.n_tuples / 20**3 == pytest.approx(z, abs=EXACT)
    positive = found.labels > 0
    anchor, first, second = positive.mean(axis=0)
    assert anchor == pytest.approx(p**2 * (1 + q) / z, abs=EXACT)
    assert 1 - anchor == pytest.approx(q**2 * (1 + p) / z, abs=EXACT)
    assert (first, second) == pytest.approx((p, p), abs=EXACT)
    assert positive.mean() == pytest.approx(p + p * q * (p - q) / (3 * z), abs=EXACT)
    covariance = np.cov(positive.T, bias=True)
    assert covariance[0, 1] == pytest.approx(p**2 * q**2 / z, abs=EXACT)
    assert covariance[1, 2] == pytest.approx(-(p**2) * q**2 / z, abs=EXACT)
    weights = {"+++": p**3, "++-": p**2 * q, "+-+": p**2 * q, "---": q**3, "--+": p * q**2, "-+-": p * q**2}
    names, counts = np.unique(
        ["".join("+" if y else "-" for y in line) for line in positive.tolist()], return_counts=True
    )
    assert dict(zip(names.tolist(), counts / len(positive), strict=True)) == pytest.approx(
        {name: w / z for name, w in weights.items()}, abs=EXACT
    )
    # The companions follow the unlabeled law point by point, not only in their share of positives.
    for column in (1, 2):
        law = np.bincount(found.points[:, column], minlength=6) / found.supervision.n_tuples
        assert law == pytest.approx(found.world.law, abs=EXACT)


@at_all_priors
def test_laws_of_pair_plus_unlabeled(p):
    q = 1 - p
    s = p**2 + q**2
    found = triplets(urn_at(p), "pair_plus_unlabeled")
    shares = (found.labels > 0).mean(axis=0)
    assert shares[0] == pytest.approx(p**2 / s, abs=EXACT)
    assert shares[1:] == pytest.approx([(p**2 / s + p) / 2] * 2, abs=EXACT)
    assert shares.mean() == pytest.approx((2 * p**2 / s + p) / 3, abs=EXACT)


@at_all_priors
def test_density_of_a_triplet_given_its_points(p):
    urn = urn_at(p, seed=1)
    u = 2 * urn.eta - 1
    law = urn.law
    for world, scale in (("definition1", 4 * z_of(p)), ("pair_plus_unlabeled", 4 * (p**2 + (1 - p) ** 2))):
        found = triplets(urn, world)
        counts = np.zeros((6, 6, 6))
        np.add.at(counts, tuple(found.points.T), 1.0 / found.supervision.n_tuples)
        for x, a, b in product(range(6), repeat=3):
            form = 3 + u[x] * u[a] + u[x] * u[b] - u[a] * u[b]
            if world == "pair_plus_unlabeled":
                form = 2 + u[x] * u[a] + u[x] * u[b]
            assert counts[x, a, b] == pytest.approx(law[x] * law[a] * law[b] * form / scale, abs=EXACT)
    assert 4 * z_of(p) == pytest.approx(3 + (2 * p - 1) ** 2, abs=EXACT)


@at_all_priors
def test_what_disclosed_labels_reveal(p):
    q = 1 - p
    y, first, second = (triplets(urn_at(p), "definition1").labels > 0).T
    assert first[y].mean() == pytest.approx(1 / (1 + q), abs=EXACT)
    assert first[~y].mean() == pytest.approx(p / (1 + p), abs=EXACT)
    assert y[first].mean() == pytest.approx(p / z_of(p), abs=EXACT)
    same = first == second
    assert (y[same] == first[same]).all()
    assert (second[y != first] == y[y != first]).all()


# --- the estimator as printed (audit 1, 2) -------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRINTED)
@in_worlds
@at_priors
def test_printed_estimator_is_biased(name, world, p):
    method = us.get_method(name)
    assert method.unbiased == ()
    assert min(bias(method, urn_at(p, seed), world, random_state=seed) for seed in range(5)) > 0.01


@at_priors
def test_printed_estimator_is_exact_if_lemma_3_is_read_as_a_measure_of_mass_m(p):
    q, z = 1 - p, z_of(p)
    s = p**2 + q**2
    urn = urn_at(p)
    positive_law, negative_law = urn.class_laws
    similar_law = (p**2 * positive_law + q**2 * negative_law) / s
    mass = 2 * s / z
    laws = {"triplets": mass * similar_law, "unlabeled": urn.law}
    rng = np.random.default_rng(0)
    for _ in range(5):
        losses = {1: rng.uniform(size=6), -1: rng.uniform(size=6)}
        terms = us.get_method("usimul").terms(triplets(urn, "definition1").supervision, p)
        printed = sum(t.weight * laws[t.source] @ losses[t.label] for t in terms)
        truth = p * positive_law @ losses[1] + q * negative_law @ losses[-1]
        assert printed == pytest.approx(truth, abs=EXACT)
        assert mass * similar_law.sum() == pytest.approx(mass)
        assert mass > 4 / 3 - 1e-12  # no probability law: its mass would be 1 only at p q = 1/3


@in_worlds
@at_priors
def test_printed_estimator_returns_another_prior_in_the_mass_test(world, p):
    q, z = 1 - p, z_of(p)
    wrong_prior = (z / 2 - q) / (p - q)
    terms = us.get_method("usimul").terms(triplets(urn_at(p), world).supervision, p)
    assert sum(t.weight for t in terms if t.label > 0) == pytest.approx(wrong_prior, abs=EXACT)
    assert sum(t.weight for t in terms if t.label < 0) == pytest.approx(1 - wrong_prior, abs=EXACT)
    assert abs(wrong_prior - p) > 0.05


@pytest.mark.parametrize(
    ("p", "wrong_prior", "weights"),
    [
        (0.2, 0.633, (0.153, 0.047, 0.480, 0.320)),
        (0.4, 1.100, (0.480, -0.080, 0.620, -0.020)),
        (0.6, -0.100, (-0.020, 0.620, -0.080, 0.480)),
    ],
)
def test_printed_weights_of_the_class_laws(p, wrong_prior, weights):
    """Weights of (E+[l+], E+[l-], E-[l+], E-[l-]); the truth is (p, 0, 0, q)."""
    found = triplets(urn_at(p), "definition1")
    share = {"triplets": (found.labels > 0).mean(), "unlabeled": p}
    terms = us.get_method("usimul").terms(found.supervision, p)
    got = [
        sum(t.weight * (share[t.source] if side > 0 else 1 - share[t.source]) for t in terms if t.label == label)
        for side in (1, -1)
        for label in (1, -1)
    ]
    assert got == pytest.approx(weights, abs=6e-4)
    assert sum(t.weight for t in terms if t.label > 0) == pytest.approx(wrong_prior, abs=6e-4)


@in_worlds
@at_priors
def test_printed_estimator_is_least_when_the_minority_class_is_predicted_everywhere(world, p):
    """Square loss: the population risk is a parabola in each score, so one Newton step finds the minimiser."""
    urn = urn_at(p, seed=2)
    found = triplets(urn, world)
    terms = us.get_method("usimul").terms(found.supervision, p)
    scores = torch.zeros(6, dtype=torch.float64, requires_grad=True)
    risk = evaluate(terms, batch_of(found.supervision, scores).scores, square).total
    (slope,) = torch.autograd.grad(risk, scores, create_graph=True)
    (curve,) = torch.autograd.grad(slope.sum(), scores)
    there = torch.from_numpy(urn.law > 0)
    assert (curve[there] > 0).all()
    least = (-slope / curve)[there].detach()
    pooled = np.bincount(found.points.ravel(), minlength=6) / found.points.size
    closed = ((z_of(p) * pooled - urn.law) / (2 * p - 1))[urn.law > 0] / urn.law[urn.law > 0]
    assert least.numpy() == pytest.approx(closed, abs=1e-8)
    minority = -1 if p > 0.5 else 1
    assert (torch.sign(least) == minority).all()


def test_the_total_that_the_paper_corrects_is_negative_at_its_minimum():
    """Separable classes, square loss: no correction of a total can repair that."""
    p = 0.4
    labels = np.repeat([1, -1], [8, 12])
    urn = DiscreteWorld((labels < 0).astype(np.int64), labels, 2)
    found = triplets(urn, "definition1")
    terms = us.get_method("usimul").terms(found.supervision, p)

    def total(first, second):
        scores = torch.tensor([first, second], dtype=torch.float64)
        return float(evaluate(terms, batch_of(found.supervision, scores).scores, square).total)

    pooled = np.bincount(found.points.ravel()) / found.points.size
    least = total(*((z_of(p) * pooled / urn.law - 1) / (2 * p - 1)))
    assert least == pytest.approx(-0.47, abs=0.005)
    assert least <= min(total(*line) for line in np.random.default_rng(0).normal(scale=3, size=(50, 2)))


# --- the corrected estimator (audit 3, 5) ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "k", "unlabeled"), [(0.2, -1.4, (1.6, -0.6)), (0.4, -3.8, (4.2, -3.2)), (0.6, 3.8, (-3.2, 4.2))]
)
def test_weights_of_anchors_and_unlabeled_points(p, k, unlabeled):
    sup = triplets(urn_at(p), "definition1").supervision
    weights = weights_of(us.get_method("usimul-exact").terms(sup, p, lam=0))
    assert weights == pytest.approx(
        {
            ("triplets", (0,), 1): k,
            ("triplets", (0,), -1): -k,
            ("unlabeled", (0,), 1): unlabeled[0],
            ("unlabeled", (0,), -1): unlabeled[1],
        },
        abs=EXACT,
    )


@at_priors
def test_weights_for_every_way_to_pool(p):
    """k = p q/(s - p), with the share s counted in the world and the table of closed forms beside it."""
    q, d, z = 1 - p, 2 * p - 1, z_of(p)
    s = p**2 + q**2
    table = {
        ("definition1", (0,)): z / d,
        ("definition1", (0, 1)): 2 * z / d,
        ("definition1", (0, 1, 2)): 3 * z / d,
        ("pair_plus_unlabeled", (0,)): s / d,
        ("pair_plus_unlabeled", (0, 1, 2)): 3 * s / (2 * d),
    }
    for (world, columns), k in table.items():
        share = (triplets(urn_at(p), world).labels[:, list(columns)] > 0).mean()
        assert k == pytest.approx(p * q / (share - p), rel=1e-9)
        assert solve(rows_of(share, p), p) == pytest.approx(np.array([[k, -k], [p - k, q + k]]), rel=1e-9)


@pytest.mark.parametrize("lam", [0, 0.3, 1, "sizes"])
@pytest.mark.parametrize("name", ["usimul-exact", "usimul-exact-abs", "usimul-exact-relu"])
@at_priors
def test_corrected_estimator_is_unbiased_for_every_lam(name, lam, p):
    method = us.get_method(name)
    assert bias(method, urn_at(p), "definition1", options={"lam": lam}) < EXACT
    if lam in (0, "sizes"):
        assert bias(method, urn_at(p), "pair_plus_unlabeled", options={"lam": lam}) < EXACT


@at_priors
def test_with_lam_one_unlabeled_points_change_nothing(p):
    sup = triplets(urn_at(p), "definition1").supervision
    method = us.get_method("usimul-exact-abs")
    alone = replace(sup, unlabeled=None)
    assert method.terms(sup, p, lam=1) == method.terms(alone, p, lam=1) == method.terms(alone, p, lam="sizes")


def moments(found, difference):
    """Moments of ``d`` counted over the balls and triplets of a world: Var_P, Var of anchors, C and V."""
    d = difference[found.points]
    mean = 0.5 * (d[:, 1] + d[:, 2])
    plain = difference[found.world.points]
    covariance = np.mean(d[:, 0] * mean) - d[:, 0].mean() * mean.mean()
    return plain.var(), d[:, 0].var(), covariance, mean.var()


@at_priors
def test_moments_behind_the_best_lam(p):
    urn = urn_at(p, seed=4)
    difference = np.random.default_rng(0).normal(size=6)
    u, d, z = 2 * urn.eta - 1, 2 * p - 1, z_of(p)
    w = urn.law @ (u * difference) - d * (urn.law @ difference)
    plain, _, covariance, companions_ = moments(triplets(urn, "definition1"), difference)
    assert covariance == pytest.approx(w**2 / (4 * z), abs=EXACT)
    assert companions_ == pytest.approx(plain / 2 - w**2 / (8 * z), abs=EXACT)


@pytest.mark.parametrize("ratio", [0.2, 1.0, 5.0])
@at_priors
def test_best_lam_minimises_the_variance(p, ratio):
    """The dominant part of the estimate is c (d_A - (1 - lam) mean_U d - lam mean of companions)."""
    n, n_u = 100.0, 100.0 * ratio
    difference = np.random.default_rng(1).normal(size=6)
    plain, anchor, covariance, companions_ = moments(triplets(urn_at(p, seed=5), "definition1"), difference)
    best = (plain / n_u + covariance / n) / (plain / n_u + companions_ / n)
    grid = np.linspace(0, 1, 1001)
    variance = anchor / n + (1 - grid) ** 2 * plain / n_u + grid**2 * companions_ / n - 2 * grid * covariance / n
    assert grid[variance.argmin()] == pytest.approx(min(best, 1.0), abs=1e-3)


@pytest.mark.parametrize("p", [0.4, 0.45, 0.6])
def test_best_lam_is_nearly_best_for_the_whole_estimate(p):
    """Without the dominant-part shortcut: h holds l+ and l- with their own weights."""
    rng = np.random.default_rng(2)
    found = triplets(urn_at(p, seed=6), "definition1")
    n = n_u = 50.0
    c, q = z_of(p) / (2 * p - 1), 1 - p
    lp, lm = rng.uniform(size=(2, 6))
    d, h = lp - lm, (p - c) * lp + (q + c) * lm
    plain, _, covariance, companions_ = moments(found, d)
    best = min(1.0, (plain / n_u + covariance / n) / (plain / n_u + companions_ / n))
    anchors, partners = c * d[found.points[:, 0]], h[found.points[:, 1:]].mean(axis=1)
    grid = np.append(np.linspace(0, 1, 201), best)
    variance = np.array(
        [(anchors + lam * partners).var() / n + (1 - lam) ** 2 * h[found.world.points].var() / n_u for lam in grid]
    )
    assert variance[-1] <= 1.1 * variance.min()
    assert variance[-1] <= min(variance[0], variance[200])


@at_priors
def test_optimal_lam_of_the_objective_follows_the_formula(p):
    found = triplets(urn_at(p, seed=7), "definition1")
    sup = replace(found.supervision, unlabeled=np.tile(found.world.points, 100))
    objective = us.get_method("usimul-exact").objective(sup, p, loss="square", options={"lam": "optimal"})
    assert objective.lam == pytest.approx(2 * sup.n_tuples / (2 * sup.n_tuples + 2000))
    scores = np.random.default_rng(3).normal(size=6)
    objective.step(batch_of(sup, torch.from_numpy(scores)))
    objective.end_epoch()
    plain, _, covariance, companions_ = moments(found, (1 - scores) ** 2 - (1 + scores) ** 2)
    n, n_u = sup.n_tuples, 2000
    best = (plain / n_u + covariance / n) / (plain / n_u + companions_ / n)
    assert objective.lam == pytest.approx(min(1.0, best), rel=1e-6)


# --- tuple-level estimators (audit 6, joint.md 1-3) -----------------------------------------------------------------

RULES = {
    "triplet": lambda y: float(y[0] in y[1:]),
    "shuffled-pair": lambda y: 0.5 * (y[0] == y[1]) + 0.5 * (y[0] == y[2]),
    "similar-pair": lambda y: float(y[0] == y[1]),
    "dissimilar-pair": lambda y: float(y[0] != y[1]),
    "compared-pair": lambda y: float(y[0] >= y[1]),
    "one-of-3-companions": lambda y: float(y[0] in y[1:]),
}
every_event = pytest.mark.parametrize("event", [*EVENTS.values(), companions(3)], ids=lambda e: e.name)


def probability(event, h):
    """Probability of the event for members that are positive with ``h[i]``, label tuple by label tuple."""
    return sum(
        RULES[event.name](y) * math.prod(h[i] if y[i] else 1 - h[i] for i in range(event.size))
        for y in product((0, 1), repeat=event.size)
    )


@every_event
def test_second_moment_is_the_mean_over_all_tuples(event):
    h = np.random.default_rng(0).uniform(0.02, 0.98, size=7)
    all_g = [probability(event, line) for line in product(h, repeat=event.size)]
    model = EventModel(event, torch.device("cpu"))
    assert float(model.second_moment(torch.from_numpy(h))) == pytest.approx(np.mean(np.square(all_g)), abs=EXACT)
    mean = float(model.mean_probability(torch.tensor(h.mean(), dtype=torch.float64)))
    assert mean == pytest.approx(np.mean(all_g), abs=1e-7)
    assert event.moments(h) == pytest.approx((np.mean(all_g), np.mean(np.square(all_g))), abs=EXACT)


@every_event
def test_log_probability_of_an_event(event):
    scores = torch.randn(20, event.size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    got = EventModel(event, torch.device("cpu")).log_probability(scores).exp()
    expected = [probability(event, line) for line in (1 / (1 + np.exp(-scores.numpy()))).tolist()]
    assert got.numpy() == pytest.approx(expected, abs=1e-7)


def test_triplet_probability_in_two_closed_forms():
    f = torch.randn(50, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    (h, a, b), (v, va, vb) = torch.sigmoid(f).T, torch.tanh(f / 2).T
    got = EventModel(EVENTS["triplet"], torch.device("cpu")).log_probability(f).exp()
    assert torch.allclose(got, 1 - h * (1 - a) * (1 - b) - (1 - h) * a * b, atol=1e-12)
    assert torch.allclose(got, (3 + v * va + v * vb - va * vb) / 4, atol=1e-12)


@every_event
def test_events_do_not_see_the_names_of_the_classes(event):
    symmetric = event.name != "compared-pair"
    model = EventModel(event, torch.device("cpu"))
    scores = 3 * torch.randn(50, event.size, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    assert torch.allclose(model.log_probability(scores), model.log_probability(-scores), atol=1e-12) == symmetric
    plain = scores.flatten()
    h, flipped = torch.sigmoid(plain), torch.sigmoid(-plain)
    assert torch.isclose(model.second_moment(h), model.second_moment(flipped), atol=1e-12)
    if symmetric:
        assert torch.allclose(model.posterior(scores), 1 - model.posterior(-scores), atol=1e-12)
        assert torch.isclose(model.mean_probability(h.mean()), model.mean_probability(1 - h.mean()), atol=1e-12)


@in_worlds
@pytest.mark.parametrize("p", [0.2, 0.4, 0.5, 0.7])
def test_posterior_is_bayes(world, p):
    """Labels of all triplets with the same points, counted; given the event, members are not independent."""
    urn = smooth_urn(p)
    found = triplets(urn, world)
    event = EVENTS["triplet" if world == "definition1" else "shuffled-pair"]
    keys, place = np.unique(found.points, axis=0, return_inverse=True)
    counted = np.stack(
        [np.bincount(place.ravel(), weights=found.labels[:, i] > 0) / np.bincount(place.ravel()) for i in range(3)],
        axis=1,
    )
    eta = np.clip(urn.eta, 1e-15, 1 - 1e-15)
    logits = torch.from_numpy(np.log(eta / (1 - eta)))[torch.from_numpy(keys)]
    got = EventModel(event, torch.device("cpu")).posterior(logits)
    assert got.numpy() == pytest.approx(counted, abs=1e-9)
    assert event.member_posterior(eta[keys]) == pytest.approx(counted, abs=1e-9)


def objective_value(name, found, p, logits, **options):
    """Population risk of a tuple-level method, with its parts."""
    objective = us.get_method(name).objective(found.supervision, p, options=options)
    trial = torch.nn.Linear(1, 1).double()
    objective.begin(us.methods.base.Run(trial, 100, score=dict, negate=lambda _: None))
    return objective.step(batch_of(found.supervision, torch.from_numpy(logits)))


def true_logits(urn):
    eta = np.clip(urn.eta, 1e-12, 1 - 1e-12)
    return np.log(eta / (1 - eta))


def competitors(truth, seed=0, n=16):
    """Random scores, small and large disturbances of the truth, constants, and the two bad extremes."""
    rng = np.random.default_rng(seed)
    yield from rng.normal(scale=3.0, size=(n, truth.size))
    for scale in (0.01, 0.1, 1.0, 5.0):
        yield from truth + rng.normal(scale=scale, size=(n // 4, truth.size))
    for constant in (-40.0, -1.0, 0.0, 1.0, 40.0):
        yield np.full(truth.size, constant)


@pytest.mark.parametrize("correction", ["none", "abs", "relu"])
@in_worlds
@pytest.mark.parametrize("p", [0.2, 0.4, 0.5, 0.7])
def test_brier_risk_is_least_at_the_truth(correction, world, p):
    for urn in (urn_at(p, seed=8), smooth_urn(p, seed=8)):
        found, truth = triplets(urn, world), true_logits(urn)
        for weight in (0.0, 1.0):
            options = {"correction": correction, "prior_weight": weight}
            best = float(objective_value("joint-plain", found, p, truth, **options).total)
            for other in competitors(truth):
                assert float(objective_value("joint-plain", found, p, other, **options).total) >= best - 1e-8
            swapped = float(objective_value("joint-plain", found, p, -truth, **options).total)
            assert swapped == pytest.approx(best + weight * (2 * p - 1) ** 2, abs=1e-8)


@in_worlds
@pytest.mark.parametrize("p", [0.2, 0.4, 0.7])
def test_parts_of_the_brier_risk(world, p):
    """Z mean_Y[(1-g)^2] is the positive part, and the negative part is E_UUU[g^2 (1 - true g)], so non-negative."""
    urn = smooth_urn(p, seed=9)
    found = triplets(urn, world)
    event = EVENTS["triplet" if world == "definition1" else "shuffled-pair"]
    logits = np.random.default_rng(4).normal(scale=2.0, size=4)
    h = 1 / (1 + np.exp(-logits))
    positive = negative = 0.0
    for x in product(range(4), repeat=3):
        mass = math.prod(urn.law[i] for i in x)
        g, truth = probability(event, [h[i] for i in x]), probability(event, [urn.eta[i] for i in x])
        positive += mass * truth * (1 - g) ** 2
        negative += mass * (1 - truth) * g**2
    parts = objective_value("joint-plain", found, p, logits).parts
    assert float(parts["positive"]) == pytest.approx(positive, abs=1e-7)
    assert float(parts["negative"]) == pytest.approx(negative, abs=1e-7)
    assert float(parts["prior"]) == pytest.approx((urn.law @ h - p) ** 2, abs=1e-9)


@in_worlds
@pytest.mark.parametrize("p", [0.2, 0.4, 0.5, 0.7])
def test_likelihood_is_least_at_the_truth(world, p):
    for urn in (urn_at(p, seed=10), smooth_urn(p, seed=10)):
        found, truth = triplets(urn, world), true_logits(urn)
        for weight in (0.0, 1.0):
            best = float(objective_value("joint-likelihood", found, p, truth, prior_weight=weight).total)
            for other in competitors(truth, seed=1):
                value = float(objective_value("joint-likelihood", found, p, other, prior_weight=weight).total)
                assert value >= best - 1e-7


@in_worlds
@pytest.mark.parametrize("p", [0.2, 0.4, 0.5, 0.7])
def test_a_constant_model_gains_nothing_from_the_likelihood(world, p):
    """g alone would be satisfied by f = +inf; the normaliser is not."""
    urn = smooth_urn(p, seed=11)
    found = triplets(urn, world)
    best = float(objective_value("joint-likelihood", found, p, true_logits(urn)).total)
    for sign, off in ((1, 1 - p), (-1, p)):
        risk = objective_value("joint-likelihood", found, p, np.full(4, 40.0 * sign))
        assert float(risk.parts["likelihood"]) == pytest.approx(0.0, abs=1e-7)
        assert float(risk.total) == pytest.approx(2 * off**2, abs=1e-7)
        assert float(risk.total) > best
    assert best < 0


# --- risk without labels (audit 6h) ---------------------------------------------------------------------------------


def scores_of(found, by_point):
    return by_point[found.points], by_point[found.world.points]


def error_of(urn, by_point):
    return float(np.mean(np.where(by_point[urn.points] >= 0, 1, -1) != urn.labels))


@in_worlds
@at_priors
def test_position_aware_estimate_of_a_whole_world_is_the_error_rate(world, p):
    for seed in range(4):
        urn = urn_at(p, seed)
        by_point = np.random.default_rng(seed).normal(size=6)
        found = triplets(urn, world)
        tuples, plain = scores_of(found, by_point)
        estimate = position_aware_risk(tuples, plain, p, world=world).value
        assert estimate == pytest.approx(error_of(urn, by_point), abs=EXACT)
        if world == "definition1":
            assert position_aware_risk(tuples, None, p).value == pytest.approx(error_of(urn, by_point), abs=EXACT)


@at_all_priors
def test_products_of_differences_inside_a_triplet(p):
    rng = np.random.default_rng(5)
    urn, difference = urn_at(p, seed=12), rng.normal(size=6)
    a, e = urn.law @ difference, urn.law @ ((2 * urn.eta - 1) * difference)
    dd, z, s = 2 * p - 1, z_of(p), p**2 + (1 - p) ** 2
    d = difference[triplets(urn, "definition1").points]
    assert np.mean(d[:, 0] * d[:, 1]) == pytest.approx((3 * a**2 + e**2) / (4 * z), abs=EXACT)
    assert np.mean(d[:, 1] * d[:, 2]) == pytest.approx((3 * a**2 + 2 * dd * a * e - e**2) / (4 * z), abs=EXACT)
    d = difference[triplets(urn, "pair_plus_unlabeled").points]
    products = np.mean(d[:, 0] * (d[:, 1] + d[:, 2]) / 2)
    assert products == pytest.approx((2 * a**2 + dd * a * e + e**2) / (4 * s), abs=EXACT)


@in_worlds
@at_all_priors
def test_second_moment_estimate_of_a_whole_world_is_the_error_rate(world, p):
    """Exactly so for a rule on the right side of the square root, mirrored for one on the other side.

    Mirrored no further than the least error of any rule with as many predicted positives.
    """
    for seed in range(4):
        urn = urn_at(p, seed)
        found = triplets(urn, world)
        for by_point in (urn.eta - 0.5, np.random.default_rng(seed).normal(size=6)):
            tuples, plain = scores_of(found, by_point)
            estimate = second_moment_risk(tuples, plain, p, world=world).value
            error, a = error_of(urn, by_point), -np.sign(by_point[urn.points] + 1e-300).mean()
            linear = 2 * p - 1 if world == "pair_plus_unlabeled" else 0.0
            mirrored = 0.5 + 0.5 * (-(2 * error - 1) - linear * a)
            least = abs(0.5 * (1 - a) - p)
            assert estimate == pytest.approx(max(least, min(error, mirrored)), abs=1e-7)
            if by_point[0] == urn.eta[0] - 0.5:
                assert estimate == pytest.approx(error, abs=1e-7)


def draw(rng, p, n, world):
    """Scores of triplets and of unlabeled points: one Gaussian for each class, at +1 and -1; the rule is x >= 0.2."""

    def score(positive):
        return rng.normal(size=positive.shape) + np.where(positive, 1.0, -1.0) - 0.2

    y = rng.random((3 * n, 3)) < p
    if world == "definition1":
        y = y[(y[:, 0] == y[:, 1]) | (y[:, 0] == y[:, 2])][:n]
    else:
        y = y[y[:, 0] == y[:, 1]][:n]
        swap = rng.random(len(y)) < 0.5
        y[swap] = y[swap][:, [0, 2, 1]]
    assert len(y) == n
    return score(y), score(rng.random(n) < p)


def gaussian_error(p):
    def below(x):
        return 0.5 * (1 + math.erf(x / math.sqrt(2)))

    return p * below(-0.8) + (1 - p) * below(-1.2)


MONTE_CARLO = [
    (estimate, p, world)
    for estimate in (second_moment_risk, position_aware_risk)
    for p in (0.2, 0.4, 0.5)
    for world in WORLDS
    if not (estimate is position_aware_risk and p == 0.5)
]


@pytest.mark.parametrize(("estimate", "p", "world"), MONTE_CARLO)
def test_standard_error_and_coverage(estimate, p, world):
    rng = np.random.default_rng(2024)
    found = [estimate(*draw(rng, p, 2000, world), p, world=world) for _ in range(400)]
    values, errors = np.array([(f.value, f.standard_error) for f in found]).T
    truth, spread = gaussian_error(p), values.std(ddof=1)
    assert abs(values.mean() - truth) < 4 * spread / 20 + 0.002  # the second-moment estimate is consistent only
    assert errors.mean() == pytest.approx(spread, rel=0.15)
    covered = np.mean([low <= truth <= high for low, high in (f.interval() for f in found)])
    assert 0.91 <= covered <= 0.985
