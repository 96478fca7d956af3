r"""Posteriors :math:`\eta(x) = P(y = +1 | x)` for methods that learn from confidences, where no annotator gave any.

Three ways, from best to worst: the exact posterior of synthetic data (``posterior_train`` of
`usimul.datasets.make_gaussians`); an auxiliary classifier trained on labels, `fit_posterior`; either of them with added
noise, `add_noise`, to see how a method bears wrong confidences.

The auxiliary classifier sees the labels, so whatever is learned from its confidences is not learned without labels.

Examples
--------
>>> from usimul.datasets import make_gaussians
>>> data = make_gaussians(500, 10, prior=0.3, random_state=0)
>>> eta = fit_posterior(data.X_train, data.y_train, model="linear", random_state=0)
>>> bool(np.abs(eta - data.posterior_train).mean() < 0.1)
True
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_array
from torch import nn

from usimul.batching import Pool, as_pool
from usimul.mapped import is_mapped
from usimul.methods import get_method
from usimul.methods.base import Recipe
from usimul.models import ModelSpec, build_model
from usimul.supervision import Labels
from usimul.training import scores, train
from usimul.validation import (
    InputError,
    IntArray,
    check_count,
    check_fraction,
    check_labels,
    check_real,
    check_seed,
)

__all__ = ["FOLDS", "add_noise", "fit_posterior", "rescale"]

FloatArray = NDArray[np.float64]
RandomState = int | np.random.Generator | np.random.RandomState | None

FOLDS = 5
RECIPE = Recipe(epochs=10, batch_size=256, optimizer="adam", lr=1e-3, weight_decay=1e-5)  # the ConfDiff release
LINEAR_LR = 3e-2  # one layer moves by little more than the rate in each step, and has far to go
STEPS_PER_EPOCH = 32  # at least, by smaller batches: ten epochs of few large ones would not learn a small data set


def fit_posterior(
    X: ArrayLike | Pool,
    y: ArrayLike,
    *,
    prior: float | None = None,
    model: ModelSpec = "mlp",
    epochs: int = 10,
    noise: float = 0.0,
    cross_fit: bool = False,
    image_shape: tuple[int, int, int] | None = None,
    random_state: RandomState = None,
    device: str = "cpu",
) -> FloatArray:
    r"""Train an auxiliary classifier on labels, by the logistic loss, and return its posterior of every point.

    Parameters
    ----------
    X
        The pool of points, ``(n_points, n_features)``; a mapped file is never copied whole.
    y
        Labels, +1 and -1.
    prior
        Share of positives that confidences are to belong to. Pass it when pairs will be drawn with a prior that
        differs from the share in ``y``; otherwise the methods' identities are off. None keeps the share in ``y``.
    model
        Network, as in `usimul.models.build_model`.
    epochs
        Passes over the points.
    noise
        Scale of the normal noise that is added at the end; see `add_noise`.
    cross_fit
        Whether the posterior of each point comes from a classifier that did not see its label, by five folds. The
        published experiments score the very points that the classifier was trained on, which False repeats; such
        posteriors are too sure of themselves where the network fits the labels.
    image_shape
        ``(channels, height, width)`` of the rows of X, for image models.
    random_state
        Seed or generator.
    device
        torch device.

    Returns
    -------
    ndarray
        One probability for each row of X.
    """
    points = X if isinstance(X, Pool) or is_mapped(X) else check_array(X, dtype=np.float32, order="C", input_name="X")
    pool = as_pool(points, device)
    labels = check_labels(y)
    if len(labels) != len(pool):
        raise InputError(f"`y` must hold one label for each of {len(pool)} rows of X. Got {len(labels)}.")
    target = None if prior is None else check_fraction(prior, "prior")
    recipe = replace(
        RECIPE,
        epochs=check_count(epochs, "epochs"),
        batch_size=max(1, min(RECIPE.batch_size, len(labels) // STEPS_PER_EPOCH)),
    )
    if model == "linear":
        recipe = replace(recipe, lr=LINEAR_LR)
    scale = check_real(noise, "noise", low=0.0)
    rng = check_seed(random_state)
    eta = np.empty(len(labels))
    for rows, judged in _folds(labels, rng) if cross_fit else [(np.arange(len(labels)),) * 2]:
        found = _fit(pool, rows, labels[rows], judged, model, recipe, image_shape, int(rng.integers(2**31 - 1)))
        share = float(np.mean(labels[rows] > 0))
        eta[judged] = found if target is None else rescale(found, share, target)
    return add_noise(eta, scale, rng) if scale > 0 else eta


def _folds(labels: IntArray, rng: np.random.Generator) -> list[tuple[IntArray, IntArray]]:
    rarest = min(int(np.sum(labels == label)) for label in (1, -1))
    if rarest < FOLDS:
        raise InputError(
            f"cross_fit=True needs at least {FOLDS} labels of each class, one for each fold. Got {rarest} of the rarer "
            "class. Pass more labels, or cross_fit=False."
        )
    splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=int(rng.integers(2**31 - 1)))
    return list(splitter.split(labels, labels))


def _fit(
    pool: Pool,
    rows: IntArray,
    labels: IntArray,
    judged: IntArray,
    model: ModelSpec,
    recipe: Recipe,
    image_shape: tuple[int, int, int] | None,
    seed: int,
) -> FloatArray:
    method = get_method("supervised")
    sup = Labels(rows, values=labels.astype(np.float64), n_points=len(pool))
    seen = pool.part(rows)

    def build(attempt: int) -> nn.Module:
        net = build_model(model, pool.shape[1], image_shape)
        net.set_scaling(*seen.moments(by_feature=image_shape is None))
        return net

    fitted = train(
        build,
        pool,
        sup.sources(),
        lambda: method.objective(sup, 0.5, loss="logistic"),  # the prior plays no part where labels are known
        recipe,
        seed=seed,
    )
    if fitted.interrupted:
        raise KeyboardInterrupt
    found: FloatArray = expit(scores(fitted.model, pool.part(judged)))
    return found


def rescale(eta: ArrayLike, from_prior: float, to_prior: float) -> FloatArray:
    r"""Turn posteriors under one prior into posteriors under another, the classes staying as they are.

    .. math:: \eta = \frac{e_0\, p/p_0}{e_0\, p/p_0 + (1 - e_0)\, q/q_0}

    Examples
    --------
    >>> rescale([0.0, 0.5, 1.0], 0.5, 0.2)
    array([0. , 0.2, 1. ])
    """
    before, after = check_fraction(from_prior, "from_prior"), check_fraction(to_prior, "to_prior")
    known = _check_probabilities(eta)
    positive = known * (after / before)
    found: FloatArray = positive / (positive + (1.0 - known) * ((1.0 - after) / (1.0 - before)))
    return found


def add_noise(eta: ArrayLike, scale: float, random_state: RandomState = None) -> FloatArray:
    """Add normal noise to posteriors, and cut them to [0, 1].

    Examples
    --------
    >>> add_noise([0.0, 0.5, 1.0], 0.0)
    array([0. , 0.5, 1. ])
    """
    known = _check_probabilities(eta)
    deviation = check_real(scale, "scale", low=0.0)
    noisy = known + deviation * check_seed(random_state).standard_normal(known.shape)
    return np.clip(noisy, 0.0, 1.0)


def _check_probabilities(eta: ArrayLike) -> FloatArray:
    known = np.asarray(eta, dtype=np.float64)
    bad = known[~((known >= 0) & (known <= 1))]
    if bad.size:
        raise InputError(f"`eta` must lie in [0, 1] and be finite. Got {bad[0]} ({bad.size} such).")
    return known
