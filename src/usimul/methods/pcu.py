r"""PCU learning, our derivation: compared pairs and unlabeled points together.

One observation is a compared pair (see ``pcomp``); unlabeled points are drawn from P. First points, second points and
unlabeled points have shares of positives :math:`p/Z, p^2/Z, p` with Z = 1 - p q. Any weights w with

.. math:: \sum_i w^+_i (s_i, 1-s_i) = (p, 0), \qquad \sum_i w^-_i (s_i, 1-s_i) = (0, q)

are unbiased, class part by class part. Default: the least :math:`\sum_i w_i^2 / n_i`, which needs no parameter and
tends to Pcomp as unlabeled points vanish. Option ``gamma`` in [0, 1] takes instead
(1 - gamma) Pcomp + gamma/2 [(first, unlabeled) + (unlabeled, second)]. Option ``correction`` = ``abs`` or ``relu``
corrects each part; ``none`` is the default.

Works at every prior.

Examples
--------
>>> from usimul.methods import get_method
>>> from usimul.supervision import ComparedPairs
>>> terms = get_method("pcu").terms(ComparedPairs([[0, 1]], unlabeled=[2, 3]), 0.4, gamma=1.0)
>>> [(t.source, t.columns, t.label, round(t.weight, 3)) for t in terms][:3]
[('compared', (0,), 1, 0.95), ('compared', (1,), 1, -0.633), ('unlabeled', (0,), 1, 0.083)]

Differs from the paper: only "compared pairs plus unlabeled data" is known of it here, no formula; the estimator and its
weights are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from usimul.losses import get_loss
from usimul.methods.base import Method, Objective, Paper, RiskObjective, register
from usimul.mixture import compared_shares, rows_of, solve
from usimul.risk import CORRECTIONS, Term, class_terms
from usimul.supervision import ComparedPairs, Supervision
from usimul.validation import check_choice, check_real


def pcu_weights(prior: float, sizes: tuple[int, int, int], gamma: float | None) -> NDArray[np.float64]:
    """Weights of first points, second points, and unlabeled points."""
    shares = (*compared_shares(prior), prior)
    if gamma is None:
        return solve(rows_of(*shares), prior, precision=sizes)
    weights = np.zeros((3, 2))
    mix = check_real(gamma, "gamma", low=0.0, high=1.0)
    for pair, part in (((0, 1), 1.0 - mix), ((0, 2), 0.5 * mix), ((2, 1), 0.5 * mix)):
        weights[list(pair)] += part * solve(rows_of(*(shares[i] for i in pair)), prior)
    return weights


class PCUMethod(Method):
    """Final: three sources, with a choice of weights."""

    def terms(self, supervision: Supervision, prior: float, gamma: float | None = None) -> Sequence[Term]:
        """Return the risk's terms."""
        sizes = (supervision.n_tuples, supervision.n_tuples, supervision.n_unlabeled)
        weights = pcu_weights(prior, sizes, gamma)
        return class_terms(weights, [("compared", (0,)), ("compared", (1,)), ("unlabeled", (0,))])

    def objective(
        self,
        supervision: Supervision,
        prior: float,
        *,
        loss: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Objective:
        """Return the terms with their correction."""
        chosen = self.resolve_options(options)
        correction = check_choice(chosen["correction"], CORRECTIONS, "correction")
        terms = self.terms(supervision, prior, chosen["gamma"])
        return RiskObjective(terms, get_loss(loss or self.recipe.loss), correction)


register(
    PCUMethod(
        "pcu",
        summary="compared pairs and unlabeled points (our derivation)",
        supervision=ComparedPairs,
        formula="sum over first, second, unlabeled points of w+ mean[l+] + w- mean[l-], least sum w^2/n",
        paper=Paper(
            "Li, Huang, Hua, Yang", "title not known to us; on compared pairs with unlabeled data", "article", 2025
        ),
        unbiased=("",),
        needs_unlabeled=True,
        options={"gamma": None, "correction": "none"},
    ),
    module=__name__,
)
