"""Bins of held-out tuples and points, from classifiers that learned without a prior, up to a swap of names."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from torch import nn

from usimul.batching import Pool, as_pool, check_device, n_steps_per_epoch
from usimul.mapped import is_mapped
from usimul.methods import get_method
from usimul.methods.base import Recipe
from usimul.models import ModelSpec, build_model
from usimul.splits import FEW_POINTS, PoolKFold, inside
from usimul.supervision import Triplets
from usimul.training import Epoch, scores, train
from usimul.validation import DegenerateTrainingWarning, InputError, IntArray

__all__ = ["Binned", "cross_fitted_bins"]

FloatArray = NDArray[np.float64]
Progress = Callable[[str, int, int, Epoch], None]

METHOD = "joint-likelihood"
RECIPE = Recipe(
    epochs=4,
    min_steps=500,
    batch_size=128,
    optimizer="adamw",
    lr=3e-3,
    weight_decay=1e-2,
    schedule="one-cycle",
    loss="built in",
)
LEAST = 30  # held-out tuples of one fold
MOST_LOST = 0.02  # share of the tuples that folds of points may cost: what is lost biases by at most its share


@dataclass(frozen=True)
class Binned:
    """Bins of the members of each tuple, of each unlabeled point, and, for each fold, of the known points.

    ``by`` says what the folds are made of, ``"points"`` or ``"tuples"``; tuples across folds of points are left out.
    """

    tuples: IntArray
    points: IntArray
    known: IntArray | None
    n_bins: int
    by: str = "tuples"
    n_dropped: int = 0


@dataclass(frozen=True)
class Folds:
    """The fold of every tuple and of every unlabeled point, -1 for tuples across folds, and what each fold trains on.

    ``by`` says whether points were dealt to the folds or tuples.
    """

    of_tuple: IntArray
    of_unlabeled: IntArray
    training: tuple[Triplets, ...]
    by: str


def cross_fitted_bins(
    X: Any,
    supervision: Triplets,
    *,
    n_bins: int,
    folds: int,
    networks: int,
    model: ModelSpec,
    epochs: int | None,
    image_shape: tuple[int, int, int] | None,
    device: str,
    rng: np.random.Generator,
    progress: Progress | None,
) -> Binned:
    """Sort each fold's tuples and unlabeled points into bins by classifiers trained on the other folds.

    The classifiers minimise the conditional likelihood of the triplets without the prior term. It is the same when the
    classes swap names, so each classifier is turned to agree with the first; which class is positive stays open. The
    mean of the outputs of ``networks`` classifiers is the score. Bins are quantiles of the scores of held-out points
    that follow the unlabeled law. See `make_folds` for what is divided.
    """
    check_device(device)
    points = X if isinstance(X, Pool) or is_mapped(X) else check_array(X, dtype=np.float32, order="C", input_name="X")
    pool = as_pool(points, device)
    supervision.check_pool(len(pool))
    if supervision.n_tuples < LEAST * folds:
        raise InputError(
            f"too few triplets to estimate the prior by the likelihood: {supervision.n_tuples} of them leave less than "
            f"{LEAST} in each of {folds} folds. Collect more, thousands for a narrow interval; or use the share of yes "
            "answers (method='acceptance', with n_asked), or some labels (method='labels')."
        )
    pool.check()
    used, place = np.unique(
        np.concatenate([rows.ravel() for rows in (*supervision.sources().values(), *_known(supervision))]),
        return_inverse=True,
    )
    seen = pool.part(used)
    places = _Places(supervision, place)
    parts = make_folds(supervision, len(pool), folds, rng)
    tuples = np.empty_like(supervision.rows)
    plain = np.empty(supervision.n_unlabeled, dtype=np.int64)
    known, first = [], None
    for fold, part in enumerate(parts.training):
        held_out, held_out_plain = parts.of_tuple == fold, parts.of_unlabeled == fold
        found = np.zeros(len(used))
        for network in range(networks):
            name = f"fold {fold + 1} of {folds}" + (f", network {network + 1}" if networks > 1 else "")
            fitted = _train(pool, part, model, epochs, image_shape, int(rng.integers(2**31 - 100)), name, progress)
            output = np.tanh(0.5 * scores(fitted, seen))
            first = output if first is None else first
            found += output if float(np.dot(output - output.mean(), first - first.mean())) >= 0 else -output
        members, others = found[places.tuples[held_out]], found[places.unlabeled[held_out_plain]]
        edges = _edges(members, others, supervision.world, n_bins)
        tuples[held_out] = np.searchsorted(edges, members, side="right")
        plain[held_out_plain] = np.searchsorted(edges, others, side="right")
        if places.known is not None:
            known.append(np.searchsorted(edges, found[places.known], side="right"))
    kept = parts.of_tuple >= 0
    return Binned(
        tuples[kept], plain, np.stack(known) if known else None, n_bins, parts.by, int(np.count_nonzero(~kept))
    )


def make_folds(supervision: Triplets, n_points: int, folds: int, rng: np.random.Generator) -> Folds:
    """Deal the points to folds where few tuples are lost by it, so that no binned point was trained on; else tuples.

    Where points are in many tuples, tuples and unlabeled entries are dealt. Of independent draws from one pool this is
    right too: what is held out is drawn from the same points, whatever was trained on, so that of either class as many
    were seen among the members of tuples as among the unlabeled. Leaving out the unlabeled that were seen would bias:
    points of the frequent class are drawn more often, so what is left has too many of the rare one.

    >>> sup = Triplets(np.arange(300).reshape(100, 3), unlabeled=range(300), n_points=300)
    >>> make_folds(sup, 300, 2, np.random.default_rng(0)).by
    'points'
    """
    plain = replace(supervision, known_rows=None, known_labels=None, n_points=n_points)
    of_tuple, of_unlabeled = rng.permutation(plain.n_tuples) % folds, rng.permutation(plain.n_unlabeled) % folds
    if n_points >= max(FEW_POINTS, folds):
        cut = PoolKFold(folds, random_state=copy.deepcopy(rng))  # a try that comes to nothing changes no draw
        sides = list(cut.split(None, plain))
        n_lost = plain.n_tuples - sum(split.n_test for split in cut.splits_)
        if min(split.n_test for split in cut.splits_) >= LEAST and n_lost <= MOST_LOST * plain.n_tuples:
            fold_of = np.empty(n_points, dtype=np.int64)
            for fold, (_, testing) in enumerate(sides):
                fold_of[testing] = fold
            members = fold_of[plain.rows]
            of_tuple = np.where((members == members[:, :1]).all(axis=1), members[:, 0], -1)
            training = tuple(inside(plain, train) for train, _ in sides)
            return Folds(of_tuple, fold_of[_unlabeled(plain)], training, "points")
    training = tuple(plain.take(of_tuple != fold, of_unlabeled != fold) for fold in range(folds))
    return Folds(of_tuple, of_unlabeled, training, "tuples")


def _unlabeled(supervision: Triplets) -> IntArray:
    return np.empty(0, dtype=np.int64) if supervision.unlabeled is None else supervision.unlabeled


class _Places:
    """Where the points of each source stand among the points in use."""

    def __init__(self, supervision: Triplets, place: IntArray) -> None:
        n = supervision.rows.size
        self.tuples = place[:n].reshape(supervision.rows.shape)
        self.unlabeled = place[n : n + supervision.n_unlabeled]
        self.known = place[n + supervision.n_unlabeled :] if supervision.known_rows is not None else None


def _known(supervision: Triplets) -> list[IntArray]:
    return [] if supervision.known_rows is None else [supervision.known_rows]


def _edges(members: FloatArray, others: FloatArray, world: str | None, n_bins: int) -> FloatArray:
    """Inner quantiles of the scores of points that follow the unlabeled law."""
    plain = others.ravel() if world == "pair_plus_unlabeled" else np.concatenate([members[:, 1:].ravel(), others])
    return np.quantile(plain, np.arange(1, n_bins) / n_bins)


def _train(
    pool: Pool,
    part: Triplets,
    model: ModelSpec,
    epochs: int | None,
    image_shape: tuple[int, int, int] | None,
    seed: int,
    name: str,
    progress: Progress | None,
) -> nn.Module:
    method = get_method(METHOD)
    recipe = replace(RECIPE, batch_size=min(RECIPE.batch_size, part.n_tuples))
    if model == "linear":
        recipe = replace(recipe, lr=1e-2, weight_decay=1e-3)
    n_steps = n_steps_per_epoch(part.sources(), recipe.batch_size)
    recipe = replace(recipe, epochs=epochs or max(recipe.epochs, -(-recipe.min_steps // n_steps)))
    shift, deviation = pool.moments(by_feature=image_shape is None)

    def build(attempt: int) -> nn.Module:
        net = build_model(model, pool.shape[1], image_shape)
        net.set_scaling(shift, deviation)
        return net

    def report(number: int, epoch: Epoch) -> None:
        if progress is not None:
            progress(name, number, recipe.epochs, epoch)

    fitted = train(
        build,
        pool,
        part.sources(),
        # At 1/2 and without its weight the prior plays no part: the likelihood holds the model's own mean output.
        lambda: method.objective(part, 0.5, options={"prior_weight": 0.0}),
        recipe,
        seed=seed,
        report=report,
    )
    if fitted.interrupted:
        raise KeyboardInterrupt
    if fitted.stuck:
        warnings.warn(
            f"a classifier behind the prior ({name}) stayed on its plateau: its scores are nearly equal and tell "
            "little about the classes, so the interval of the prior will be wide. Collect more triplets, or pass "
            "another model or more epochs.",
            DegenerateTrainingWarning,
            stacklevel=4,
        )
    found: nn.Module = fitted.model
    return found
