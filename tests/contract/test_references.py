"""Loss values of every linear method against plain loops, written from the printed formulas (baselines.md, audit).

Nothing here uses the package's mixture weights, losses or corrections. A method that shows ``terms`` must have a
reference, or `test_every_linear_method_has_a_reference` fails. Traps that other code fell into are tested below.
"""

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
import torch

import usimul as us
from usimul.methods.base import Batch, Run
from usimul.models import build_model, negate_output
from usimul.sampling import sample_compared_pairs
from usimul.supervision import (
    ComparedPairs,
    ConfidenceDifference,
    Labels,
    PairAnswers,
    SimilarityConfidence,
    SimilarPairs,
    TripletAnswers,
    Triplets,
    UnlabeledSets,
)
from usimul.testing import DiscreteWorld, bias, enumerate_world
from usimul.validation import InputError

EXACT = 1e-10
PRIORS = (0.2, 0.4, 0.5, 0.7)
SEEDS = range(12)
N, N_UNLABELED = 12, 16

LOSSES = {
    "square": lambda m: (1 - m) ** 2,
    "logistic": lambda m: math.log(1 + math.exp(-m)),
    "sigmoid": lambda m: 1 / (1 + math.exp(m)),
    "hinge": lambda m: max(-m, max(0.0, (1 - m) / 2)),
}
CORRECTIONS = {"none": lambda r: r, "relu": lambda r: r if r > 0 else 0.0, "abs": lambda r: r if r > 0 else -r}


def mean(values):
    total, count = 0.0, 0
    for value in values:
        total, count = total + value, count + 1
    return total / count


def column(table, i):
    return [line[i] for line in table]


def everything(table):
    return [z for line in table for z in line]


# --- the formulas -------------------------------------------------------------------------------------------------
# Each takes the batch: scores by source, values by source, the supervision, p, the losses l+ and l- of a score, and
# options. It returns a factor and the partial risks, each of which a correction acts on.


@dataclass
class Case:
    z: dict
    values: dict
    sup: object
    p: float
    pos: object
    neg: object
    options: dict

    @property
    def q(self):
        return 1 - self.p

    @property
    def d(self):
        return self.p - self.q

    def l_pos(self, scores):
        return mean(self.pos(z) for z in scores)

    def l_neg(self, scores):
        return mean(self.neg(z) for z in scores)


def su(c):
    s, u = everything(c.z["similar"]), everything(c.z["unlabeled"])
    p_s = c.p**2 + c.q**2
    positive = p_s / c.d * c.l_pos(s) - c.q / c.d * c.l_pos(u)
    return 1.0, [positive, -p_s / c.d * c.l_neg(s) + c.p / c.d * c.l_neg(u)]


def sd(c):
    s, dis = everything(c.z["similar"]), everything(c.z["dissimilar"])
    p_s, p_d = c.p**2 + c.q**2, 2 * c.p * c.q
    positive = (p_s * c.p * c.l_pos(s) - p_d * c.q * c.l_pos(dis)) / c.d
    return 1.0, [positive, (p_d * c.p * c.l_neg(dis) - p_s * c.q * c.l_neg(s)) / c.d]


def du(c):
    dis, u = everything(c.z["dissimilar"]), everything(c.z["unlabeled"])
    p_d = 2 * c.p * c.q
    positive = -p_d / c.d * c.l_pos(dis) + c.p / c.d * c.l_pos(u)
    return 1.0, [positive, p_d / c.d * c.l_neg(dis) - c.q / c.d * c.l_neg(u)]


def uu(c):
    first, second = everything(c.z["first"]), everything(c.z["second"])
    th, th2 = max(c.sup.values), min(c.sup.values)
    gap = th - th2
    positive = ((1 - th2) * c.p * c.l_pos(first) - (1 - th) * c.p * c.l_pos(second)) / gap
    return 1.0, [positive, (th * c.q * c.l_neg(second) - th2 * c.q * c.l_neg(first)) / gap]


def sconf(c):
    lines = list(zip(c.z["pairs"], c.values["pairs"], strict=True))
    positive = mean((s - c.q) * (c.pos(a) + c.pos(b)) / (2 * c.d) for (a, b), s in lines)
    return 1.0, [positive, mean((c.p - s) * (c.neg(a) + c.neg(b)) / (2 * c.d) for (a, b), s in lines)]


def pcomp(c):
    first, second = column(c.z["compared"], 0), column(c.z["compared"], 1)
    return 1.0, [c.l_pos(first) - c.q * c.l_pos(second), c.l_neg(second) - c.p * c.l_neg(first)]


def confdiff(c):
    lines = list(zip(c.z["pairs"], c.values["pairs"], strict=True))
    return 0.5, [
        mean((c.p - v) * c.pos(a) for (a, _), v in lines),
        mean((c.q + v) * c.neg(a) for (a, _), v in lines),
        mean((c.p + v) * c.pos(b) for (_, b), v in lines),
        mean((c.q - v) * c.neg(b) for (_, b), v in lines),
    ]


def pcu(c):
    z_of = 1 - c.p * c.q
    first, second, u = column(c.z["compared"], 0), column(c.z["compared"], 1), everything(c.z["unlabeled"])
    if c.options.get("gamma") is None:
        shares = np.array([c.p / z_of, c.p**2 / z_of, c.p])
        sizes = np.array([c.sup.n_tuples, c.sup.n_tuples, c.sup.n_unlabeled], dtype=float)
        # Least sum of w^2 / n: the least norm of v = w / sqrt(n).
        laws = np.stack([shares, 1 - shares]) * np.sqrt(sizes)
        w_pos, w_neg = (np.sqrt(sizes) * (np.linalg.pinv(laws) @ goal) for goal in ([c.p, 0.0], [0.0, c.q]))
        return 1.0, [
            w_pos[0] * c.l_pos(first) + w_pos[1] * c.l_pos(second) + w_pos[2] * c.l_pos(u),
            w_neg[0] * c.l_neg(first) + w_neg[1] * c.l_neg(second) + w_neg[2] * c.l_neg(u),
        ]
    g = c.options["gamma"]
    base = pcomp(c)[1]
    with_first = [
        z_of / c.p * c.l_pos(first) - c.q / c.p * c.l_pos(u),
        -z_of / c.p * c.l_neg(first) + c.l_neg(u) / c.p,
    ]
    with_second = [
        c.l_pos(u) / c.q - z_of / c.q * c.l_pos(second),
        -c.p / c.q * c.l_neg(u) + z_of / c.q * c.l_neg(second),
    ]
    return 1.0, [(1 - g) * base[i] + g / 2 * (with_first[i] + with_second[i]) for i in range(2)]


def triplet_comparison(c):
    yes, no = c.z["first"], c.z["second"]
    outer = column(yes, 0) + column(yes, 2) + column(no, 0) + column(no, 2)
    a = c.p**2 * (1 + c.q) / (1 - c.p * c.q)
    laws = np.array([[c.p, a, c.q], [c.q, 1 - a, c.p]])
    w_pos, w_neg = (np.linalg.pinv(laws) @ goal for goal in ([c.p, 0.0], [0.0, c.q]))
    sets = (outer, column(yes, 1), column(no, 1))
    return 1.0, [
        sum(w * c.l_pos(points) for w, points in zip(w_pos, sets, strict=True)),
        sum(w * c.l_neg(points) for w, points in zip(w_neg, sets, strict=True)),
    ]


def printed(c):
    us_points, u = everything(c.z["triplets"]), everything(c.z["unlabeled"])
    z_of = 1 - c.p * c.q
    difference = mean(c.pos(z) - c.neg(z) for z in us_points)
    return 1.0, [z_of / (2 * c.d) * difference + mean((-c.q * c.pos(z) + c.p * c.neg(z)) / c.d for z in u)]


def position_aware(c):
    anchors, u = column(c.z["triplets"], 0), everything(c.z["unlabeled"])
    companions = column(c.z["triplets"], 1) + column(c.z["triplets"], 2)
    in_pairs = c.sup.world == "pair_plus_unlabeled"
    k = (c.p**2 + c.q**2 if in_pairs else 1 - c.p * c.q) / c.d
    n, n_u = c.sup.n_tuples, c.sup.n_unlabeled
    lam = c.options.get("lam", "sizes")
    if lam == "sizes":
        lam = 0.0 if in_pairs else 2 * n / (2 * n + n_u)
    plain_pos = (1 - lam) * c.l_pos(u) + lam * c.l_pos(companions)
    plain_neg = (1 - lam) * c.l_neg(u) + lam * c.l_neg(companions)
    positive = k * c.l_pos(anchors) + (c.p - k) * plain_pos
    return 1.0, [positive, -k * c.l_neg(anchors) + (c.q + k) * plain_neg]


def supervised(c):
    lines = list(zip(everything(c.z["labeled"]), c.values["labeled"], strict=True))
    return 1.0, [
        mean(c.pos(z) if y > 0 else 0.0 for z, y in lines),
        mean(c.neg(z) if y < 0 else 0.0 for z, y in lines),
    ]


LAMS = ({}, {"lam": 0.0}, {"lam": 0.3}, {"lam": 1.0})
MIXES = tuple({"correction": g, "gamma": mix} for g in CORRECTIONS for mix in (None, 0.0, 0.4, 1.0))

REFERENCES = {
    "usimul": (printed, "none", ({},)),
    "usimul-abs": (printed, "abs", ({},)),
    "usimul-relu": (printed, "relu", ({},)),
    "usimul-exact": (position_aware, "none", LAMS),
    "usimul-exact-abs": (position_aware, "abs", LAMS),
    "usimul-exact-relu": (position_aware, "relu", LAMS),
    "su": (su, "none", ({},)),
    "su-abs": (su, "abs", ({},)),
    "su-relu": (su, "relu", ({},)),
    "sd": (sd, "none", ({},)),
    "du": (du, "none", ({},)),
    "uu": (uu, "none", ({},)),
    "uu-abs": (uu, "abs", ({},)),
    "uu-relu": (uu, "relu", ({},)),
    "sconf-unbiased": (sconf, "none", ({},)),
    "sconf-abs": (sconf, "abs", ({},)),
    "sconf-nn": (sconf, "relu", ({},)),
    "pcomp-unbiased": (pcomp, "none", ({},)),
    "pcomp-relu": (pcomp, "relu", ({},)),
    "pcomp-abs": (pcomp, "abs", ({},)),
    "pcu": (pcu, None, MIXES),
    "confdiff-unbiased": (confdiff, "none", ({},)),
    "confdiff-relu": (confdiff, "relu", ({},)),
    "confdiff-abs": (confdiff, "abs", ({},)),
    "triplet-comparison": (triplet_comparison, "none", ({},)),
    "supervised": (supervised, "none", ({},)),
}
"""The formula of each method, its correction (None: an option), and settings of its options."""

LINEAR = [m for m in us.list_methods() if hasattr(m, "terms")]
each_linear = pytest.mark.parametrize("method", LINEAR, ids=lambda m: m.name)
each_loss = pytest.mark.parametrize("loss", LOSSES)


def test_every_linear_method_has_a_reference():
    missing, gone = {m.name for m in LINEAR} - set(REFERENCES), set(REFERENCES) - {m.name for m in LINEAR}
    assert not missing, (
        f"write the formula of {sorted(missing)} as a plain loop in this file, and name it in REFERENCES"
    )
    assert not gone, f"REFERENCES names methods that are not registered: {sorted(gone)}"


def reference(method):
    if method.name not in REFERENCES:
        pytest.fail(f"method {method.name!r} has no plain loop here yet; see docs/add-a-method.md")
    return REFERENCES[method.name]


# --- random batches -----------------------------------------------------------------------------------------------


def make_supervision(kind, rng, world=None):
    """Any tuples of the kind, not drawn by its law: the values of a formula need none."""
    rows = np.array([rng.choice(60, size=kind.width, replace=False) for _ in range(N)])
    if kind is UnlabeledSets:
        values = np.repeat([0.85, 0.3], [8, 4])
    elif kind in (PairAnswers, TripletAnswers):
        values = np.repeat([1.0, -1.0], [8, 4])
    elif kind is Labels:
        values = rng.choice([1.0, -1.0], size=N)
    else:
        values = None if kind.value_range is None else rng.uniform(*kind.value_range, size=N)
    return kind(rows, unlabeled=rng.integers(60, size=N_UNLABELED), values=values, n_points=60, world=world)


def make_batch(sup, rng):
    """Half of every source in random order, with random scores; returns the values of the chosen tuples too."""
    scores, index, values = {}, {}, {}
    for name, rows in sup.sources().items():
        index[name] = torch.from_numpy(rng.permutation(len(rows))[: len(rows) // 2])
        scores[name] = torch.from_numpy(rng.normal(scale=2.0, size=(len(rows) // 2, rows.shape[1]))).requires_grad_()
        if sup.values is not None and len(rows) == sup.n_tuples and name != "unlabeled":
            values[name] = sup.values[index[name].numpy()].tolist()
    flat = torch.cat([s.flatten() for s in scores.values()])
    return Batch(flat[:, None].detach(), flat, scores, index), values


def cases(method, options, priors=PRIORS, seeds=SEEDS):
    for seed, p in product(seeds, priors):
        if p == 0.5 and not method.defined_at_half:
            continue
        for world in ("definition1", "pair_plus_unlabeled") if method.supervision is Triplets else (None,):
            if world == "pair_plus_unlabeled" and options.get("lam", 0.0) not in ("sizes", 0.0):
                continue
            rng = np.random.default_rng([seed, round(100 * p)])
            sup = make_supervision(method.supervision, rng, world)
            yield sup, p, *make_batch(sup, rng)


@each_loss
@each_linear
def test_loss_values(method, loss):
    formula, printed_correction, settings = reference(method)
    phi = LOSSES[loss]
    negative_parts = 0
    for options in settings:
        g = CORRECTIONS[printed_correction or options["correction"]]
        for sup, p, batch, values in cases(method, options):
            risk = method.objective(sup, p, loss=loss, options=options).step(batch)
            z = {name: s.tolist() for name, s in batch.scores.items()}
            case = Case(z, values, sup, p, phi, lambda score: phi(-score), options)
            factor, parts = formula(case)
            assert risk.total.dtype == torch.float64
            assert float(risk.total.detach()) == pytest.approx(factor * sum(g(r) for r in parts), abs=EXACT, rel=EXACT)
            found = sorted(float(part.detach()) for part in risk.parts.values())
            assert found == pytest.approx(sorted(factor * r for r in parts), abs=EXACT, rel=EXACT)
            assert bool(risk.negative) == any(r < 0 for r in parts)
            negative_parts += sum(r < 0 for r in parts)
    # The one risk without a negative weight aside, the cases above must reach the corrections.
    assert (negative_parts > 0) == (method.name != "supervised")


@each_loss
@each_linear
def test_gradient_of_a_corrected_part(method, loss):
    """relu drops exactly the negative parts, abs turns exactly them around, all others are untouched."""
    _, printed_correction, settings = reference(method)
    for options in settings:
        correction = printed_correction or options["correction"]
        slope = {"none": 1.0, "relu": 0.0, "abs": -1.0}[correction]
        for sup, p, batch, _ in cases(method, options, priors=(0.4,), seeds=range(6)):
            risk = method.objective(sup, p, loss=loss, options=options).step(batch)
            leaves = list(batch.scores.values())

            def gradient(value, leaves=leaves):
                found = torch.autograd.grad(value, leaves, retain_graph=True, allow_unused=True)
                pairs = zip(found, leaves, strict=True)
                return torch.cat([(torch.zeros_like(z) if g is None else g).flatten() for g, z in pairs])

            expected = sum((slope if float(r.detach()) < 0 else 1.0) * gradient(r) for r in risk.parts.values())
            assert torch.allclose(gradient(risk.total), expected, rtol=0, atol=1e-12)


# --- symmetries, written out (baselines.md, section 15) --------------------------------------------------------------
# The public checks test them through tables of their own; here nothing but the observations is used.


def total(name, sup, p, by_row, loss="logistic"):
    """Risk of all tuples of a supervision, given the score of every row."""
    method = us.get_method(name)
    sources = sup.sources()
    scores = {key: torch.from_numpy(by_row[rows]) for key, rows in sources.items()}
    flat = torch.cat([s.flatten() for s in scores.values()])
    batch = Batch(flat[:, None], flat, scores, {key: torch.arange(len(rows)) for key, rows in sources.items()})
    objective = method.objective(sup, p, loss=loss)
    objective.begin(Run(build_model("linear", 1, seed=0).double(), 10, score=dict, negate=negate_output))
    return float(objective.step(batch).total)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def swapped(sup, **changes):
    return replace(sup, rows=sup.rows[:, ::-1], **changes)


@each_loss
@pytest.mark.parametrize("name", ["confdiff-unbiased", "confdiff-relu", "confdiff-abs"])
def test_confdiff_swapped_points(name, loss, rng):
    sup, z = make_supervision(ConfidenceDifference, rng), rng.normal(scale=2, size=60)
    before = total(name, sup, 0.3, z, loss)
    assert total(name, swapped(sup, values=-sup.values), 0.3, z, loss) == pytest.approx(before, abs=1e-12)
    assert total(name, swapped(sup), 0.3, z, loss) != pytest.approx(before, abs=1e-6)
    # The classes swap names: the difference changes its sign, the points stay in their places.
    assert total(name, replace(sup, values=-sup.values), 0.7, -z, loss) == pytest.approx(before, abs=1e-12)


@each_loss
@pytest.mark.parametrize("name", ["pcomp-unbiased", "pcomp-relu", "pcomp-abs", "pcomp-teacher", "pc-auc", "pcu"])
def test_compared_pairs_when_the_classes_swap_names(name, loss, rng):
    sup, z = make_supervision(ComparedPairs, rng), rng.normal(scale=2, size=60)
    before = total(name, sup, 0.3, z, loss)
    assert total(name, swapped(sup), 0.7, -z, loss) == pytest.approx(before, abs=1e-12)
    assert total(name, sup, 0.7, -z, loss) != pytest.approx(before, abs=1e-6)


@each_loss
@pytest.mark.parametrize("name", ["uu", "uu-abs", "uu-relu"])
def test_sets_when_the_classes_swap_names(name, loss, rng):
    sup, z = make_supervision(UnlabeledSets, rng), rng.normal(scale=2, size=60)
    mirrored = replace(sup, values=1 - sup.values)
    assert mirrored.sources()["first"].tolist() == sup.sources()["second"].tolist()
    assert total(name, mirrored, 0.7, -z, loss) == pytest.approx(total(name, sup, 0.3, z, loss), abs=1e-12)


@each_loss
@pytest.mark.parametrize("name", ["su", "su-abs", "sconf-unbiased", "sconf-abs", "sconf-nn", "sd", "du"])
def test_pairs_without_order(name, loss, rng):
    sup, z = make_supervision(us.get_method(name).supervision, rng), rng.normal(scale=2, size=60)
    before = total(name, sup, 0.3, z, loss)
    assert total(name, swapped(sup), 0.3, z, loss) == pytest.approx(before, abs=1e-12)
    assert total(name, sup, 0.7, -z, loss) == pytest.approx(before, abs=1e-12)


UNDEFINED_AT_HALF = ("su", "sconf-unbiased", "usimul", "usimul-exact", "sd", "du", "triplet-comparison")
DEFINED_AT_HALF = ("pcomp-unbiased", "confdiff-unbiased", "uu", "pcomp-teacher", "pc-auc", "pcu")


@pytest.mark.parametrize("name", UNDEFINED_AT_HALF)
def test_undefined_at_half(name, rng):
    method = us.get_method(name)
    with pytest.raises(InputError, match=r"must .*differ from 0\.5"):
        method.check(make_supervision(method.supervision, rng), 0.5)


@pytest.mark.parametrize("name", DEFINED_AT_HALF)
def test_defined_at_half(name, rng):
    method = us.get_method(name)
    sup = make_supervision(method.supervision, rng)
    method.check(sup, 0.5)
    assert math.isfinite(total(name, sup, 0.5, rng.normal(size=60)))


# --- traps (baselines.md, sections 4, 11, 13) ------------------------------------------------------------------------


def label_urn(p):
    """Ten balls of which each is a point of its own, so that a loss may be given to a class."""
    n_positive = round(10 * p)
    return DiscreteWorld(np.arange(10), np.repeat([1, -1], [n_positive, 10 - n_positive]), 10)


def weights_on_classes(pairs, urn):
    """Weights of (E+[l+], E-[l+], E+[l-], E-[l-]) in the Pcomp risk of a list of pairs, each equally likely."""
    p = urn.prior
    found = []
    for label, sign in product((1, -1), (1, -1)):  # l of `label` costs one on balls of class `sign`, else nothing
        first, second = (mean(float(urn.labels[pair[i]] == sign) for pair in pairs) for i in range(2))
        found.append(first - (1 - p) * second if label > 0 else second - p * first)
    return found


def test_flipped_pairs_are_not_compared_pairs():
    urn = label_urn(0.4)
    y = urn.labels
    drawn = list(product(range(10), repeat=2))
    rejected = [(a, b) for a, b in drawn if y[a] >= y[b]]
    assert weights_on_classes(rejected, urn) == pytest.approx([0.4, 0, 0, 0.6], abs=EXACT)
    flipped = [(a, b) if y[a] >= y[b] else (b, a) for a, b in drawn]
    assert weights_on_classes(flipped, urn) == pytest.approx([0.544, -0.144, -0.096, 0.696], abs=EXACT)
    # The same numbers from the method itself: the risk of a score that costs only one class.
    for pairs, expected in ((rejected, [0.4, 0, 0, 0.6]), (flipped, [0.544, -0.144, -0.096, 0.696])):
        rows = np.array(pairs) + np.array([0, 10])  # a ball may be drawn twice, a row must not
        terms = us.get_method("pcomp-unbiased").terms(ComparedPairs(rows, n_points=20), 0.4)
        found = []
        for label, sign in product((1, -1), (1, -1)):
            hit = (y[np.array(pairs)] == sign).astype(float)
            found.append(sum(t.weight * hit[:, t.columns[0]].mean() for t in terms if t.label == label))
        assert found == pytest.approx(expected, abs=EXACT)


def test_sampler_rejects_pairs_instead_of_flipping_them():
    # Flipping would give (+, -) a share of 2 p q = 0.48, rejecting p q / Z = 0.316.
    y = np.repeat([1, -1], 500)
    labels = y[sample_compared_pairs(y, 20_000, prior=0.4, random_state=0).rows]
    assert np.mean(labels[:, 0] > labels[:, 1]) == pytest.approx(0.24 / 0.76, abs=4 * math.sqrt(0.22 / 20_000))


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_losses_are_means_so_the_batch_size_does_not_scale_them(name, rng):
    method = us.get_method(name)
    world = "definition1" if method.supervision is Triplets else None
    sup, z = make_supervision(method.supervision, rng, world), rng.normal(scale=2, size=60)
    twice = sup.take(np.tile(np.arange(N), 2), np.tile(np.arange(N_UNLABELED), 2))
    assert total(name, twice, 0.3, z) == pytest.approx(total(name, sup, 0.3, z), abs=1e-12)


def test_clipped_differences_are_biased():
    """Negative differences cut to 0, as in a public copy: the risk is then that of nothing in particular."""
    urn = DiscreteWorld.random(0.4, random_state=1)
    method = us.get_method("confdiff-unbiased")
    assert bias(method, urn) < EXACT
    found = enumerate_world(urn, ConfidenceDifference).supervision
    assert (found.values < 0).any()
    losses = np.random.default_rng(0).uniform(0, 2, size=(2, urn.n_points))
    for values, right in ((found.values, True), (np.clip(found.values, 1e-8, 1), False)):
        terms = method.terms(replace(found, values=values), 0.4)
        at = found.rows % urn.n_points
        risk = sum(
            float((t.weight.numpy() * losses[0 if t.label > 0 else 1, at[:, t.columns[0]]]).mean()) for t in terms
        )
        assert (abs(risk - sum(urn.risk(losses))) < EXACT) == right


def test_sizes_of_the_two_sets_are_no_prior():
    """Public code takes n1/(n1 + n2) for the class prior: the weights must not depend on it."""
    few = UnlabeledSets(np.arange(5), values=[0.9] * 4 + [0.1])
    many = UnlabeledSets(np.arange(9), values=[0.9] + [0.1] * 8)
    method = us.get_method("uu")
    assert [t.weight for t in method.terms(few, 0.3)] == [t.weight for t in method.terms(many, 0.3)]
    assert [t.weight for t in method.terms(few, 0.3)] != [t.weight for t in method.terms(few, 0.8)]


def test_corrected_sconf_is_the_corrected_part_alone(rng):
    """Not R/2 + g(R), which a public copy calls the same name."""
    sup = make_supervision(SimilarityConfidence, rng)
    sup, z = replace(sup, values=rng.uniform(0.8, 1.0, size=N)), rng.normal(scale=3, size=60)
    a, b = z[sup.rows].T

    def logistic(margin):
        return np.log1p(np.exp(-margin))

    parts = [
        float(np.mean((sup.values - 0.3) * (logistic(a) + logistic(b)) / 0.8)),
        float(np.mean((0.7 - sup.values) * (logistic(-a) + logistic(-b)) / 0.8)),
    ]
    assert min(parts) < 0
    assert total("sconf-abs", sup, 0.7, z) == pytest.approx(sum(abs(r) for r in parts), abs=EXACT)
    assert total("sconf-nn", sup, 0.7, z) == pytest.approx(sum(max(r, 0) for r in parts), abs=EXACT)


def test_unscaled_confidences_belong_to_another_prior():
    """E[c | x] = p - eta needs eta at the drawn prior; those of prior p0 imply the prior E[e0] instead."""
    rng = np.random.default_rng(3)
    plus, minus = rng.dirichlet(np.ones(6), size=2)
    p, p0 = 0.3, 0.6
    law = p * plus + (1 - p) * minus
    eta = p * plus / law
    e0 = p0 * plus / (p0 * plus + (1 - p0) * minus)
    assert law @ eta == pytest.approx(p, abs=EXACT)
    assert abs(law @ e0 - p) > 0.05
    odds = e0 * (p / p0) / (e0 * (p / p0) + (1 - e0) * ((1 - p) / (1 - p0)))
    assert odds == pytest.approx(eta, abs=EXACT)


def test_similar_pairs_need_no_quarter_in_the_square_loss(rng):
    """The paper's square loss is (1 - m)^2 / 4; ours has no factor, and a risk is linear in its loss."""
    sup, z = make_supervision(SimilarPairs, rng), rng.normal(size=60)
    case = Case(
        {"similar": z[sup.rows].tolist(), "unlabeled": z[sup.unlabeled][:, None].tolist()},
        {},
        sup,
        0.7,
        lambda s: (1 - s) ** 2 / 4,
        lambda s: (1 + s) ** 2 / 4,
        {},
    )
    assert total("su", sup, 0.7, z, "square") == pytest.approx(4 * sum(su(case)[1]), abs=EXACT)
