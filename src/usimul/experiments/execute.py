"""One run, from a spec and a seed to a row of results. Imports the heavy libraries when it is called, not before."""

from __future__ import annotations

import json
import math
import os
import platform
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from usimul.experiments.spec import Run, RunSpec
from usimul.experiments.store import Row, Store
from usimul.files import whole_file
from usimul.validation import DiskFullError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from usimul.datasets import Dataset
    from usimul.supervision import Supervision

__all__ = ["execute", "run_packed"]

RELEASE_SETTINGS = {"lr": 1e-4, "weight_decay": 1.0, "schedule": "exponential", "model": "mlp-shared"}
HELD_OUT = 2000  # tuples, and unlabeled points, on which a trained classifier is judged without labels
JUDGE_SHARE = 0.15  # of the training part: only these points are in tuples that judge
POOL_SEED, DRAW_SEED, POSTERIOR_SEED, JUDGE_SEED = 5000, 1000, 2000, 3000


@dataclass(frozen=True, eq=False)
class _Parts:
    """A data set, and its training part divided into rows to train on and rows to judge on without labels."""

    data: Dataset
    pool: NDArray[np.int64]
    judge: NDArray[np.int64]
    X: NDArray[np.float32]


@lru_cache(maxsize=2)
def _parts(data: str, task: str | None, edition: str | None, options: str, seed: int) -> _Parts:
    import numpy as np

    from usimul.datasets import get_record, load_dataset
    from usimul.datasets.base import stratified_split

    if get_record(data).make is not None:
        found = load_dataset(data, random_state=POOL_SEED + seed, **json.loads(options))
    else:
        found = load_dataset(data, task=task, edition=edition, random_state=seed)
    # Divided before anything is drawn: tuples that judge are of points that no method has seen.
    pool, judge = stratified_split(found.y_train, JUDGE_SHARE, np.random.default_rng(JUDGE_SEED + seed))
    return _Parts(found, pool, judge, found.X_train[pool])


def _posterior(spec: RunSpec, data: Dataset, seed: int, folder: Path) -> NDArray[np.float64]:
    """Confidences: exact where the data know them, else from an auxiliary classifier trained on all labels."""
    import numpy as np

    from usimul.posterior import fit_posterior, rescale

    if data.posterior_train is not None:
        drawn_at = json.loads(spec.data_options).get("prior", spec.prior)
        return rescale(data.posterior_train, drawn_at, spec.prior)
    content = RunSpec(spec.data, "supervised", 0.5, 1, 0, task=spec.task, edition=spec.edition, model=spec.model)
    path = folder / f"posterior-{content.key}-{seed}.npy"
    try:
        eta = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):  # not there, or not whole
        eta = fit_posterior(
            data.X_train,
            data.y_train,
            model=spec.model,
            image_shape=data.image_shape,  # type: ignore[arg-type]  # three sides for images
            random_state=POSTERIOR_SEED + seed,
        )
        with whole_file(path) as handle:
            np.save(handle, eta, allow_pickle=False)
    return rescale(eta, float(np.mean(data.y_train > 0)), spec.prior)


def _sizes(spec: RunSpec, width: int, uses_unlabeled: bool, triplets: bool) -> tuple[int, int]:
    """Tuples and unlabeled points: as many points for every method as 3 n + n_unlabeled."""
    if triplets:
        return spec.n, spec.n_unlabeled
    n_unlabeled = spec.n_unlabeled if uses_unlabeled else 0
    return max(2, (3 * spec.n + spec.n_unlabeled - n_unlabeled) // width), n_unlabeled


def _execute(spec: RunSpec, seed: int, folder: Path) -> dict[str, Any]:
    import numpy as np

    from usimul.datasets import resample_to_prior
    from usimul.estimators import WeakClassifier
    from usimul.methods import get_method
    from usimul.metrics import accuracy, accuracy_up_to_swap, area_under_curve, balanced_accuracy
    from usimul.sampling import draw, needs_posterior, sample_triplets
    from usimul.supervision import Triplets
    from usimul.validation import UsimulError

    method = get_method("joint" if spec.method == "auto" else spec.method)
    parts = _parts(spec.data, spec.task, spec.edition, spec.data_options, seed)
    data = parts.data
    rng = np.random.default_rng(DRAW_SEED + seed)
    n, n_unlabeled = _sizes(spec, method.supervision.width, method.uses_unlabeled, method.supervision is Triplets)
    eta = _posterior(spec, data, seed, folder) if needs_posterior(method.supervision) else None

    def sample(rows: NDArray[np.int64], n: int, n_unlabeled: int, world: str) -> Supervision:
        labels = data.y_train[rows]
        if method.supervision is Triplets:
            return sample_triplets(labels, n, n_unlabeled=n_unlabeled, prior=spec.prior, world=world, random_state=rng)
        return draw(
            method.supervision,
            labels,
            n,
            n_unlabeled=n_unlabeled,
            posterior=None if eta is None else eta[rows],
            prior=spec.prior,
            random_state=rng,
        )

    sup = sample(parts.pool, n, n_unlabeled, spec.world)
    test = resample_to_prior(data.y_test, spec.prior, random_state=seed)
    X_test, y_test = data.X_test[test], data.y_test[test]
    steps = max(1, round((n * method.supervision.width + n_unlabeled) / spec.step_points))
    settings: dict[str, Any] = {
        name: value
        for name in ("loss", "epochs", "lr", "weight_decay", "optimizer", "schedule", "model")
        if (value := getattr(spec, name)) is not None
    }
    if spec.world == "release":  # the settings of the released code, except where the spec says otherwise
        settings = {**RELEASE_SETTINGS, **{k: v for k, v in settings.items() if k != "model" or v != "mlp"}}
    clf = WeakClassifier(
        spec.method,
        prior=spec.prior if spec.told is None else spec.told,
        prior_check="ignore",
        batch_size=math.ceil((n + n_unlabeled) / steps),
        selection="label-free" if spec.selection == "label-free" else "last",
        scaling="global" if data.image_shape else "feature",
        image_shape=data.image_shape,  # type: ignore[arg-type]  # three sides for images
        options=json.loads(spec.options) or None,
        random_state=seed,
        **settings,
    )
    oracle = spec.selection == "oracle"
    watched = spec.curve or oracle
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.fit(parts.X, sup, watch=_accuracy_of(X_test, y_test) if watched else None)
    by_epoch = clf.history_["watched"]  # of the attempt that was kept, should training have started again
    found = clf.decision_function(X_test)
    result: dict[str, Any] = {
        "accuracy": max(by_epoch) if oracle else accuracy(y_test, found),
        "up_to_swap": max(max(a, 1 - a) for a in by_epoch) if oracle else accuracy_up_to_swap(y_test, found),
        "balanced_accuracy": balanced_accuracy(y_test, found),
        "auc": area_under_curve(y_test, found),
        "predicted_positive": float(np.mean(found >= 0)),
        "by_epoch": by_epoch if spec.curve else None,
        "risk": clf.history_["risk"] if spec.curve else None,
        "bayes": data.bayes_accuracy,
        "measured_on": data.measured_on,
        "n_tuples": n,
        "n_unlabeled": n_unlabeled,
        "n_points": sup.n_used,
        "n_test": len(test),
        "orientation": clf.orientation_.status,
        "restarts": clf.n_restarts_,
        "epochs": len(clf.history_["risk"]),
        "kept_epoch": clf.n_epochs_,
        "warnings": sorted({str(w.message) for w in caught}),
        "train_seconds": round(sum(clf.history_["seconds"]), 3),
    }
    try:
        world = "definition1" if spec.world == "release" else spec.world
        held = sample(parts.judge, HELD_OUT, HELD_OUT if n_unlabeled else 0, world)
        weak = clf.weak_risk(data.X_train[parts.judge], held)
        result["own_risk"], result["own_risk_error"] = weak.value, weak.standard_error
    except UsimulError as error:
        result["own_risk"], result["own_risk_note"] = None, str(error)
    return result


def _accuracy_of(X: Any, y: Any) -> Callable[[Any], float]:
    from usimul.batching import pool_tensor
    from usimul.metrics import accuracy
    from usimul.training import scores

    pool = pool_tensor(X, "cpu")

    return lambda net: accuracy(y, scores(net, pool))


def _versions() -> dict[str, str]:
    import numpy as np
    import torch

    from usimul import __version__

    return {
        "usimul": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def execute(run: Run, folder: Path) -> Row:
    """Do one run, with ``folder`` for what runs share; what goes wrong becomes a row with its traceback."""
    started, cpu = time.perf_counter(), time.process_time()
    row: Row = {"key": run.spec.key, "seed": run.seed, "spec": run.spec.to_dict()}
    try:
        row |= {"status": "done", "result": _execute(run.spec, run.seed, folder)}
    except DiskFullError:  # no fault of the run, and its row could not be written either
        raise
    except Exception as error:
        row |= {"status": "failed", "error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
    return row | {
        "seconds": round(time.perf_counter() - started, 3),
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        # No name of the machine: rows are made to be shared.
        "where": {"system": f"{platform.system()} {platform.machine()}", "cores": os.cpu_count()},
        "versions": _versions(),
    }


@cache
def _store(folder: str) -> Store:
    """Return this worker's view of a store, which knows what it has read."""
    return Store(Path(folder))


def run_packed(folder: str, runs: list[tuple[dict[str, Any], int]]) -> int:
    """Do several runs in this process, each written as soon as it is there; return how many were done here.

    The whole job of a worker. Everything that crosses to it is plain data, so that any executor can carry it.
    """
    import torch

    torch.set_num_threads(1)  # several workers with a full thread pool each only get in each other's way
    store = _store(folder)
    done = 0
    for content, seed in runs:
        run = Run(RunSpec.from_dict(content), seed)
        with store.claim(run.id) as free:
            if free:
                store.append(execute(run, store.folder / "cache"))
                done += 1
    return done
