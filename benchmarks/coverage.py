"""Does the interval of the label-free error cover the true error? What is measured is not run again.

    USIMUL_DATA=<data folder> OMP_NUM_THREADS=1 python benchmarks/coverage.py [--only mnist ...] [--seeds 40] [--table]

Every run trains one classifier and appends one JSON line to ``benchmarks/results/coverage.jsonl``. The line holds counts
alone: how often each of the eight combinations of predicted classes occurs among the judging triplets, and the true
error. ``coverage.md`` is made from the lines by the intervals of the library, so that it follows when they change.

The true error is that of the population that the judging points are drawn from: the shares of wrong predictions among
the positives and among the negatives of the test part, weighted by the prior. It has no sampling error of its own.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from functools import cache
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
ROWS, TABLE = RESULTS / "coverage.jsonl", RESULTS / "coverage.md"
COMMAND = "USIMUL_DATA=<data folder> OMP_NUM_THREADS=1 python benchmarks/coverage.py"

SETS = {
    "mnist": {"n": 2000, "n_unlabeled": 4000, "epochs": 8},
    "fashion_mnist": {"n": 2000, "n_unlabeled": 4000, "epochs": 8},
    "pendigits": {"n": 1000, "n_unlabeled": 2000, "epochs": 20},
    "birdsong": {"n": 2000, "n_unlabeled": 2000, "epochs": 20},
}
PRIOR = 0.4
N_JUDGING, N_JUDGING_UNLABELED = 1500, 2000
DRAWS = 25
"""Judging draws for each trained classifier: the first makes the table's main column, all of them a finer one."""

Setting = dict[str, Any]


@cache
def _data(name: str, seed: int) -> Any:
    from usimul.datasets import load_dataset

    return load_dataset(name, random_state=seed)


def run(name: str, seed: int, keep: Path | None) -> dict[str, Any]:
    """Train, and judge by several draws of triplets over test points; return one row."""
    import numpy as np
    import torch

    import usimul
    from usimul import WeakClassifier, sample_triplets

    torch.set_num_threads(1)
    size = SETS[name]
    data = _data(name, seed if name in ("pendigits", "birdsong") else 0)
    sup = sample_triplets(
        data.y_train,
        size["n"],
        n_unlabeled=size["n_unlabeled"],
        prior=PRIOR,
        random_state=np.random.default_rng(1000 + seed),
    )
    started = time.process_time()
    clf = WeakClassifier("joint", prior=PRIOR, epochs=size["epochs"], prior_check="ignore", random_state=seed)
    clf.fit(data.X_train, sup)
    seconds = time.process_time() - started
    scores = clf.decision_function(data.X_test)
    wrong = (scores >= 0) != (data.y_test > 0)
    error = PRIOR * wrong[data.y_test > 0].mean() + (1 - PRIOR) * wrong[data.y_test < 0].mean()
    rng = np.random.default_rng(2000 + seed)
    draws = []
    for _ in range(DRAWS):
        judging = sample_triplets(
            data.y_test, N_JUDGING, n_unlabeled=N_JUDGING_UNLABELED, prior=PRIOR, random_state=rng
        )
        positive = (scores >= 0).astype(int)
        patterns = np.bincount(positive[judging.rows] @ [4, 2, 1], minlength=8)
        draws.append({"patterns": patterns.tolist(), "unlabeled_positive": int(positive[judging.unlabeled].sum())})
        if keep is not None and len(draws) == 1:
            keep.mkdir(exist_ok=True)
            np.savez(
                keep / f"{name}-{seed}.npz",
                scores=scores,
                y=data.y_test,
                rows=judging.rows,
                unlabeled=judging.unlabeled,
            )
    return {
        "data": name,
        "seed": seed,
        "prior": PRIOR,
        **size,
        "n_judging": N_JUDGING,
        "n_judging_unlabeled": N_JUDGING_UNLABELED,
        "measured_on": data.measured_on,
        "error": float(error),
        "orientation": clf.orientation_.status,
        "restarts": clf.n_restarts_,
        "draws": draws,
        "cpu_seconds": round(seconds, 1),
        "when": time.strftime("%Y-%m-%d"),
        "versions": {"usimul": usimul.__version__, "torch": torch.__version__, "python": platform.python_version()},
    }


def _done() -> dict[tuple[str, int], dict[str, Any]]:
    if not ROWS.exists():
        return {}
    rows = [json.loads(line) for line in ROWS.read_text().splitlines()]
    return {(row["data"], row["seed"]): row for row in rows}


def main() -> None:
    """Run what is missing, then write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=SETS, default=list(SETS), help="data sets to run")
    parser.add_argument("--seeds", type=int, default=40, help="number of seeds")
    parser.add_argument("--keep", type=Path, help="folder for the scores of each run")
    parser.add_argument("--table", action="store_true", help="only write the table")
    args = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    missing = [key for seed in range(args.seeds) for name in args.only if (key := (name, seed)) not in _done()]
    for number, (name, seed) in enumerate([] if args.table else missing, 1):
        row = run(name, seed, args.keep)
        with ROWS.open("a") as handle:
            handle.write(json.dumps(row) + "\n")
        print(f"{number}/{len(missing)}", name, seed, f"error {row['error']:.4f}", row["cpu_seconds"], flush=True)


if __name__ == "__main__":
    main()
