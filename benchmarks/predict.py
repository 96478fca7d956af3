"""Speed and memory of `usimul predict` on many rows, beside the bare forward passes of the same network.

    python benchmarks/predict.py [--folder FOLDER]

Each task runs in a process of its own, with one thread of torch: bare forward passes over some rows of the mapped .npy
file, the command on the whole file, and bare passes again. Bare: rows of the map as float32 tensors of 8,192, through
the network in evaluation mode, and nothing is done with the scores. The ratio is bare time over the time of the command
for each row, of wall-clock time and of processor time, which other processes on the machine disturb less. Peak: VmHWM
while the command runs, beyond the resident set before it (Linux only). Rows are appended to results/predict.jsonl as
they come, and what is there is not run again; the table is results/predict.md.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import gc
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from usimul.cli import main as usimul_command
from usimul.estimators import WeakClassifier
from usimul.export import load_classifier, save

RESULTS = Path(__file__).parent / "results"
N_FEATURES = 16
MILLION = 10**6
BARE_ROWS = MILLION  # before the command, and again after it
CHUNK = 1 << 17
STEP = 8192


@dataclass(frozen=True)
class Task:
    """One run of the command."""

    points: str
    output: str
    millions: int
    model: str = "mlp"
    extra: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return " ".join([self.model, f"{self.millions}M", self.points, "to", self.output, *self.extra])


TASKS = [
    Task(".npy", ".csv", 10),
    Task(".npy", ".csv", 1),
    Task(".npy", ".csv", 10, "linear"),
    Task(".npy", ".npy", 10, "linear"),
    Task(".csv", ".csv", 1),
    Task(".parquet", ".parquet", 1),
    Task(".jsonl", ".csv", 1),
    Task(".npy", ".parquet", 10),
    Task(".npy", ".npy", 10),
    Task(".csv", ".csv", 3),
    Task(".parquet", ".parquet", 3),
]


# --- files ------------------------------------------------------------------------------------------------------------


def blocks(n: int):
    """Numbers of rows and the rows, the same ones for every kind of file."""
    for number, start in enumerate(range(0, n, CHUNK)):
        rng = np.random.default_rng(number)
        yield start, rng.standard_normal((min(CHUNK, n - start), N_FEATURES), dtype=np.float32)


def make(path: Path, n: int) -> None:
    """Write points: tables have ids, arrays have none."""
    names = [f"f{i}" for i in range(N_FEATURES)]
    if path.exists():
        return
    part = path.with_suffix(".part")
    if path.suffix == ".npy":
        with part.open("wb") as handle:
            header = {"descr": "<f4", "fortran_order": False, "shape": (n, N_FEATURES)}
            np.lib.format.write_array_header_1_0(handle, header)
            for _, rows in blocks(n):
                handle.write(rows.tobytes())
    elif path.suffix == ".parquet":
        import pyarrow as pa
        from pyarrow import parquet

        schema = pa.schema([("id", pa.string()), *((name, pa.float32()) for name in names)])
        with parquet.ParquetWriter(part, schema) as writer:
            for start, rows in blocks(n):
                ids = [f"r{i}" for i in range(start, start + len(rows))]
                writer.write_table(pa.table([ids, *rows.T.copy()], schema=schema))
    else:
        with part.open("w", newline="") as handle:
            table = csv.writer(handle, lineterminator="\n")
            if path.suffix == ".csv":
                table.writerow(["id", *names])
            for start, rows in blocks(n):
                for i, row in enumerate(rows.tolist(), start):
                    if path.suffix == ".csv":
                        table.writerow([f"r{i}", *(f"{x:.7g}" for x in row)])
                    else:
                        cells = {"id": f"r{i}", **{name: float(f"{x:.7g}") for name, x in zip(names, row, strict=True)}}
                        handle.write(json.dumps(cells) + "\n")
    part.rename(path)


def make_model(folder: Path, name: str) -> None:
    if (folder / name).exists():
        return
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, N_FEATURES), dtype=np.float32)
    y = np.where(X[:, 0] + rng.standard_normal(2000) > 0, 1, -1)
    save(WeakClassifier("supervised", model=name, epochs=5, random_state=0).fit(X, y), folder / name)


# --- in a process of its own ------------------------------------------------------------------------------------------


def resident(name: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(name):
            return 1024 * int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no {name}: this benchmark needs Linux.")


def forget_peak() -> None:
    """Give back what is not used, and let VmHWM begin anew."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def timed(action: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - wall, time.process_time() - cpu


def bare(model: Path, points: Path) -> tuple[float, float]:
    """Seconds for a million rows."""
    module = load_classifier(model).module_.eval()
    X = np.load(points, mmap_mode="r")[:BARE_ROWS]

    def passes() -> None:
        with torch.inference_mode():
            for start in range(0, len(X), STEP):
                module(torch.from_numpy(np.array(X[start : start + STEP])))

    wall, cpu = timed(passes)
    return wall * MILLION / len(X), cpu * MILLION / len(X)


def measure(task: Task, folder: Path) -> dict[str, object]:
    torch.set_num_threads(1)
    points, model = folder / f"{task.millions}M{task.points}", folder / task.model
    mapped = folder / "10M.npy"
    with tempfile.TemporaryDirectory(dir=folder) as made:
        output = Path(made, f"predictions{task.output}")
        given = ["predict", str(model), str(points), "--output", str(output), *task.extra]
        first = bare(model, mapped)
        forget_peak()
        start = resident("VmRSS")
        wall, cpu = timed(lambda: usimul_command(given, standalone_mode=False))
        peak = resident("VmHWM") - start
        size = output.stat().st_size
    second = bare(model, mapped)
    walls, cpus = (first[0] + second[0]) / 2, (first[1] + second[1]) / 2
    return {
        "task": task.key,
        "rows": task.millions * MILLION,
        "seconds": wall,
        "cpu_seconds": cpu,
        "bare_seconds_per_million": walls,
        "bare_cpu_seconds_per_million": cpus,
        "ratio": walls * task.millions / wall,
        "cpu_ratio": cpus * task.millions / cpu,
        "start_bytes": start,
        "peak_bytes": peak,
        "input_bytes": points.stat().st_size,
        "output_bytes": size,
        "load": os.getloadavg()[0],
        "date": time.strftime("%Y-%m-%d"),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


# --- the table --------------------------------------------------------------------------------------------------------


def table(rows: list[dict]) -> str:
    first = rows[0]
    lines = [
        "# Predictions over long files",
        "",
        f"`python benchmarks/predict.py`, {first['date']}.",
        f"{os.cpu_count()} cores ({platform.machine()}), one thread of torch {first['torch']}, Python "
        f"{first['python']}; load {min(r['load'] for r in rows):.1f} to {max(r['load'] for r in rows):.1f}.",
        f"{N_FEATURES} float32 features; tables also have ids. Networks as `usimul train --model NAME` makes them.",
        "",
        "Ratio: time of bare forward passes of the same network over the time of `usimul predict`, for each row; both",
        "in one process, the passes before and after. Aim: at least 0.80 for 10 million rows of a `.npy` file with",
        "the default network, and memory that does not grow with the rows. Peak is beyond the start of the command.",
        "",
        "| network | rows | points | predictions | ratio, wall | ratio, CPU | seconds | rows a second | peak, MB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        model, _, points, _, output, *extra = r["task"].split()
        output = " ".join([output, *extra])
        lines.append(
            f"| {model} | {r['rows']:,} | {points}, {r['input_bytes'] / 1e6:.0f} MB "
            f"| {output}, {r['output_bytes'] / 1e6:.0f} MB | {r['ratio']:.2f} | {r['cpu_ratio']:.2f} "
            f"| {r['seconds']:.0f} | {r['rows'] / r['seconds']:,.0f} | {r['peak_bytes'] / 1e6:.0f} |"
        )
    lines += ["", "`linear` is one multiplication for each number: there reading and writing are all of the time.", ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, help="where the files are made and kept; default: a temporary folder")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        task = next(task for task in TASKS if task.key == arguments.measure)
        print(json.dumps(measure(task, arguments.folder)))
        return
    store = RESULTS / "predict.jsonl"
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.folder or Path(made)
        for task in TASKS:
            rows = [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []
            if any(row["task"] == task.key for row in rows):
                continue
            make_model(folder, task.model)
            make(folder / "10M.npy", 10 * MILLION)
            make(folder / f"{task.millions}M{task.points}", task.millions * MILLION)
            given = ["--folder", str(folder), "--measure", task.key]
            done = subprocess.run([sys.executable, __file__, *given], capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"{task.key} failed:\n{done.stderr}")
            line = done.stdout.splitlines()[-1]
            print(line, flush=True)
            with store.open("a") as handle:
                handle.write(line + "\n")
    found = {row["task"]: row for row in map(json.loads, store.read_text().splitlines())}
    (RESULTS / "predict.md").write_text(table([found[task.key] for task in TASKS if task.key in found]))


if __name__ == "__main__":
    main()
