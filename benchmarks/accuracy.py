"""Accuracy on real data, all settings of the committed table; what is already measured is not run again.

    USIMUL_DATA=<data folder> python benchmarks/accuracy.py [--jobs 2] [--only GROUP ...] [--table]

Every run appends one JSON line to ``benchmarks/results/accuracy.jsonl``; the table ``accuracy.md`` is made from that
file alone. Points are drawn with replacement from the official training part, the test part is resampled to the prior,
and the last epoch counts unless a row says otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
ROWS, TABLE = RESULTS / "accuracy.jsonl", RESULTS / "accuracy.md"

METHODS = ("usimul", "usimul-abs", "usimul-exact-abs", "joint-plain", "joint", "supervised")
# The released experiment: its network, batches of 256 points, Adam with rate 1e-4 times 0.8 an epoch, L2 penalty 1.
RELEASE = {"model": "mlp-shared", "batch_size": 106, "lr": 1e-4, "weight_decay": 1.0, "schedule": "exponential"}
DEFAULT = {
    "data": "mnist",
    "prior": 0.4,
    "told": None,
    "world": "definition1",
    "n": 10_000,
    "n_unlabeled": 30_000,
    "epochs": 20,
    "selection": "last",
    "known": 0,
    "options": {},
}


def settings() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (group, setting) for every run of the table."""
    for seed in range(3):
        for data in ("mnist", "fashion_mnist"):
            for prior in (0.4, 0.6, 0.2):
                for method in METHODS:
                    yield "main", {"data": data, "prior": prior, "method": method, "seed": seed}
        for data in ("mnist", "fashion_mnist"):
            yield "selected", {"data": data, "method": "usimul-exact-abs", "selection": "label-free", "seed": seed}
        yield "half", {"prior": 0.5, "method": "joint", "seed": seed}
        yield "half", {"prior": 0.5, "method": "joint", "known": 1, "seed": seed}
        yield "likelihood", {"method": "joint-likelihood", "seed": seed}
        for told in (0.35, 0.45):
            yield "told", {"told": told, "method": "joint", "seed": seed}
        small = {"n": 1000, "n_unlabeled": 3000, "epochs": None}
        yield "small", {"method": "joint", **small, "seed": seed}
        yield "small", {"method": "joint-plain", **small, "seed": seed}
        yield "release", {"method": "usimul", "world": "release", "n": 12_000, "n_unlabeled": 4931, "seed": seed}


@cache
def _data(name: str) -> Any:
    from usimul.datasets import load_dataset

    return load_dataset(name)


def run(setting: dict[str, Any]) -> dict[str, Any]:
    """Draw, train, judge; return one row."""
    import numpy as np
    import torch

    import usimul
    from usimul import WeakClassifier, sample_labels, sample_triplets
    from usimul.datasets import resample_to_prior
    from usimul.metrics import accuracy, accuracy_up_to_swap

    torch.set_num_threads(1)
    s = {**DEFAULT, **setting}
    data = _data(s["data"])
    rng = np.random.default_rng(1000 + s["seed"])
    labels = data.y_train
    if s["method"] == "supervised":  # as many points as the weak methods see
        sup: Any = sample_labels(labels, 3 * s["n"] + s["n_unlabeled"], prior=s["prior"], random_state=rng)
    elif s["world"] == "release":
        kept = np.flatnonzero(data.original_train != 9)
        drawn = sample_triplets(
            labels[kept],
            s["n"],
            n_unlabeled=s["n_unlabeled"],
            prior=0.4,
            world="release",
            replace=False,
            random_state=rng,
        )
        sup = type(drawn)(kept[drawn.rows], unlabeled=kept[drawn.unlabeled], n_points=len(labels), world="release")
    else:
        sup = sample_triplets(labels, s["n"], n_unlabeled=s["n_unlabeled"], prior=s["prior"], random_state=rng)
    if s["known"]:
        row = int(rng.integers(len(labels)))
        sup = sup.with_known_labels({row: int(labels[row])})
    # The released experiment drops digit 9 in both parts.
    able = np.flatnonzero(data.original_test != 9) if s["world"] == "release" else np.arange(len(data.y_test))
    test = able[resample_to_prior(data.y_test[able], s["prior"], random_state=s["seed"])]
    X_test, y_test = data.X_test[test], data.y_test[test]
    by_epoch: list[float] = []
    clf = WeakClassifier(
        s["method"],
        prior=s["told"] or s["prior"],
        prior_check="ignore",
        epochs=s["epochs"],
        selection=s["selection"],
        scaling="global",
        options=s["options"] or None,
        random_state=s["seed"],
        **(RELEASE if s["world"] == "release" else {}),
    )
    watch = s["world"] == "release"
    started = time.perf_counter()
    clf.fit(
        data.X_train, sup, watch=(lambda net: by_epoch.append(_test_accuracy(net, X_test, y_test))) if watch else None
    )
    seconds = time.perf_counter() - started
    found = clf.decision_function(X_test)
    held = sample_triplets(labels, 5000, n_unlabeled=5000, prior=s["prior"], random_state=rng)
    weak = clf.weak_risk(data.X_train, held)
    return {
        **s,
        "accuracy": accuracy(y_test, found),
        "up_to_swap": accuracy_up_to_swap(y_test, found),
        "best_epoch_on_test": max(by_epoch) if by_epoch else None,
        "weak_risk": weak.value,
        "weak_risk_error": weak.standard_error,
        "orientation": clf.orientation_.status,
        "flipped": clf.orientation_.flipped,
        "kept_epoch": clf.n_epochs_,
        "restarts": clf.n_restarts_,
        "n_test": len(test),
        "seconds": round(seconds, 1),
        "versions": {"usimul": usimul.__version__, "torch": torch.__version__, "python": platform.python_version()},
    }


def _test_accuracy(net: Any, X: Any, y: Any) -> float:
    from usimul.batching import pool_tensor
    from usimul.metrics import accuracy
    from usimul.training import scores

    return accuracy(y, scores(net, pool_tensor(X, "cpu")))


def _key(row: dict[str, Any]) -> str:
    return json.dumps([row["method"], row["seed"], *(row[name] for name in sorted(DEFAULT))], sort_keys=True)


def _done() -> dict[str, dict[str, Any]]:
    if not ROWS.exists():
        return {}
    return {_key(row): row for row in map(json.loads, ROWS.read_text().splitlines())}


def main() -> None:
    """Run what is missing, then write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="groups to run")
    parser.add_argument("--table", action="store_true", help="only write the table")
    args = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    done = _done()
    wanted = [(g, {**DEFAULT, **s}) for g, s in settings() if not args.only or g in args.only]
    missing = [] if args.table else [s for _, s in wanted if _key(s) not in done]
    with ProcessPoolExecutor(max_workers=args.jobs) as workers:
        futures = [workers.submit(run, setting) for setting in missing]
        for number, future in enumerate(as_completed(futures), 1):
            row = future.result()
            with ROWS.open("a") as handle:
                handle.write(json.dumps(row) + "\n")
            shown = ("data", "prior", "method", "seed", "world", "accuracy", "weak_risk", "seconds")
            print(f"{number}/{len(missing)}", *(row[name] for name in shown), flush=True)
    from accuracy_table import write_table

    write_table(_done().values(), list(settings()), DEFAULT, TABLE)


if __name__ == "__main__":
    sys.path.insert(0, os.fspath(Path(__file__).parent))
    main()
