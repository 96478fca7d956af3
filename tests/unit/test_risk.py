"""Risks against plain loops over tuples and points."""

import numpy as np
import pytest
import torch

from usimul.losses import logistic, square
from usimul.risk import CORRECTIONS, Term, correct, evaluate
from usimul.validation import InputError

SCALAR = {square: lambda m: (1 - m) ** 2, logistic: lambda m: np.log1p(np.exp(-m))}
APPLY = {"none": lambda r: r, "relu": lambda r: max(0.0, r), "abs": abs}


def loops(terms, scores, loss, correction, index=None):
    """Risk and partial risks, one tuple and one point at a time."""
    parts = {}
    for term in terms:
        z = scores[term.source].tolist()
        total = 0.0
        for n, line in enumerate(z):
            if isinstance(term.weight, torch.Tensor):
                place = n if index is None else int(index[term.source][n])
                weight = float(term.weight[place])
            else:
                weight = term.weight
            total += weight * sum(SCALAR[loss](term.label * line[c]) for c in term.columns) / len(term.columns)
        parts[term.part] = parts.get(term.part, 0.0) + total / len(z)
    return sum(APPLY[correction](part) for part in parts.values()), parts


def example():
    gen = torch.Generator().manual_seed(0)
    scores = {
        "triplets": torch.randn(7, 3, generator=gen, dtype=torch.float64),
        "unlabeled": torch.randn(5, 1, generator=gen, dtype=torch.float64),
    }
    values = torch.randn(20, generator=gen, dtype=torch.float64)
    terms = [
        Term("triplets", (0,), +1, -3.8, "positive"),
        Term("triplets", (1, 2), +1, 2.1, "positive"),
        Term("unlabeled", (0,), +1, 2.1, "positive"),
        Term("triplets", (0,), -1, 3.8, "negative"),
        Term("triplets", (0, 1, 2), -1, -9.0, "negative"),
        Term("triplets", (2,), -1, values, "weighted"),
        Term("triplets", (0, 2), +1, values, "weighted"),
    ]
    index = {"triplets": torch.tensor([3, 0, 19, 7, 7, 1, 12]), "unlabeled": torch.arange(5)}
    return terms, scores, index


def close(value, expected):
    return float(value) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("loss", SCALAR)
@pytest.mark.parametrize("correction", APPLY)
def test_equal_to_loops(loss, correction):
    terms, scores, index = example()
    risk = evaluate(terms, scores, loss, correction, index)
    total, parts = loops(terms, scores, loss, correction, index)
    assert close(risk.total, total)
    assert list(risk.parts) == ["positive", "negative", "weighted"]
    for name, part in parts.items():
        assert close(risk.parts[name], part)
    assert close(risk.raw, sum(parts.values()))
    assert bool(risk.negative) == any(part < 0 for part in parts.values())


def test_the_example_has_parts_of_both_signs():
    # Otherwise the corrections above would have nothing to do.
    _, parts = loops(*example()[:2], square, "none", example()[2])
    assert min(parts.values()) < 0 < max(parts.values())


def test_weights_of_tuples_without_index_are_in_order():
    _, scores, _ = example()
    weights = torch.arange(7, dtype=torch.float64)
    terms = [Term("triplets", (1, 0), +1, weights, "only")]
    assert close(evaluate(terms, scores, square).total, loops(terms, scores, square, "none")[0])


def test_index_picks_the_weight_of_the_tuple():
    scores = {"a": torch.zeros(2, 1)}
    terms = [Term("a", (0,), +1, torch.tensor([1.0, 10.0, 100.0]), "only")]
    assert evaluate(terms, scores, square, index={"a": torch.tensor([2, 1])}).total.item() == 55.0
    assert evaluate(terms, scores, square, index={"a": torch.tensor([0, 0])}).total.item() == 1.0


def gradient(correction, weight):
    """Gradient of a risk of two parts: `plus`, always positive, on source a; `other`, of the sign of weight, on b."""
    scores = {k: torch.tensor([[0.3], [-0.4]], dtype=torch.float64, requires_grad=True) for k in ("a", "b")}
    terms = [Term("a", (0,), +1, 2.0, "plus"), Term("b", (0,), -1, weight, "other")]
    evaluate(terms, scores, square, correction).total.backward()
    return scores["a"].grad.ravel().tolist(), scores["b"].grad.ravel().tolist()


@pytest.mark.parametrize("correction", APPLY)
def test_corrections_act_on_each_part_alone(correction):
    # d/dz of the mean of w (1 - y z)^2 over two points is -w y (1 - y z).
    plus = [-2.0 * (1 - z) for z in (0.3, -0.4)]
    other = [1 + z for z in (0.3, -0.4)]
    for weight in (3.0, -3.0):
        factor = {"none": weight, "relu": max(weight, 0.0), "abs": abs(weight)}[correction]
        found_plus, found_other = gradient(correction, weight)
        assert found_plus == pytest.approx(plus)
        assert found_other == pytest.approx([factor * g for g in other])


def test_total_may_be_positive_while_a_part_is_corrected():
    scores = {"a": torch.zeros(1, 1), "b": torch.zeros(1, 1)}
    terms = [Term("a", (0,), +1, 5.0, "x"), Term("b", (0,), +1, -2.0, "y")]
    totals = {name: evaluate(terms, scores, square, name).total.item() for name in CORRECTIONS}
    assert totals == {"none": 3.0, "relu": 5.0, "abs": 7.0}


def test_terms_of_one_part_are_added_before_the_correction():
    scores = {"a": torch.zeros(1, 1)}
    terms = [Term("a", (0,), +1, 5.0, "x"), Term("a", (0,), -1, -2.0, "x")]
    assert {evaluate(terms, scores, square, name).total.item() for name in CORRECTIONS} == {3.0}


def test_raw_and_negative_carry_no_gradient():
    scores = {"a": torch.zeros(1, 1, requires_grad=True)}
    risk = evaluate([Term("a", (0,), +1, -1.0, "x")], scores, square, "abs")
    assert risk.total.requires_grad
    assert not risk.raw.requires_grad
    assert (risk.raw.item(), risk.total.item(), bool(risk.negative)) == (-1.0, 1.0, True)


@pytest.mark.parametrize(("name", "values"), [("none", [-2.0, 0.0, 3.0]), ("relu", [0, 0, 3]), ("abs", [2, 0, 3])])
def test_correct(name, values):
    assert [correct(torch.tensor(r), name).item() for r in (-2.0, 0.0, 3.0)] == values


def test_unknown_correction():
    with pytest.raises(InputError, match=r"`correction` must be one of: none, relu, abs\. Got 'nn'"):
        evaluate([Term("a", (0,), 1, 1.0, "x")], {"a": torch.zeros(1, 1)}, square, "nn")
    with pytest.raises(InputError, match="`correction` must be one of"):
        correct(torch.tensor(1.0), "max")


def test_gradients_are_right():
    terms, scores, index = example()
    leaves = tuple(z.requires_grad_() for z in scores.values())

    def total(*z):
        return evaluate(terms, dict(zip(scores, z, strict=True)), logistic, "abs", index).total

    assert torch.autograd.gradcheck(total, leaves)
