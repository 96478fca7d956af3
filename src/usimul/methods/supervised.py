r"""The reference that sees the labels: the ceiling of every comparison, no weak supervision at all.

One observation is a point with its label. Risk: the mean loss, in the two class parts that the other methods have,

.. math:: R = \tfrac1n \sum_{y_i = +1} \ell_+(f(x_i)) + \tfrac1n \sum_{y_i = -1} \ell_-(f(x_i)).

Examples
--------
>>> from usimul.methods import get_method
>>> get_method("supervised").supervision.__name__
'Labels'
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from usimul.methods.base import Recipe, RiskMethod, register
from usimul.risk import Term
from usimul.supervision import Labels, Supervision


def supervised_terms(supervision: Supervision, prior: float) -> Sequence[Term]:
    """Return indicator weights: each point counts with the loss of its own label."""
    values = torch.tensor(supervision.values)
    return [
        Term("labeled", (0,), +1, (values > 0).to(values.dtype), "positive"),
        Term("labeled", (0,), -1, (values < 0).to(values.dtype), "negative"),
    ]


register(
    RiskMethod(
        "supervised",
        supervised_terms,
        summary="all labels known: the ceiling",
        supervision=Labels,
        formula="mean of l(f(x), y)",
        unbiased=("",),
        needs_prior=False,
        probability=True,
        recipe=Recipe(optimizer="adamw", lr=2e-3, weight_decay=1e-2, schedule="one-cycle"),
    ),
    module=__name__,
)
