"""Does the interval of the label-free error cover the true error? What is measured is not run again.

    USIMUL_DATA=<data folder> OMP_NUM_THREADS=1 python benchmarks/coverage.py [--only mnist ...] [--seeds 40] [--table]

Every run trains one classifier and appends one JSON line to ``benchmarks/results/coverage.jsonl``. It holds counts
alone: how often each of the eight combinations of predicted classes occurs among the judging triplets, and the true
error. ``coverage.md`` is made from the lines by the intervals of the library, so that it follows when they change.

The true error is that of the population that the judging points are drawn from: the shares of wrong predictions among
the positives and among the negatives of the test part, weighted by the prior. It has no sampling error of its own.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import statistics
import textwrap
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


# --- table --------------------------------------------------------------------------------------------------------


def _intervals(row: dict[str, Any], draw: dict[str, Any]) -> dict[str, tuple[float, float, float]]:
    """Estimate and ends of the interval, of each kind, from the counts of one judging draw."""
    import numpy as np

    from usimul.event_error import event_error_of_counts
    from usimul.events import EVENTS
    from usimul.weak_risk import second_moment_risk

    counts, positive = np.array(draw["patterns"]), draw["unlabeled_positive"]
    negative = row["n_judging_unlabeled"] - positive
    likelihood = event_error_of_counts(counts, (negative, positive), row["prior"], EVENTS["triplet"])
    said = np.array(list(itertools.product((-1.0, 1.0), repeat=3))).repeat(counts, axis=0)
    risk = second_moment_risk(said, np.repeat([-1.0, 1.0], [negative, positive]), row["prior"])
    return {
        "likelihood": (likelihood.value, likelihood.low, likelihood.high),
        "second-moment": (risk.value, *risk.interval()),
    }


def _summary(rows: list[dict[str, Any]], kind: str, n_draws: int, found: dict[Any, Any]) -> list[str]:
    """Cells: share of intervals that cover, mean width, and mean and deviation of estimate minus truth."""
    cover, width, off = [], [], []
    for row in rows:
        for number in range(min(n_draws, len(row["draws"]))):
            value, low, high = found[row["data"], row["seed"], number][kind]
            cover.append(low <= row["error"] <= high)
            width.append(high - low)
            off.append(100 * (value - row["error"]))
    deviation = f" ± {statistics.stdev(off):.2f}" if len(off) > 1 else ""
    covered = f"{sum(cover)} of {len(cover)}, {100 * statistics.mean(cover):.1f} %"
    return [covered, f"{100 * statistics.mean(width):.1f}", f"{statistics.mean(off):+.2f}{deviation}"]


def write_table() -> None:
    """Write the table from the rows."""
    rows = list(_done().values())
    found = {
        (row["data"], row["seed"], number): _intervals(row, draw)
        for row in rows
        for number, draw in enumerate(row["draws"])
    }
    versions = "; ".join(sorted({json.dumps(row["versions"], sort_keys=True) for row in rows}))
    dates = sorted({row["when"] for row in rows})
    lines = [
        "# Does the label-free interval cover the true error?",
        "",
        f"Made by `{COMMAND}`",
        f"from the rows in `coverage.jsonl`; first {dates[0]}, last {dates[-1]}; versions {versions}.",
        "",
        *textwrap.wrap(
            f"Each run draws its own triplets (world `definition1`, prior {PRIOR:g}), trains `joint` with `mlp`, and "
            f"is judged by {N_JUDGING:,} fresh triplets and {N_JUDGING_UNLABELED:,} unlabeled points over the test "
            "part, at the nominal level of 95 %. The true error is that of the population these are drawn from: the "
            "shares of wrong predictions among the positives and the negatives of the test part, weighted by the "
            "prior. No run was left out. The seed decides the draws, the training and, of Pendigits and BirdSong, the "
            "split.",
            118,
        ),
        "",
        "`likelihood` is `usimul.event_error`; `second-moment` is `weak_risk` with its normal interval, 1.96 standard",
        "errors to each side. Widths and differences are in points of percent, the latter as mean ± deviation.",
        "",
    ]
    head = ["data", "estimate", "runs whose interval covers", "width", "estimate - truth"]
    for title, n_draws in (("One judging draw for each run", 1), (f"{DRAWS} judging draws for each run", DRAWS)):
        lines += [f"## {title}", "", "| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
        for name, kind in itertools.product([*SETS, "all"], ("likelihood", "second-moment")):
            mine = [row for row in rows if name in (row["data"], "all")]
            if mine:
                lines.append("| " + " | ".join([name, f"`{kind}`", *_summary(mine, kind, n_draws, found)]) + " |")
        lines.append("")
    lines += [
        "Draws that share a classifier share its true error, so the second table has fewer independent cases than"
    ]
    lines += ["lines.", "", "## The runs", ""]
    for name, size in SETS.items():
        mine = [row for row in rows if row["data"] == name]
        if mine:
            errors = sorted(100 * row["error"] for row in mine)
            lines.append(
                f"- {mine[0]['measured_on']}: {len(mine)} runs, {size['n']:,} triplets, {size['n_unlabeled']:,} "
                f"unlabeled points, {size['epochs']} epochs; true error {errors[0]:.1f} to {errors[-1]:.1f} %."
            )
    TABLE.write_text("\n".join([*lines, ""]))


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
    write_table()


if __name__ == "__main__":
    main()
