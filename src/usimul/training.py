"""The one training loop, and scoring. Every method goes through here; nothing here knows any method."""

from __future__ import annotations

import contextlib
import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from usimul.batching import IndexBatches, Pool, as_pool, n_steps_per_epoch
from usimul.methods.base import Batch, Objective, Orientation, Recipe, Run
from usimul.models import negate_output, shift_output
from usimul.validation import InputError, IntArray, UsimulError, check_choice, check_count, check_real

__all__ = ["OPTIMIZERS", "SCHEDULES", "Epoch", "Fitted", "TrainingDivergedError", "score_sources", "scores", "train"]

OPTIMIZERS = ("adam", "adamw", "sgd")
SCHEDULES = ("constant", "one-cycle", "exponential")
EXPONENTIAL_FACTOR, EXPONENTIAL_FLOOR = 0.8, 5e-10  # the released experiment: rate times 0.8 after each epoch

SMALL_STEP = 1e8  # parameters times points of one step

FloatArray = NDArray[np.float64]


class TrainingDivergedError(UsimulError, ArithmeticError):
    """The risk stopped being a finite number."""


@dataclass(frozen=True)
class Epoch:
    """What one epoch showed: ``weak_risk`` on held-out tuples and ``watched`` only where they were asked for.

    ``corrected_share`` is the share of batches in which a correction acted, 0 for methods that correct nothing.
    """

    risk: float
    raw_risk: float
    corrected_share: float
    rate: float
    seconds: float
    weak_risk: float | None = None
    watched: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass
class Fitted:
    """A trained module and how it came about; ``scores`` of the points of each source are those of the module."""

    model: nn.Module
    epochs: list[Epoch] = field(default_factory=list)
    chosen_epoch: int = 0
    orientation: Orientation = field(default_factory=lambda: Orientation("risk"))
    restarts: int = 0
    stuck: bool = False
    interrupted: bool = False
    stopped: bool = False
    scores: dict[str, FloatArray] = field(default_factory=dict)


def check_recipe(recipe: Recipe) -> Recipe:
    """Raise unless every setting is possible."""
    check_count(recipe.epochs, "epochs")
    check_count(recipe.batch_size, "batch_size")
    check_count(recipe.min_steps, "min_steps", low=0)
    check_real(recipe.lr, "lr", low=0.0, closed="neither")
    check_real(recipe.weight_decay, "weight_decay", low=0.0)
    check_choice(recipe.optimizer, OPTIMIZERS, "optimizer")
    check_choice(recipe.schedule, SCHEDULES, "schedule")
    return recipe


def _optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    trained = [p for p in model.parameters() if p.requires_grad]
    parameters = [  # biases and normalisation gains are not decayed
        {"params": [p for p in trained if p.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=recipe.lr, momentum=0.9)
    kind = torch.optim.AdamW if recipe.optimizer == "adamw" else torch.optim.Adam
    # fused: a third of the default's time, which for small nets is as much as the mathematics.
    return kind(parameters, lr=recipe.lr, fused=True)


def _schedule(
    optimizer: torch.optim.Optimizer, recipe: Recipe, n_steps: int
) -> torch.optim.lr_scheduler.LRScheduler | None:
    if recipe.schedule == "one-cycle":
        return torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=recipe.lr, total_steps=recipe.epochs * n_steps)
    if recipe.schedule == "exponential":
        floor = EXPONENTIAL_FLOOR / recipe.lr
        return torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: max(EXPONENTIAL_FACTOR ** (step // n_steps), floor)
        )
    return None


@contextlib.contextmanager
def _threads(model: nn.Module, sources: Mapping[str, IntArray], batch_size: int) -> Iterator[None]:
    """Use one thread for small steps: handing them to several costs more than it saves, ten times so on a busy machine.

    Convolutions use a weight many times for each point, so networks that have them count as large.
    """
    before = torch.get_num_threads()
    points = sum(rows.size for rows in sources.values()) / n_steps_per_epoch(sources, batch_size)
    work = points * sum(p.numel() for p in model.parameters())
    if work < SMALL_STEP and not any(isinstance(m, nn.Conv2d) for m in model.modules()):
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _check_least_step(model: nn.Module, sources: Mapping[str, IntArray], batch_size: int, n_features: int) -> None:
    """Raise if the model cannot train on the smallest step: BatchNorm finds no spread in one point."""
    n_steps = n_steps_per_epoch(sources, batch_size)
    least = sum(max(1, len(rows) // n_steps) * rows.shape[1] for rows in sources.values())
    if least > 1 or not any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules()):
        return
    like = next(model.parameters())
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):  # a copy, because BatchNorm counts what it sees
            copy.deepcopy(model).train()(torch.zeros(1, n_features, device=like.device))
    except ValueError as error:
        raise InputError(
            f"`batch_size`={batch_size} leaves steps of one point, of which the BatchNorm layers of the model find no "
            "spread. Raise batch_size, or take a model without BatchNorm, such as 'mlp'."
        ) from error


def train(
    build: Callable[[int], nn.Module],
    pool: Pool | Tensor,
    sources: Mapping[str, IntArray],
    objective: Callable[[], Objective],
    recipe: Recipe,
    *,
    seed: int,
    known: IntArray | None = None,
    validate: Callable[[nn.Module], float] | None = None,
    watch: Callable[[nn.Module], float] | None = None,
    report: Callable[[int, Epoch], None] | None = None,
    max_restarts: int = 2,
    patience: int | None = None,
) -> Fitted:
    """Train a fresh module; start again, with another seed, when the objective says that it is stuck.

    Parameters
    ----------
    build
        Makes an untrained module from an attempt number (0, 1, ...); torch's global seed is set before the call.
    pool
        All points, ``(n_points, n_features)``; a tensor lies on its device.
    sources
        Row indices of each source of points.
    objective
        Makes a fresh objective for an attempt.
    recipe
        Settings.
    seed
        Seed of initial weights, batches and dropout. Same seed, same machine, same number of threads: same bits.
    known
        Rows of points with a known label, which only name the classes; their scores reach the objective as ``"known"``.
    validate
        Label-free criterion of a module, lower is better; when given, the epoch with the least value is kept.
    watch
        Any figure of a module, recorded after each epoch; it chooses nothing.
    report
        Called after each epoch.
    max_restarts
        How often to start again from a plateau, each time with more epochs, before giving up and saying so.
    patience
        Stop when ``validate`` has not improved for so many epochs; None trains to the end. Schedules are not shortened.

    Returns
    -------
    Fitted
        After an interruption by the user: what was trained so far, with ``interrupted`` set.
    """
    check_recipe(recipe)
    if patience is not None:
        check_count(patience, "patience")
        if validate is None:
            raise InputError("`patience` waits for a label-free criterion to improve. Got no `validate`; pass one.")
    pool = as_pool(pool)
    scored = dict(sources) if known is None else {**sources, "known": known[:, None]}
    for attempt in range(max_restarts + 1):
        longer = replace(recipe, epochs=recipe.epochs * (attempt + 1))
        with torch.random.fork_rng(devices=[pool.device] if pool.device.type == "cuda" else []):
            torch.manual_seed(seed + attempt)
            current = objective()
            model = build(attempt).to(pool.device)
            _check_least_step(model, sources, longer.batch_size, pool.shape[1])
            with _threads(model, sources, longer.batch_size):
                fitted = _attempt(
                    model, pool, sources, scored, current, longer, seed + attempt, validate, watch, report, patience
                )
        fitted.restarts = attempt
        found = score_sources(fitted.model, pool, scored)
        fitted.stuck = current.is_stuck(found)
        if not fitted.stuck or fitted.interrupted:
            break
    fitted.orientation = current.orient(found)
    if fitted.orientation.status != "given" and (fitted.stuck or not fitted.epochs):
        # Scores that are nearly equal, or untrained, follow from the weights that training began with.
        fitted.orientation = replace(fitted.orientation, status="unknown", z=None)
    if fitted.orientation.flipped:
        negate_output(fitted.model)
        found = {name: -values for name, values in found.items()}
    if current.only_ranks:
        threshold = current.threshold(found)
        shift_output(fitted.model, threshold)
        found = {name: values - threshold for name, values in found.items()}
    fitted.scores = found
    return fitted


def _attempt(
    model: nn.Module,
    pool: Pool,
    sources: Mapping[str, IntArray],
    scored: Mapping[str, IntArray],
    objective: Objective,
    recipe: Recipe,
    seed: int,
    validate: Callable[[nn.Module], float] | None,
    watch: Callable[[nn.Module], float] | None,
    report: Callable[[int, Epoch], None] | None,
    patience: int | None,
) -> Fitted:
    generator = torch.Generator().manual_seed(seed)
    batches = IndexBatches(sources, recipe.batch_size, generator, pool.device)
    optimizer = _optimizer(model, recipe)
    schedule = _schedule(optimizer, recipe, batches.n_steps)
    objective.begin(
        Run(
            model,
            recipe.epochs * batches.n_steps,
            score=lambda: score_sources(objective.output(), pool, scored),
            negate=negate_output,
        )
    )
    fitted = Fitted(model)
    best, best_value, improved = None, math.inf, 0
    try:
        for number in range(recipe.epochs):
            started = time.perf_counter()
            rate = optimizer.param_groups[0]["lr"]
            total, negative, parts = _run_epoch(model, pool, batches, objective, optimizer, schedule)
            if not math.isfinite(total):
                raise TrainingDivergedError(
                    f"the risk became {total} in epoch {number + 1} of {recipe.epochs}. Lower the learning rate "
                    f"(lr={recipe.lr:g}) or standardise the features."
                )
            judged = objective.output() if validate is None and watch is None else _judged(objective, pool, scored)
            value = None if validate is None else validate(judged)
            seconds = time.perf_counter() - started
            watched = None if watch is None else watch(judged)
            epoch = Epoch(total, sum(parts.values()), negative, rate, seconds, value, watched, parts)
            fitted.epochs.append(epoch)
            if value is not None and value < best_value:
                improved = number + 1
            if value is not None and value <= best_value:  # ties: the later epoch has seen more
                best, best_value = copy.deepcopy(objective.output()), value
                fitted.chosen_epoch = number + 1
            if report is not None:
                report(number + 1, epoch)
            if patience is not None and number + 1 - improved >= patience and number + 1 < recipe.epochs:
                fitted.stopped = True
                break
    except KeyboardInterrupt:
        fitted.interrupted = True
    if best is None:
        best, fitted.chosen_epoch = objective.output(), len(fitted.epochs)
    fitted.model = best.eval()
    return fitted


def _judged(objective: Objective, pool: Pool, scored: Mapping[str, IntArray]) -> nn.Module:
    """Return the module that would predict if training ended now; the one in training stays as it is."""
    model = objective.output()
    if objective.only_ranks:
        model = copy.deepcopy(model)
        shift_output(model, objective.threshold(score_sources(model, pool, scored)))
    return model


def _run_epoch(
    model: nn.Module,
    pool: Pool,
    batches: IndexBatches,
    objective: Objective,
    optimizer: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.LRScheduler | None,
) -> tuple[float, float, dict[str, float]]:
    """Return the mean corrected risk, the share of batches that were corrected, and the mean partial risks."""
    model.train()
    sums = torch.zeros(2, device=pool.device)
    parts: dict[str, Tensor] = {}
    for index, rows in batches.epoch():
        inputs = pool.gather(torch.cat([r.flatten() for r in rows.values()]))
        flat = model(inputs)  # one forward pass over all sources
        by_source = flat.split([r.numel() for r in rows.values()])
        scores = {name: part.view(r.shape) for (name, r), part in zip(rows.items(), by_source, strict=True)}
        risk = objective.step(Batch(inputs, flat, scores, index))
        optimizer.zero_grad(set_to_none=True)
        risk.total.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if schedule is not None:
            schedule.step()
        objective.after_step()
        total = risk.total.detach()
        sums += torch.stack([total, risk.corrected.to(total.dtype)])
        for name, part in risk.parts.items():
            parts[name] = parts[name] + part.detach() if name in parts else part.detach()
    objective.end_epoch()
    mean, negative = (sums / batches.n_steps).tolist()
    return mean, negative, {name: float(part) / batches.n_steps for name, part in parts.items()}


def scores(model: nn.Module, pool: Pool | Tensor, *, chunk: int = 8192) -> FloatArray:
    """Scores of all points of a pool, in chunks, in evaluation mode and without gradients."""
    pool = as_pool(pool)
    was_training = model.training
    model.eval()
    found, start = np.empty(len(pool)), 0  # made first: small results between large chunks would split the heap
    with torch.inference_mode():
        for part in pool.chunks(chunk):
            found[start : start + len(part)] = model(part).double().cpu().numpy()
            start += len(part)
    model.train(was_training)
    return found


def score_sources(model: nn.Module, pool: Pool | Tensor, sources: Mapping[str, IntArray]) -> dict[str, FloatArray]:
    """Scores of the points of each source, ``(n_tuples, width)``; each used point is scored once."""
    used, place = np.unique(np.concatenate([rows.ravel() for rows in sources.values()]), return_inverse=True)
    every = scores(model, as_pool(pool).part(used))[place]
    found, start = {}, 0
    for name, rows in sources.items():
        found[name] = every[start : start + rows.size].reshape(rows.shape)
        start += rows.size
    return found
