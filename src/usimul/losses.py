"""Margin losses ``phi(y z)`` of a real score z, and the 0-1 loss used to judge.

``m = y z`` is the margin. Each loss is evaluated elementwise, in the dtype of the scores.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from usimul.validation import check_choice

__all__ = ["LOSSES", "Loss", "get_loss", "hinge", "logistic", "sigmoid", "square", "zero_one"]

Loss = Callable[[Tensor, int], Tensor]
"""A function of scores and a label (+1 or -1)."""


def square(scores: Tensor, label: int) -> Tensor:
    """Square loss ``(1 - m)^2``.

    >>> square(torch.tensor([0.0, 2.0]), 1)
    tensor([1., 1.])
    """
    return (1.0 - label * scores).square()


def logistic(scores: Tensor, label: int) -> Tensor:
    """Logistic loss ``log(1 + exp(-m))``."""
    return functional.softplus(-label * scores)


def sigmoid(scores: Tensor, label: int) -> Tensor:
    """Sigmoid loss ``1 / (1 + exp(m))``: bounded, and the two labels sum to one."""
    return torch.sigmoid(-label * scores)


def hinge(scores: Tensor, label: int) -> Tensor:
    """Double hinge loss ``max(-m, max(0, (1 - m) / 2))``: its two labels differ by exactly ``-z``."""
    margin = label * scores
    return torch.maximum(-margin, functional.relu(0.5 * (1.0 - margin)))


def zero_one(scores: Tensor, label: int) -> Tensor:
    """0-1 loss of the rule that predicts +1 if and only if the score is at least 0."""
    wrong = scores < 0 if label > 0 else scores >= 0
    return wrong.to(scores.dtype)


LOSSES: dict[str, Loss] = {"square": square, "logistic": logistic, "sigmoid": sigmoid, "hinge": hinge}


def get_loss(name: str) -> Loss:
    """Return a loss by name.

    >>> get_loss("squared")
    Traceback (most recent call last):
    ...
    usimul.validation.InputError: `loss` must be one of: square, logistic, ... Got 'squared'. Did you mean 'square'?
    """
    return LOSSES[check_choice(name, LOSSES, "loss")]
