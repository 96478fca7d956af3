"""Points from two Gaussians, where the posterior and the best accuracy are known."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from usimul.datasets.base import Dataset, FloatArray, IntArray
from usimul.datasets.records import DatasetRecord
from usimul.validation import InputError, check_count, check_fraction, check_real, check_seed

__all__ = ["GAUSSIANS", "gaussian_bayes_accuracy", "make_gaussians"]


def _direction(n_features: int) -> FloatArray:
    return np.full(n_features, 1.0 / math.sqrt(n_features))


def _log_odds(prior: float) -> float:
    return math.log(prior) - math.log1p(-prior)


def _normal_cdf(value: float) -> float:
    return 0.5 * math.erfc(-value / math.sqrt(2.0))


def gaussian_bayes_accuracy(prior: float, distance: float) -> float:
    r"""Return the accuracy of the best classifier of two unit Gaussians.

    With :math:`b = \log(\pi / (1 - \pi))` and means :math:`\Delta` apart it is
    :math:`\pi \Phi(\Delta / 2 + b / \Delta) + (1 - \pi) \Phi(\Delta / 2 - b / \Delta)`.

    Parameters
    ----------
    prior
        Share of positives, in (0, 1).
    distance
        Distance of the two means in standard deviations.

    Examples
    --------
    >>> round(gaussian_bayes_accuracy(0.5, 2.0), 4)
    0.8413
    """
    prior = check_fraction(prior, "prior")
    distance = check_real(distance, "distance", low=0.0, high=math.inf, closed="neither")
    shift = _log_odds(prior) / distance
    return prior * _normal_cdf(distance / 2 + shift) + (1 - prior) * _normal_cdf(distance / 2 - shift)


def make_gaussians(
    n_train: int = 1000,
    n_test: int = 1000,
    prior: float = 0.5,
    *,
    distance: float = 2.0,
    n_features: int = 2,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> Dataset:
    r"""Draw two classes of Gaussian points with unit covariance.

    Labels are independent draws with P(y = +1) = ``prior``; given the label, x is normal with mean
    :math:`\pm (\Delta / 2) u`, where u is the diagonal direction of unit length, so every feature is informative. The
    posterior is :math:`\eta(x) = 1 / (1 + \exp(-\Delta u^\top x - \log(\pi / (1 - \pi))))`.

    Parameters
    ----------
    n_train, n_test
        Sizes of the two parts.
    prior
        P(y = +1), in (0, 1).
    distance
        Distance of the two means in standard deviations.
    n_features
        Number of columns.
    random_state
        Seed or generator.

    Returns
    -------
    Dataset
        With ``posterior_train``, ``posterior_test``, and ``bayes_accuracy`` filled in.

    Examples
    --------
    >>> data = make_gaussians(200, 100, prior=0.4, distance=3.0, random_state=0)
    >>> data.X_train.shape, data.posterior_test.shape
    ((200, 2), (100,))
    >>> round(data.bayes_accuracy, 3)
    0.935
    """
    prior = check_fraction(prior, "prior")
    best = gaussian_bayes_accuracy(prior, distance)
    distance = float(distance)
    u = _direction(check_count(n_features, "n_features"))
    rng = check_seed(random_state)

    def draw(n: int, name: str) -> tuple[NDArray[np.float32], IntArray, FloatArray]:
        y = np.where(rng.random(n) < prior, 1, -1).astype(np.int64)
        if abs(int(y.sum())) == n:
            raise InputError(
                f"All {n} labels drawn with prior {prior:g} are equal. Raise `{name}` or use another seed."
            )
        X = (rng.standard_normal((n, u.size)) + np.outer(y, u) * (distance / 2)).astype(np.float32)
        # From the rounded points, so that the posterior belongs to the very numbers the caller gets.
        score = distance * (X.astype(np.float64) @ u) + _log_odds(prior)
        return X, y, 0.5 * (1.0 + np.tanh(score / 2.0))

    X_train, y_train, posterior_train = draw(check_count(n_train, "n_train", low=2), "n_train")
    X_test, y_test, posterior_test = draw(check_count(n_test, "n_test", low=2), "n_test")
    return Dataset(
        GAUSSIANS.name,
        X_train,
        y_train,
        X_test,
        y_test,
        source=GAUSSIANS.source,
        licence=GAUSSIANS.licence,
        citation=GAUSSIANS.citation,
        classes="+1: Gaussian on the positive diagonal, -1: Gaussian on the negative diagonal",
        posterior_train=posterior_train,
        posterior_test=posterior_test,
        bayes_accuracy=best,
        measured_on=f"{GAUSSIANS.title}, {len(y_train):,} / {len(y_test):,}",
    )


GAUSSIANS = DatasetRecord(
    name="gaussians",
    title="two Gaussians",
    summary="two Gaussians with known posterior (drawn on the spot)",
    source="drawn by usimul.datasets.make_gaussians",
    licence="none needed",
    citation="none needed",
    make=make_gaussians,
    options=("n_train", "n_test", "prior", "distance", "n_features"),
)
