r"""Class shares of every source of points, and the one solver that turns them into risk weights.

If source i follows ``share_i P+ + (1 - share_i) P-``, then weights :math:`w^+_i, w^-_i` with

.. math:: \sum_i w^+_i (s_i, 1 - s_i) = (p, 0), \qquad \sum_i w^-_i (s_i, 1 - s_i) = (0, q)

make :math:`\sum_i w^+_i E_i[\ell_+] = p E_{P+}[\ell_+]` and :math:`\sum_i w^-_i E_i[\ell_-] = q E_{P-}[\ell_-]`.
Notation: p = prior, q = 1 - p, Z = 1 - p q = P(Y), the probability that a triplet's statement holds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from usimul.validation import InputError, check_prior, check_real

__all__ = [
    "acceptance_probability",
    "anchor_share",
    "compared_shares",
    "mass_test",
    "noisy_share",
    "pair_anchor_share",
    "printed_triplet_row",
    "rows_of",
    "signal_kept",
    "similar_probability",
    "similar_share",
    "solve",
]

FloatArray = NDArray[np.float64]


def acceptance_probability(prior: float) -> float:
    """``Z = P(y = y' or y = y'') = 1 - p q`` for three independent points.

    >>> round(acceptance_probability(0.4), 12)
    0.76
    """
    return 1.0 - prior * (1.0 - prior)


def similar_probability(prior: float) -> float:
    """``pS = P(y = y') = p^2 + q^2`` for two independent points."""
    return prior**2 + (1.0 - prior) ** 2


def similar_share(prior: float) -> float:
    """Share of positives among the points of similar pairs, ``p^2 / pS``."""
    return prior**2 / similar_probability(prior)


def anchor_share(prior: float) -> float:
    """Share of positives among the anchors of definition-1 triplets, ``p (1 - q^2) / Z``.

    The two companions follow the unlabeled law exactly, so their share is ``prior``.

    >>> [round(anchor_share(p), 4) for p in (0.2, 0.4, 0.6)]
    [0.0857, 0.3368, 0.6632]
    """
    return prior * (1.0 - (1.0 - prior) ** 2) / acceptance_probability(prior)


def pair_anchor_share(prior: float) -> float:
    """Share of positives among anchors in the world ``pair_plus_unlabeled``: those of similar pairs."""
    return similar_share(prior)


def compared_shares(prior: float) -> tuple[float, float]:
    """Shares of positives among first and second points of compared pairs, ``p / Z`` and ``p^2 / Z``."""
    accepted = acceptance_probability(prior)
    return prior / accepted, prior**2 / accepted


def signal_kept(wrong_yes: float, probability: float) -> float:
    r"""Weight that is left to the true law when a share r = ``wrong_yes`` of the yes answers is wrong.

    Let the statement hold for a share Z = ``probability`` of all tuples. The tuples kept after a yes then follow
    :math:`(1-r) P(\cdot \mid Y) + r P(\cdot \mid \bar Y)`, and since all tuples follow
    :math:`P = Z P(\cdot \mid Y) + (1-Z) P(\cdot \mid \bar Y)`, this is

    .. math:: \kappa\, P(\cdot \mid Y) + (1-\kappa)\, P, \qquad \kappa = 1 - r / (1 - Z):

    as if a share 1 - kappa of the tuples had been kept without asking. Positions that follow the unlabeled law among
    right answers, such as a triplet's companions, follow it among wrong ones as well. At r = 1 - Z nothing is left.

    >>> round(signal_kept(0.1, acceptance_probability(0.4)), 4)
    0.5833
    """
    if check_real(wrong_yes, "wrong_yes", low=0.0, high=1.0) == 0.0:
        return 1.0
    if wrong_yes >= 1.0 - probability:
        raise InputError(
            f"`wrong_yes` must be less than {1.0 - probability:.4g}, the share of tuples for which the statement does "
            f"not hold anyway: with so many wrong answers a yes carries no information. Got {wrong_yes:g}. "
            "State the right share, or collect better answers."
        )
    return 1.0 - wrong_yes / (1.0 - probability)


def noisy_share(share: float, prior: float, kept: float) -> float:
    """Share of positives of a source with the share ``share``, of which `signal_kept` has left ``kept``.

    >>> round(noisy_share(anchor_share(0.4), 0.4, signal_kept(0.1, acceptance_probability(0.4))), 4)
    0.3632
    """
    return kept * share + (1.0 - kept) * prior


def printed_triplet_row(prior: float) -> tuple[float, float]:
    """Mixing row ``2 (p^2, q^2) / Z`` that Lemma 3 of the paper states for every point of a triplet.

    It is no mixture: its two numbers add up to ``2 (p^2 + q^2) / Z``, 1.37 at prior 0.4. Kept because the printed
    weights of Eq. 9 follow from it.
    """
    scale = 2.0 / acceptance_probability(prior)
    return scale * prior**2, scale * (1.0 - prior) ** 2


def rows_of(*shares: float) -> FloatArray:
    """Mixing rows ``(share, 1 - share)`` of sources with the given shares of positives."""
    positive = np.asarray(shares, dtype=np.float64)
    return np.stack([positive, 1.0 - positive], axis=1)


def solve(rows: ArrayLike, prior: float, *, precision: Sequence[float] | None = None) -> FloatArray:
    """Return risk weights ``(n_sources, 2)``: column 0 multiplies the loss of label +1, column 1 that of label -1.

    Parameters
    ----------
    rows
        Mixing rows, ``(n_sources, 2)``: how much of P+ and of P- each source holds.
    prior
        Share of positives that the risk is about.
    precision
        With more than two sources the weights are not unique. The least ``sum_i w_i^2 / precision_i`` is taken; give
        the sizes of the sources (default: equal).

    Examples
    --------
    Two sources with shares 0.9 and 0.1, and prior 0.5:

    >>> solve(rows_of(0.9, 0.1), 0.5)
    array([[ 0.5625, -0.0625],
           [-0.0625,  0.5625]])
    """
    prior = check_prior(prior)
    mixing = np.asarray(rows, dtype=np.float64)
    trust = np.ones(len(mixing)) if precision is None else np.asarray(precision, dtype=np.float64)
    gram = mixing.T @ (trust[:, None] * mixing)
    # The rows are proportional exactly when the sources do not tell the classes apart.
    if abs(np.linalg.det(gram)) <= 1e-14 * np.prod(np.diag(gram)):
        shares = ", ".join(f"{row[0] / row.sum():.4g}" for row in mixing)
        raise InputError(
            f"sources with shares of positives {shares} do not tell the classes apart at prior {prior:g}: "
            "no weights make the risk unbiased. Use a method that works here, such as 'joint'."
        )
    target = np.diag([prior, 1.0 - prior])
    solution: FloatArray = trust[:, None] * (mixing @ np.linalg.solve(gram, target))
    return solution


def mass_test(weights: ArrayLike, rows: ArrayLike | None = None) -> tuple[float, float]:
    """Risk of the constant losses ``(l+, l-) = (1, 0)`` and ``(0, 1)``: must be ``(p, q)`` for an unbiased risk.

    ``rows`` matters only when the sources are no probability laws; by default every source has mass one.
    """
    values = np.asarray(weights, dtype=np.float64)
    mass = np.ones(len(values)) if rows is None else np.asarray(rows, dtype=np.float64).sum(axis=1)
    positive, negative = mass @ values
    return float(positive), float(negative)
