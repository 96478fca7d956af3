"""Losses against scalar formulas, numerical derivatives and the identities that the papers use."""

import math

import pytest
import torch

from usimul.losses import LOSSES, get_loss, hinge, logistic, sigmoid, square, zero_one
from usimul.validation import InputError, InputTypeError

FORMULAS = {
    "square": lambda m: (1 - m) ** 2,
    "logistic": lambda m: math.log1p(math.exp(-m)),
    "sigmoid": lambda m: 1 / (1 + math.exp(m)),
    "hinge": lambda m: max(-m, max(0.0, (1 - m) / 2)),
}
SCORES = [-7.3, -1.7, -0.6, 0.0, 0.2, 0.9, 1.8, 5.5]  # off the corners of the double hinge

by_name = pytest.mark.parametrize("name", FORMULAS)


def test_every_loss_has_a_formula_here():
    assert set(LOSSES) == set(FORMULAS)
    assert {"square": square, "logistic": logistic, "sigmoid": sigmoid, "hinge": hinge} == LOSSES


@by_name
@pytest.mark.parametrize("label", [1, -1])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_values(name, label, dtype, tolerance):
    found = LOSSES[name](torch.tensor([SCORES, SCORES], dtype=dtype), label)
    assert found.dtype == dtype
    assert found.shape == (2, len(SCORES))
    for row in found.tolist():
        assert row == pytest.approx([FORMULAS[name](label * z) for z in SCORES], rel=tolerance, abs=tolerance)


@by_name
@pytest.mark.parametrize("label", [1, -1])
def test_gradients(name, label):
    z = torch.tensor(SCORES, dtype=torch.float64, requires_grad=True)
    LOSSES[name](z, label).sum().backward()
    step = 1e-6
    for value, slope in zip(SCORES, z.grad.tolist(), strict=True):
        above, below = FORMULAS[name](label * (value + step)), FORMULAS[name](label * (value - step))
        assert slope == pytest.approx((above - below) / (2 * step), rel=1e-6, abs=1e-7)


@by_name
@pytest.mark.parametrize("label", [1, -1])
def test_huge_scores_stay_finite(name, label):
    z = torch.tensor([-1e4, 1e4], requires_grad=True)
    loss = LOSSES[name](z, label)
    loss.sum().backward()
    assert torch.isfinite(loss).all()
    assert torch.isfinite(z.grad).all()


def test_sigmoid_labels_sum_to_one():
    z = torch.tensor(SCORES, dtype=torch.float64)
    torch.testing.assert_close(sigmoid(z, 1) + sigmoid(z, -1), torch.ones_like(z))


@pytest.mark.parametrize(("loss", "slope"), [(logistic, 1.0), (hinge, 1.0), (square, 4.0)])
def test_difference_of_labels_is_linear(loss, slope):
    z = torch.tensor(SCORES, dtype=torch.float64)
    torch.testing.assert_close(loss(z, 1) - loss(z, -1), -slope * z)


def test_zero_one():
    z = torch.tensor([-0.1, 0.0, 0.1])
    assert zero_one(z, 1).tolist() == [1.0, 0.0, 0.0]
    assert zero_one(z, -1).tolist() == [0.0, 1.0, 1.0]
    assert zero_one(z.double(), 1).dtype == torch.float64


def test_get_loss():
    assert get_loss("hinge") is hinge
    with pytest.raises(InputError, match=r"`loss` must be one of: square, .* Did you mean 'logistic'"):
        get_loss("logistics")
    with pytest.raises(InputTypeError, match="`loss` must be one of"):
        get_loss(None)
