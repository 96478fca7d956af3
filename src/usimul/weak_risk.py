r"""Error rate estimated without labels, with a standard error: from scores on triplets and unlabeled points alone.

Notation: p = prior, q = 1 - p, D = p - q, Z = 1 - p q, pS = p^2 + q^2, d = l+ - l- with the 0-1 loss (so d is minus the
predicted label), A = E[d], e = E[u d] with u = 2 P(y = +1 | x) - 1. Then the error rate is ``1/2 + e/2``.

With a share r of wrong yes answers (``wrong_yes``), the triplets are a mixture: a share kappa = 1 - r/(1 - P(Y)) as if
all answers were right, the rest triples of independent points (`usimul.mixture.signal_kept`). So the mean of a product
of predictions is kappa times what it is without noise, plus (1 - kappa) A^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from usimul.mixture import acceptance_probability, signal_kept, similar_probability
from usimul.validation import InputError, check_choice, check_prior

__all__ = ["WEAK_RISKS", "WeakRisk", "labeled_risk", "position_aware_risk", "second_moment_risk", "triplet_risk"]

FloatArray = NDArray[np.float64]

WEAK_RISKS = ("second-moment", "position-aware")


@dataclass(frozen=True)
class WeakRisk:
    """An estimated error rate and its standard error.

    It holds for points like those of the tuples. Tuples of points that were trained on, also if the tuples were not,
    make it too low where the network memorises points; to judge, ask for tuples over new points.
    """

    value: float
    standard_error: float
    kind: str

    def interval(self, z: float = 1.96) -> tuple[float, float]:
        """Return the normal interval around the estimate, cut to [0, 1]; all of [0, 1] if it lies wholly outside.

        An error rate cannot lie there, so such an estimate is itself evidence that the normal interval does not hold,
        and nothing is known.

        >>> WeakRisk(0.02, 0.02, "position-aware").interval()
        (0.0, 0.0592)
        >>> WeakRisk(-71.8, 35.9, "position-aware").interval()
        (0.0, 1.0)
        """
        low, high = (self.value + side * z * self.standard_error for side in (-1.0, 1.0))
        if high < 0.0 or low > 1.0:
            return 0.0, 1.0
        return min(1.0, max(0.0, low)), min(1.0, max(0.0, high))

    def __str__(self) -> str:
        return f"{self.value:.4f} +- {self.standard_error:.4f} ({self.kind})"


def _difference(scores: ArrayLike) -> FloatArray:
    """``d = l+ - l-`` with the 0-1 loss: -1 where +1 is predicted, +1 elsewhere."""
    values = np.asarray(scores, dtype=np.float64)
    if np.isnan(values).any():
        raise InputError(f"scores must be numbers. Got {np.isnan(values).sum()} NaN among {values.size} scores.")
    return np.where(values >= 0, -1.0, 1.0)


def _check(triplets: ArrayLike, unlabeled: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    d = _difference(triplets)
    if d.ndim != 2 or d.shape[1] != 3 or len(d) < 2:
        raise InputError(f"scores of triplets must have shape (n, 3) with n >= 2. Got {d.shape}.")
    return d, np.empty(0) if unlabeled is None else _difference(unlabeled).ravel()


def _variance(values: FloatArray) -> float:
    return float(values.var(ddof=1)) / values.size if values.size > 1 else 0.0


def _feasible(mean: float, prior: float) -> tuple[float, float]:
    """Range of ``e = E[u d]`` over all classifiers with ``E[d] = mean``, that is a share (1 - mean)/2 of positives.

    Its error is at least the distance of that share from p, and at most one minus its distance from q.
    """
    share = 0.5 * (1.0 - mean)
    return 2.0 * abs(share - prior) - 1.0, 1.0 - 2.0 * abs(share - (1.0 - prior))


def second_moment_risk(
    triplets: ArrayLike,
    unlabeled: ArrayLike | None,
    prior: float,
    *,
    world: str = "definition1",
    wrong_yes: float = 0.0,
) -> WeakRisk:
    r"""Estimate the error rate from products of predictions inside triplets; no division by ``2 p - 1``.

    In the world ``definition1``, :math:`E_Y[d d'] = (3 A^2 + e^2) / (4 Z)`, so
    :math:`e = -\sqrt{\max(0, 4 Z\, \mathrm{mean}[d (d' + d'')/2] - 3 A^2)}`, A averaged over companions and unlabeled
    points. In ``pair_plus_unlabeled``, :math:`E[d (d' + d'')/2] = (2 A^2 + D A e + e^2)/(4 p_S)`, A over unlabeled
    points. With wrong answers Z becomes :math:`Z/\kappa`, and 3 becomes :math:`3 + 4 Z (1-\kappa)/\kappa`; in
    ``pair_plus_unlabeled`` pS and 2 change likewise.
    The square root takes the side "better than chance": a classifier with swapped names looks as good as the right one.
    What no classifier with this share of predicted positives can reach is cut off, so that a constant prediction of the
    minority class is not taken for one of the majority class. Where the products say nothing, the middle between the
    two sides is returned, cut likewise, with the standard error 1/2.

    Parameters
    ----------
    triplets
        Scores of triplets, ``(n, 3)``, anchor first.
    unlabeled
        Scores of unlabeled points, or None.
    prior
        Share of positives.
    world
        How the triplets were sampled.
    wrong_yes
        Share of the triplets for which the statement does not hold.
    """
    p = check_prior(prior)
    d, d_u = _check(triplets, unlabeled)
    product = d[:, 0] * 0.5 * (d[:, 1] + d[:, 2])
    if world == "definition1":
        companions = 0.5 * (d[:, 1] + d[:, 2])
        share = 2 * len(d) / (2 * len(d) + d_u.size)
        mean = share * companions.mean() + (1.0 - share) * (d_u.mean() if d_u.size else 0.0)
        holds, linear, constant = acceptance_probability(p), 0.0, 3.0
    elif world == "pair_plus_unlabeled":
        if not d_u.size:
            raise InputError("the label-free risk in world 'pair_plus_unlabeled' needs unlabeled points. Got none.")
        companions, share, mean = np.zeros(len(d)), 0.0, float(d_u.mean())
        holds, linear, constant = similar_probability(p), 2.0 * p - 1.0, 2.0
    else:
        raise InputError(
            f"no label-free risk exists for triplets of world {world!r}: no statement about labels is behind them. "
            "Sample with world='definition1' or 'pair_plus_unlabeled'."
        )
    kept = signal_kept(wrong_yes, holds)
    scale = 4.0 * holds / kept
    constant += (1.0 - kept) * scale
    # e solves e^2 + linear * A * e + constant * A^2 - scale * mean[product] = 0, on the side better than chance.
    root = math.sqrt(max(0.0, (linear * mean) ** 2 - 4.0 * (constant * mean**2 - scale * float(product.mean()))))
    e = float(np.clip(-0.5 * (linear * mean + root), *_feasible(mean, p)))
    if root < 1e-9:
        return WeakRisk(0.5 + 0.5 * e, 0.5, "second-moment")
    # Delta method: (2 e + linear A) de = scale dT - (linear e + 2 constant A) dA, and 2 e + linear A = -root.
    slope = linear * e + 2.0 * constant * mean
    variance = _variance(scale * product - slope * share * companions) + (slope * (1.0 - share)) ** 2 * _variance(d_u)
    return WeakRisk(0.5 + 0.5 * e, min(0.5, 0.5 * math.sqrt(variance) / root), "second-moment")


def position_aware_risk(
    triplets: ArrayLike,
    unlabeled: ArrayLike | None,
    prior: float,
    *,
    world: str = "definition1",
    wrong_yes: float = 0.0,
) -> WeakRisk:
    r"""Unbiased estimate of the error rate; noisy near prior 1/2, undefined there, and outside [0, 1] by chance.

    :math:`c E_A[d] + (1-\lambda) E_U[h] + \lambda E_{x', x''}[h]` with :math:`h = (p-c) \ell_+ + (q+c) \ell_-` and
    c = Z/D, lambda the companions' share of points (``definition1``); c = pS/D, lambda = 0 (``pair_plus_unlabeled``).
    With a share ``wrong_yes`` of wrong answers c is divided by kappa.
    """
    p = check_prior(
        prior,
        method="position-aware risk",
        defined_at_half=False,
        remedy="Use kind='second-moment', which works there.",
    )
    d, d_u = _check(triplets, unlabeled)
    if world == "definition1":
        holds, share = acceptance_probability(p), 2 * len(d) / (2 * len(d) + d_u.size)
    elif world == "pair_plus_unlabeled" and d_u.size:
        holds, share = similar_probability(p), 0.0
    else:
        need = "unlabeled points" if world == "pair_plus_unlabeled" else "world 'definition1' or 'pair_plus_unlabeled'"
        raise InputError(f"the position-aware risk needs {need}. Got world {world!r} and {d_u.size} unlabeled points.")
    c = holds / (signal_kept(wrong_yes, holds) * (2 * p - 1))
    # With the 0-1 loss l+ = (1 + d)/2 and l- = (1 - d)/2, so h = 1/2 + (p - q - 2 c) d / 2.
    half = 0.5 * (2 * p - 1 - 2 * c)
    by_triplet = c * d[:, 0] + share * (0.5 + half * 0.5 * (d[:, 1] + d[:, 2]))
    by_point = (1.0 - share) * (0.5 + half * d_u)
    value = float(by_triplet.mean()) + (float(by_point.mean()) if d_u.size else 0.0)
    return WeakRisk(value, math.sqrt(_variance(by_triplet) + _variance(by_point)), "position-aware")


def triplet_risk(
    triplets: ArrayLike,
    unlabeled: ArrayLike | None,
    prior: float,
    *,
    world: str = "definition1",
    kind: str,
    wrong_yes: float = 0.0,
) -> WeakRisk:
    """Estimate the error rate by the ``kind`` named: ``second-moment`` or ``position-aware``."""
    check_choice(kind, WEAK_RISKS, "kind")
    estimate = second_moment_risk if kind == "second-moment" else position_aware_risk
    return estimate(triplets, unlabeled, prior, world=world, wrong_yes=wrong_yes)


def labeled_risk(scores: ArrayLike, labels: ArrayLike) -> WeakRisk:
    """Error rate on labeled points, for the supervised reference."""
    wrong = np.asarray(_difference(scores).ravel() * np.asarray(labels) > 0, dtype=np.float64)
    return WeakRisk(float(wrong.mean()), math.sqrt(_variance(wrong)), "labels")
