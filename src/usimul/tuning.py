"""Cross-validation and search without labels: candidates are compared by an error estimated on points held out.

Every candidate is trained on one side of a pool that was divided first (`usimul.splits`) and judged by the tuples and
unlabeled points of the other. What judges, the ``criterion``:

- ``"error"``: the label-free error rate, for triplets by second moments (`usimul.weak_risk`), for other kinds by their
  unbiased risk with the 0-1 loss. It compares anything with anything that learns from the same supervision.
- ``"own"``: the risk that the method itself minimises, uncorrected, on the held-out part. It is smoother, and means the
  same only among candidates of one method, loss, options and share of wrong answers.

Candidates are in the order in which they are given, a grid in the order of its values with the last key fastest. The
rule ``"one-se"`` takes the *first* candidate within one standard error of the least, so put the simplest first.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterSampler

from usimul.batching import as_pool
from usimul.degenerate import degenerate
from usimul.estimators import (
    AUTO_METHODS,
    AUTO_MODELS,
    FEW_TUPLES,
    WeakClassifier,
    _check_prior_against,
    _with_wrong_yes,
)
from usimul.files import check_is_file, room_for
from usimul.methods import get_method
from usimul.methods.base import Batch, Run
from usimul.models import build_model
from usimul.splits import PoolKFold, inside, pool_split
from usimul.supervision import Supervision
from usimul.training import TrainingDivergedError, score_sources
from usimul.validation import (
    DegenerateTrainingWarning,
    FewTuplesWarning,
    FileFormatError,
    InputError,
    InputTypeError,
    PriorMismatchWarning,
    check_choice,
    check_count,
    check_parent,
    check_seed,
    missing_dependency,
    nearest,
)
from usimul.weak_risk import WeakRisk

__all__ = [
    "CRITERIA",
    "RULES",
    "CrossValidation",
    "Tuning",
    "candidates",
    "choose",
    "cross_validate_weak",
    "optuna_objective",
    "own_risk",
    "tune",
]

CRITERIA = ("error", "own")
RULES = ("least", "one-se")
GROUPS = 10  # of held-out tuples, whose spread gives the standard error of a method's own risk

Row = dict[str, Any]
Grid = Mapping[str, Any]
Progress = Callable[[int, int], None]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class CrossValidation:
    """What was found on the held-out part of each fold.

    Parameters
    ----------
    value, standard_error
        Mean over folds, and its standard error from those of the folds, whose held-out points differ.
    folds
        For each fold: value, standard_error, n_tuples and n_unlabeled that judged, positive (share of points predicted
        so), epochs, seconds, degenerate (words or None).
    """

    value: float
    standard_error: float
    folds: tuple[Row, ...]

    @property
    def degenerate(self) -> str | None:
        """Words if the classifier of any fold carries no information."""
        return next((fold["degenerate"] for fold in self.folds if fold["degenerate"]), None)

    def __str__(self) -> str:
        return f"{self.value:.4f} +- {self.standard_error:.4f} ({len(self.folds)} folds)"


@dataclass
class Tuning:
    """A search: its rows in the order of the candidates, the one that was chosen, and the classifier refitted with it.

    Parameters
    ----------
    rows
        For each candidate that was tried: ``settings``, ``value``, ``standard_error``, ``folds``, ``degenerate`` and
        ``error`` (words or None), ``seconds``.
    chosen
        Position of the chosen row; None if none can be.
    criterion, rule
        How rows were judged and chosen.
    dropped_share
        Mean share of the tuples that lie across the sides of a fold, so that neither has them.
    estimator
        Trained with the chosen settings on everything; None without ``refit`` or after an interruption.
    interrupted
        Whether the user ended the search; the rows that were done are kept.
    """

    rows: list[Row]
    chosen: int | None
    criterion: str
    rule: str
    dropped_share: float = 0.0
    estimator: WeakClassifier | None = field(default=None, repr=False)
    interrupted: bool = False

    @property
    def settings(self) -> Row:
        """Settings of the chosen candidate."""
        if self.chosen is None:
            raise InputError(f"no candidate could be chosen: {_why_none(self.rows)}")
        return dict(self.rows[self.chosen]["settings"])

    def table(self) -> list[str]:
        """Lines for people: one for each candidate, ``*`` before the chosen one."""
        return _table(self.rows, self.chosen)


def candidates(grid: Grid, n_draws: int | None = None, random_state: Any = None) -> list[Row]:
    """List the settings of a grid, or random draws of them, none twice, in the order of the grid.

    Parameters
    ----------
    grid
        Lists of values by name of a parameter; with ``n_draws`` also SciPy distributions, which are drawn from.
    n_draws
        How many to draw; None takes all.
    random_state
        Seed of the draws.

    Examples
    --------
    >>> candidates({"model": ["linear", "mlp"], "lr": [0.01, 0.001]})[:2]
    [{'model': 'linear', 'lr': 0.01}, {'model': 'linear', 'lr': 0.001}]
    >>> len(candidates({"model": ["linear", "mlp"], "lr": [0.01, 0.001]}, n_draws=3, random_state=0))
    3
    """
    given: object = grid
    if not isinstance(given, Mapping) or not given:
        raise InputTypeError(
            f"`grid` must map names of parameters to lists of values. Got {grid!r:.60}. Pass {{'lr': [1e-3, 3e-4]}}."
        )
    lists = {name: values for name, values in grid.items() if not hasattr(values, "rvs")}
    for name, values in lists.items():
        if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)) or len(values) == 0:
            raise InputTypeError(
                f"`grid` must hold a list of values for {name!r}, of one value if it is fixed. Got {values!r:.60}."
            )
    rng = check_seed(random_state)
    if len(lists) < len(grid):
        if n_draws is None:
            raise InputError("`grid` holds a distribution, which has no end of values. Pass n_draws.")
        seed = int(rng.integers(2**31 - 1))
        drawn = ParameterSampler(dict(grid), check_count(n_draws, "n_draws"), random_state=seed)
        return [{name: _plain(chosen[name]) for name in grid} for chosen in drawn]
    every = itertools.product(*lists.values())
    found = [{name: _plain(value) for name, value in zip(lists, values, strict=True)} for values in every]
    if n_draws is None or check_count(n_draws, "n_draws") >= len(found):
        return found
    return [found[i] for i in np.sort(rng.choice(len(found), n_draws, replace=False))]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def choose(rows: Sequence[Row], rule: str = "least") -> int | None:
    """Return the position of the chosen row; rows that failed or are degenerate are never chosen.

    ``"least"`` takes the least value, the first of equal ones; ``"one-se"`` the first row of which the value is at most
    one standard error (that of the least) above the least.

    >>> rows = [{"value": 0.11, "standard_error": 0.02}, {"value": 0.10, "standard_error": 0.02}]
    >>> choose(rows), choose(rows, "one-se")
    (1, 0)
    """
    check_choice(rule, RULES, "rule")
    usable = [i for i, row in enumerate(rows) if not row.get("error") and not row.get("degenerate")]
    if not usable:
        return None
    best = min(usable, key=lambda i: rows[i]["value"])
    if rule == "least":
        return best
    limit = rows[best]["value"] + rows[best]["standard_error"]
    return next(i for i in usable if rows[i]["value"] <= limit)


def own_risk(estimator: WeakClassifier, X: Any, supervision: Supervision) -> WeakRisk:
    """Return the risk that the method minimises, uncorrected, on any supervision; its standard error from ten groups.

    What a method adds during training, such as the refinement of ``joint``, is not in it.
    """
    pool = as_pool(X, estimator.device)
    supervision.check_pool(len(pool))
    method = get_method(estimator.method_)
    sources = supervision.sources()
    found = score_sources(estimator.module_, pool, sources)
    prior = 0.5 if estimator.prior_ is None else estimator.prior_
    options = _with_wrong_yes(estimator.options, estimator.wrong_yes_)

    def of(index: Mapping[str, Rows]) -> float:
        objective = method.objective(supervision, prior, loss=estimator.loss, options=options)
        objective.begin(Run(estimator.module_, 1, score=lambda: found, negate=lambda module: None))
        parts = {
            n: torch.as_tensor(found[n][rows], dtype=torch.float32, device=pool.device) for n, rows in index.items()
        }
        inputs = pool.gather(torch.as_tensor(np.concatenate([sources[n][rows].ravel() for n, rows in index.items()])))
        batch = Batch(
            inputs,
            torch.cat([part.flatten() for part in parts.values()]),
            parts,
            {n: torch.as_tensor(rows, device=pool.device) for n, rows in index.items()},
        )
        with torch.no_grad():
            return float(objective.step(batch).raw)

    rng = np.random.default_rng(0)
    order = {name: rng.permutation(len(rows)) for name, rows in sources.items()}
    n_groups = min(GROUPS, *(rows.size for rows in order.values()))
    groups = [of({name: rows[group::n_groups] for name, rows in order.items()}) for group in range(n_groups)]
    error = float(np.std(groups, ddof=1)) / np.sqrt(n_groups) if n_groups > 1 else float("inf")
    return WeakRisk(of({name: np.arange(len(rows)) for name, rows in sources.items()}), float(error), "own")


def cross_validate_weak(
    estimator: WeakClassifier,
    X: Any,
    supervision: Supervision,
    *,
    cv: Any = 5,
    criterion: str = "error",
    random_state: Any = 0,
    progress: Progress | None = None,
) -> CrossValidation:
    """Train and judge on folds of the pool, without a label; the estimator stays unfitted.

    Parameters
    ----------
    estimator
        Settings to judge.
    X
        The pool of points. It is not copied, also not by fold.
    supervision
        Tuples over its rows.
    cv
        Number of folds, or a share to hold out once, or a splitter with ``split(X, supervision)`` of rows of the pool.
    criterion
        ``"error"`` or ``"own"``; see the module.
    random_state
        Seed of the folds.
    progress
        Called after each fold with how many are done and how many there are.

    Examples
    --------
    >>> from usimul import USimULClassifier, make_gaussians, sample_triplets
    >>> data = make_gaussians(2000, 10, prior=0.3, random_state=0)
    >>> sup = sample_triplets(data.y_train, 300, n_unlabeled=300, prior=0.3, random_state=0)
    >>> clf = USimULClassifier("joint-likelihood", prior=0.3, model="linear", epochs=30, random_state=0)
    >>> found = cross_validate_weak(clf, data.X_train, sup, cv=3)
    >>> len(found.folds), found.value < 0.3
    (3, True)
    """
    check_choice(criterion, CRITERIA, "criterion")
    sup = _over(X, supervision)
    _check_candidate(estimator, X, sup, {})
    folds, _ = _folds(X, sup, cv, random_state)
    return _judge(estimator, X, sup, folds, criterion, _counting(progress, len(folds)))


def tune(
    estimator: WeakClassifier,
    X: Any,
    supervision: Supervision,
    grid: Grid | Sequence[Row],
    *,
    n_draws: int | None = None,
    cv: Any = 0.25,
    criterion: str = "error",
    rule: str = "least",
    random_state: Any = 0,
    refit: bool = True,
    path: Path | str | None = None,
    progress: Progress | None = None,
    prepare: Callable[[], None] | None = None,
) -> Tuning:
    """Search for settings without a label, and train with the chosen ones on everything.

    All candidates are checked before the first is trained, and all are judged on the same folds. Ctrl-C keeps the rows
    that are done. The least of many estimates is too low; judge the result on tuples over new points.

    Parameters
    ----------
    estimator
        What the candidates have in common.
    X, supervision
        Points and tuples.
    grid
        Lists of values by name of a parameter of the estimator (see `candidates`), or a list of settings.
    n_draws
        Random draws from the grid instead of all of it.
    cv
        As in `cross_validate_weak`; the default holds out a quarter once, which costs one training for each candidate.
    criterion
        ``"error"``, or ``"own"`` among candidates of one method, loss, options and ``wrong_yes``.
    rule
        ``"least"``, or ``"one-se"``: the first candidate within one standard error of the least.
    random_state
        Seed of draws and folds.
    refit
        Whether to train the chosen settings on everything.
    path
        File of JSON lines, one for each candidate, written as soon as it is done; what is there for the same data,
        folds and settings is not done again.
    progress
        Called after each training of the search with how many are done and how many there are.
    prepare
        Called once when everything was checked, before the first training: a place to make the folder of ``path``.

    Examples
    --------
    >>> from usimul import USimULClassifier, make_gaussians, sample_triplets
    >>> data = make_gaussians(2000, 10, prior=0.3, random_state=0)
    >>> sup = sample_triplets(data.y_train, 300, n_unlabeled=300, prior=0.3, random_state=0)
    >>> clf = USimULClassifier("joint-likelihood", prior=0.3, model="linear", epochs=20, random_state=0)
    >>> found = tune(clf, data.X_train, sup, {"lr": [1e-5, 1e-2]})
    >>> found.settings
    {'lr': 0.01}
    """
    check_choice(criterion, CRITERIA, "criterion")
    check_choice(rule, RULES, "rule")
    sup = _over(X, supervision)
    tried = candidates(grid, n_draws, random_state) if isinstance(grid, Mapping) else _listed(grid, n_draws)
    made = [_check_candidate(estimator, X, sup, settings) for settings in tried]
    if criterion == "own" and len({(e.method, e.loss, repr(e.options), e.wrong_yes) for e in made}) > 1:
        raise InputError(
            "the methods' own risks of candidates that differ in method, loss, options or wrong_yes mean different "
            "things. Compare them by criterion='error'."
        )
    folds, dropped = _folds(X, sup, cv, random_state)
    if prepare is not None:
        prepare()
    file = None if path is None else check_parent(path)
    stamp = _stamp(X, sup, folds, criterion)
    keys = [_key(stamp, candidate) for candidate in made]
    known = {} if file is None or not file.exists() else _read(file)
    missing = [key for key in keys if key not in known]
    count = _counting(progress, len(missing) * len(folds))
    rows: list[Row] = []
    found = Tuning(rows, None, criterion, rule, dropped)
    try:
        for key, settings, candidate in zip(keys, tried, made, strict=True):
            row = known.get(key)
            if row is None:
                row = known[key] = _row(key, settings, candidate, X, sup, folds, criterion, count)
                if file is not None:
                    _append(file, row)
            rows.append({**row, "settings": settings})
    except KeyboardInterrupt:
        if not rows:
            raise
        found.interrupted = True
    found.chosen = choose(rows, rule)
    if found.chosen is None:
        warnings.warn(f"no candidate can be chosen: {_why_none(rows)}", DegenerateTrainingWarning, stacklevel=2)
    elif refit and not found.interrupted:
        found.estimator = clone(made[found.chosen]).fit(X, supervision)
    return found


def optuna_objective(
    estimator: WeakClassifier,
    X: Any,
    supervision: Supervision,
    space: Callable[[Any], Mapping[str, Any]],
    *,
    cv: Any = 0.25,
    criterion: str = "error",
    random_state: Any = 0,
) -> Callable[[Any], float]:
    """Return an objective for ``optuna.create_study(direction="minimize").optimize``.

    ``space(trial)`` returns settings. Degenerate and diverged candidates are pruned, so never best; the standard error
    is in ``trial.user_attrs``. The same folds judge every trial.
    """
    try:
        import optuna
    except ImportError as error:
        raise missing_dependency("optuna", "optuna", "searching with Optuna") from error
    check_choice(criterion, CRITERIA, "criterion")
    sup = _over(X, supervision)
    folds, _ = _folds(X, sup, cv, random_state)

    def objective(trial: Any) -> float:
        candidate = _check_candidate(estimator, X, sup, dict(space(trial)))
        try:
            found = _judge(candidate, X, sup, folds, criterion, lambda: None)
        except TrainingDivergedError as error:
            raise optuna.TrialPruned(str(error)) from error
        trial.set_user_attr("standard_error", found.standard_error)
        if found.degenerate:
            trial.set_user_attr("degenerate", found.degenerate)
            raise optuna.TrialPruned(found.degenerate)
        return found.value

    return objective


# --- checks -------------------------------------------------------------------------------------------------------


def _over(X: Any, supervision: object) -> Supervision:
    if not isinstance(supervision, Supervision):
        raise InputTypeError(
            f"`supervision` must be a supervision object. Got {type(supervision).__name__}. With labels, "
            "scikit-learn's own searches are what you want."
        )
    supervision.check_pool(len(X))
    if supervision.n_points is None:
        import dataclasses

        return dataclasses.replace(supervision, n_points=len(X))
    return supervision


def _listed(grid: object, n_draws: int | None) -> list[Row]:
    if n_draws is not None:
        raise InputError("`n_draws` draws from a grid. Got a list of settings; leave it out.")
    if isinstance(grid, str) or not isinstance(grid, Sequence) or not grid:
        raise InputTypeError(f"`grid` must be a mapping of lists, or a list of settings. Got {grid!r:.60}.")
    for settings in grid:
        if not isinstance(settings, Mapping):
            raise InputTypeError(f"each candidate must map names of parameters to values. Got {settings!r:.60}.")
    return [dict(settings) for settings in grid]


def _check_candidate(estimator: WeakClassifier, X: Any, sup: Supervision, settings: Row) -> WeakClassifier:
    """Return an unfitted estimator with these settings, after everything that can be checked without training."""
    if not isinstance(estimator, WeakClassifier):
        raise InputTypeError(f"`estimator` must be a classifier of this library. Got {type(estimator).__name__}.")
    known = estimator.get_params()
    for name in settings:
        if name not in known:
            raise InputError(
                f"{name!r} is no parameter of {type(estimator).__name__}.{nearest(name, known)} "
                f"There are: {', '.join(sorted(known))}."
            )
    made: WeakClassifier = clone(estimator).set_params(**settings)
    try:
        _check_settings(made, sup, int(np.prod(np.shape(X)[1:])))
    except (InputError, InputTypeError) as error:
        if not settings:
            raise
        raise type(error)(f"candidate {_words(settings)}: {error}") from error
    if made.prior is not None:
        _check_prior_against(sup, made.prior, made.prior_check, made.wrong_yes, stacklevel=4)
    return made


def _check_settings(made: WeakClassifier, sup: Supervision, n_features: int) -> None:
    """Raise for what no training could do, at the cost of no training."""
    made._check_settings()
    models = AUTO_MODELS if isinstance(made.model, str) and made.model == "auto" else (made.model,)
    for name in AUTO_METHODS if made.method == "auto" else (made.method,):
        method = get_method(name)
        method.check(sup, made.prior)
        method.check_wrong_yes(sup, made.prior, made.wrong_yes)
        method.objective(sup, 0.5 if made.prior is None else made.prior, loss=made.loss, options=made.options)
        for model in models:
            build_model(model, n_features, made.image_shape)
            made._recipe(method, model, sup.sources())


def _folds(X: Any, sup: Supervision, cv: Any, random_state: Any) -> tuple[list[tuple[Rows, Rows]], float]:
    """Return rows of both sides of each fold, and the mean share of the tuples that neither side has."""
    if isinstance(cv, float):
        split = pool_split(sup, cv, random_state)
        folds = [(split.train, split.test)]
    elif isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        folds = list(PoolKFold(int(cv), random_state=random_state).split(X, sup))
    elif hasattr(cv, "split") and not isinstance(cv, str):
        folds = [(np.asarray(train), np.asarray(test)) for train, test in cv.split(X, sup)]
    else:
        raise InputTypeError(
            f"`cv` must be a number of folds, a share to hold out, or a splitter such as PoolKFold. Got {cv!r:.60}."
        )
    kept = [[inside(sup, side).n_tuples for side in fold] for fold in folds]
    least = min(test for _, test in kept)
    if least < 2 or min(train for train, _ in kept) < 1:
        raise InputError(
            f"a fold has {least} held-out tuples, and at least 2 are needed, hundreds to choose well: of "
            f"{sup.n_tuples} tuples, few lie wholly on one side of a divided pool where points occur in many. Take "
            "fewer folds or a larger share, or collect tuples over separate points to judge by."
        )
    if least < FEW_TUPLES:
        warnings.warn(
            f"a fold is judged by {least} tuples, which say little; {FEW_TUPLES} are the least that it should have. "
            "Take fewer folds, or a larger share to hold out.",
            FewTuplesWarning,
            stacklevel=3,
        )
    return folds, float(np.mean([1.0 - (train + test) / sup.n_tuples for train, test in kept]))


# --- one candidate ------------------------------------------------------------------------------------------------


def _counting(progress: Progress | None, total: int) -> Callable[[], None]:
    numbers: Iterator[int] = itertools.count(1)

    def count() -> None:
        if progress is not None:
            progress(next(numbers), total)

    return count


def _judge(
    estimator: WeakClassifier,
    X: Any,
    sup: Supervision,
    folds: Sequence[tuple[Rows, Rows]],
    criterion: str,
    count: Callable[[], None],
) -> CrossValidation:
    found = []
    for train, test in folds:
        started = time.perf_counter()
        part, held_out = inside(sup, train), inside(sup, test)
        with warnings.catch_warnings():
            # Said once of everything before, and of each candidate in its row.
            warnings.simplefilter("ignore", PriorMismatchWarning)
            warnings.simplefilter("ignore", DegenerateTrainingWarning)
            clf = clone(estimator).fit(X, part)
            risk = own_risk(clf, X, held_out) if criterion == "own" else clf.weak_risk(X, held_out)
        scores = score_sources(clf.module_, as_pool(X, clf.device), held_out.sources())
        plain = "unlabeled" in scores and sup.world != "release"
        points = scores["unlabeled"] if plain else np.concatenate([part.ravel() for part in scores.values()])
        found.append(
            {
                "value": risk.value,
                "standard_error": risk.standard_error,
                "n_tuples": held_out.n_tuples,
                "n_unlabeled": held_out.n_unlabeled,
                "positive": float(np.mean(points >= 0)),
                "epochs": clf.n_epochs_,
                "seconds": round(time.perf_counter() - started, 3),
                "degenerate": degenerate(points, clf.prior_ if plain else None) if points.size >= FEW_TUPLES else None,
            }
        )
        count()
    errors = np.array([fold["standard_error"] for fold in found])
    value = float(np.mean([fold["value"] for fold in found]))
    return CrossValidation(value, float(np.sqrt((errors**2).sum()) / len(found)), tuple(found))


def _row(
    key: str,
    settings: Row,
    candidate: WeakClassifier,
    X: Any,
    sup: Supervision,
    folds: Sequence[tuple[Rows, Rows]],
    criterion: str,
    count: Callable[[], None],
) -> Row:
    row: Row = {"key": key, "settings": {name: _told(value) for name, value in settings.items()}}
    started = time.perf_counter()
    try:
        found = _judge(candidate, X, sup, folds, criterion, count)
        row |= {"value": found.value, "standard_error": found.standard_error, "folds": list(found.folds)}
        row |= {"degenerate": found.degenerate, "error": None}
    except TrainingDivergedError as error:
        row |= {"value": None, "standard_error": None, "folds": [], "degenerate": None, "error": str(error)}
    return {**row, "seconds": round(time.perf_counter() - started, 3)}


# --- rows in a file -----------------------------------------------------------------------------------------------


def _told(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def _stamp(X: Any, sup: Supervision, folds: Sequence[tuple[Rows, Rows]], criterion: str) -> str:
    """Name data and folds: a row counts again only for the same ones. Of the points some hundred are looked at."""
    digest = hashlib.sha256(repr((np.shape(X), sup.kind, sup.world, criterion)).encode())
    some = np.linspace(0, len(X) - 1, min(len(X), 256)).astype(int)
    digest.update(np.ascontiguousarray(np.asarray(X)[some], dtype=np.float32).tobytes())
    for part in (sup.rows, sup.unlabeled, sup.values, sup.known_rows, sup.known_labels):
        digest.update(b"-" if part is None else np.ascontiguousarray(part).tobytes())
    for _, test in folds:
        digest.update(np.ascontiguousarray(test, dtype=np.int64).tobytes())
    return digest.hexdigest()


def _key(stamp: str, candidate: WeakClassifier) -> str:
    settings = {n: repr(v) for n, v in sorted(candidate.get_params().items()) if n not in ("verbose", "device")}
    return hashlib.sha256(json.dumps([stamp, settings]).encode()).hexdigest()[:24]


START = b'{"key": "'  # of every row, by which a line that was cut off is known from a file of something else


def _read(path: Path) -> dict[str, Row]:
    check_is_file(path, "results")
    found: dict[str, Row] = {}
    whole, _, rest = path.read_bytes().rpartition(b"\n")
    lines = whole.split(b"\n") if whole else []
    if rest and not rest.startswith(START[: len(rest)]):  # else cut off by a crash; that candidate is tried again
        lines.append(rest)
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            found[row["key"]] = row
        except (ValueError, TypeError, KeyError) as error:
            raise FileFormatError(
                f"{str(path)!r} is not the file of a search: line {number} is no row of one. Name another file."
            ) from error
    return found


def _append(path: Path, row: Row) -> None:
    """Write one row after the last whole line; what a crash left behind it, which `_read` does not count, goes."""
    with room_for(path), path.open("a+b") as handle:
        handle.seek(0)
        content = handle.read()
        handle.truncate(content.rfind(b"\n") + 1)
        handle.write(json.dumps(row).encode() + b"\n")


# --- words --------------------------------------------------------------------------------------------------------


def _words(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _why_none(rows: Sequence[Row]) -> str:
    said = [row.get("error") or row.get("degenerate") for row in rows]
    return next((words for words in said if words), "none was tried.")


def _table(rows: Sequence[Row], chosen: int | None) -> list[str]:
    first = rows[0]["settings"] if rows else {}
    shared = {
        name: value
        for name, value in first.items()
        if len(rows) > 1 and all(name in row["settings"] and row["settings"][name] == value for row in rows)
    }
    told = [_words({n: v for n, v in row["settings"].items() if n not in shared}) for row in rows]
    width = min(46, max([8, *map(len, told)]))
    lines = [f"  {'settings':<{width}}  {'risk':>7} {'SE':>7} {'positive':>8} {'seconds':>8}  note"]
    for number, row in enumerate(rows):
        mark = "*" if number == chosen else " "
        words = told[number] if len(told[number]) <= width else told[number][: width - 3] + "..."
        if row["error"]:
            lines.append(f"{mark} {words:<{width}}  {'-':>7} {'-':>7} {'-':>8} {row['seconds']:>8.1f}  failed")
            continue
        positive = float(np.mean([fold["positive"] for fold in row["folds"]]))
        note = "degenerate" if row["degenerate"] else ""
        lines.append(
            f"{mark} {words:<{width}}  {row['value']:>7.4f} {row['standard_error']:>7.4f} {positive:>8.3f} "
            f"{row['seconds']:>8.1f}  {note}".rstrip()
        )
    return [*lines, f"  all: {_words(shared)}"] if shared else lines
