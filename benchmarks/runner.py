"""What the runner of experiments costs beside the runs themselves, and whether its memory stays flat.

    python benchmarks/runner.py [--runs 500] [--many 2000]

Part 1: short runs on two workers; overhead is what of the workers' time is not spent inside runs, the start of the
workers and the import of torch included. Part 2: very short runs; resident memory of the runner and of its workers, at
a tenth of the runs and at the end. Writes ``benchmarks/results/runner.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from pathlib import Path

from usimul.experiments.runner import open_executor, run_missing
from usimul.experiments.spec import Run, RunSpec
from usimul.experiments.store import Store

RESULT = Path(__file__).parent / "results" / "runner.md"
JOBS = 2


def runs_of(n: int, epochs: int, n_tuples: int) -> list[Run]:
    """Return ``n`` runs that differ in their seed and take equally long."""
    options = json.dumps({"n_train": 2000, "n_test": 500, "prior": 0.4})
    spec = RunSpec(
        "gaussians", "usimul-exact-abs", 0.4, n_tuples, n_tuples, epochs=epochs, model="linear", data_options=options
    )
    return [Run(spec, seed) for seed in range(n)]


def resident(pid: int) -> float:
    """Resident memory of a process in MB, from /proc."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status[status.index("VmRSS:") :].split()[1]) / 1024


def workers() -> list[int]:
    """Process numbers of the workers of this process."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(c) for c in children if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()]


def overhead(n: int) -> dict[str, float]:
    """Run part 1."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        started = time.perf_counter()
        run_missing(runs_of(n, epochs=40, n_tuples=4000), store, open_executor(JOBS))
        wall = time.perf_counter() - started
        seconds = [row["seconds"] for row in store.refresh().values()]
        trained = [row["result"]["train_seconds"] for row in store.rows.values()]
    return {
        "runs": n,
        "each": sum(seconds) / n,
        "wall": wall,
        "in_runs": sum(seconds),
        "trained": sum(trained),
        "share": 1 - sum(seconds) / (JOBS * wall),
    }


def memory(n: int) -> list[tuple[int, float, float]]:
    """Run part 2: runs done, MB of the runner, MB of the largest worker."""
    seen: list[tuple[int, float, float]] = []
    marks = [n // 10, n // 2, n - 1]

    def progress(done: int, failed: int, total: int, seconds: float) -> None:
        found = workers()
        if found and len(seen) < len(marks) and done >= marks[len(seen)]:
            seen.append((done, resident(os.getpid()), max(resident(pid) for pid in found)))

    with tempfile.TemporaryDirectory() as folder:
        run_missing(runs_of(n, epochs=1, n_tuples=100), Store(Path(folder)), open_executor(JOBS), progress=progress)
    return seen


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--many", type=int, default=2000)
    arguments = parser.parse_args()
    first = overhead(arguments.runs)
    second = memory(arguments.many)
    lines = [
        "# Runner of experiments",
        "",
        f"`python benchmarks/runner.py --runs {arguments.runs} --many {arguments.many}`, {time.strftime('%Y-%m-%d')}; "
        f"{os.cpu_count()} cores, Python {platform.python_version()}, {JOBS} workers.",
        "",
        "## Overhead",
        "",
        f"{first['runs']} runs of {first['each']:.2f} s on average took {first['wall']:.0f} s: "
        f"{100 * first['share']:.1f} % of the workers' time was not spent inside runs, their start included. "
        "Aim: below 3 %.",
        f"Training itself was {100 * first['trained'] / first['in_runs']:.0f} % of the runs' time; the rest is drawing "
        "data and judging.",
        "",
        "## Memory",
        "",
        "| runs done | runner, MB | largest worker, MB |",
        "|---|---|---|",
        *(f"| {done:,} | {own:.0f} | {worker:.0f} |" for done, own, worker in second),
    ]
    RESULT.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
