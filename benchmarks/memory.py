"""Memory that training and prediction take on files larger than memory: resident peak over what the start takes.

    python benchmarks/memory.py [--sizes 1 5 20] [--folder FOLDER]

Makes sparse .npy files of 784 float32 features: the rows that the tuples use are real, all others are zero and take no
space on the disk; to a program that reads them the files are as long as they say. Each figure comes from a process of
its own: the peak of the resident set (VmHWM of /proc/self/status, so Linux only) while fitting or predicting, beyond
the resident set after the imports and a small training in memory. Prints Markdown, writes it to
benchmarks/results/memory.md, and deletes the files.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from usimul.cli import main as usimul_command
from usimul.estimators import WeakClassifier
from usimul.export import load_classifier, save
from usimul.sampling import sample_triplets
from usimul.supervision import Triplets, load_supervision

RESULT = Path(__file__).parent / "results" / "memory.md"
PRIOR = 0.4
GIGA = 10**9


@dataclass(frozen=True)
class Sizes:
    """What is trained, and how long."""

    n_features: int = 784
    n_triplets: int = 4000
    n_unlabeled: int = 4000
    epochs: int = 10

    @property
    def n_used(self) -> int:
        return 3 * self.n_triplets + self.n_unlabeled


def make_file(path: Path, n_bytes: int, sizes: Sizes) -> Triplets:
    """A sparse file of about so many bytes, and triplets and unlabeled points over all of its length."""
    n_points = max(n_bytes // (4 * sizes.n_features), sizes.n_used)
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(sizes.n_used) < PRIOR, 1, -1)
    real = rng.standard_normal((sizes.n_used, sizes.n_features), dtype=np.float32)
    real += (3.0 / np.sqrt(sizes.n_features) * labels[:, None]).astype(np.float32)
    place = np.linspace(0, n_points - 1, sizes.n_used).astype(np.int64)
    with path.open("wb") as handle:
        header = {"descr": "<f4", "fortran_order": False, "shape": (n_points, sizes.n_features)}
        np.lib.format.write_array_header_1_0(handle, header)
        start, row_bytes = handle.tell(), 4 * sizes.n_features
        for row, values in zip(place.tolist(), real, strict=True):
            handle.seek(start + row * row_bytes)
            handle.write(values.tobytes())
        handle.truncate(start + n_points * row_bytes)
    found = sample_triplets(
        labels, sizes.n_triplets, n_unlabeled=sizes.n_unlabeled, prior=PRIOR, replace=True, random_state=0
    )
    return Triplets(place[found.rows], unlabeled=place[found.unlabeled], n_points=n_points, world="definition1")


# --- in a process of its own ----------------------------------------------------------------------------------------


def resident(name: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(name):
            return 1024 * int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no {name}: this benchmark needs Linux.")


def classifier(sizes: Sizes) -> WeakClassifier:
    # Rows that are zero would decide a scaling by feature; the pass over the file that finds it is made all the same.
    return WeakClassifier("joint", prior=PRIOR, epochs=sizes.epochs, scaling="none", random_state=0)


def warm_up(folder: Path, sizes: Sizes) -> None:
    """What torch and scikit-learn load when they are first used belongs to the start."""
    small = Sizes(sizes.n_features, 300, 300, 1)
    sup = make_file(folder / "warm.npy", 0, small)
    clf = classifier(small).fit(np.load(folder / "warm.npy"), sup)
    clf.decision_function(np.load(folder / "warm.npy"))


def command(*given: object) -> None:
    usimul_command([str(word) for word in given], standalone_mode=False)


def measure(task: str, folder: Path, name: str, sizes: Sizes) -> dict[str, float]:
    points, supervision = folder / f"{name}.npy", folder / f"{name}.npz"
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(dir=folder) as own:
        warm_up(Path(own), sizes)
    sup = load_supervision(supervision)
    tasks: dict[str, Callable[[], object]] = {
        "fit": lambda: classifier(sizes).fit(np.load(points, mmap_mode="r"), sup),
        "fit in memory": lambda: classifier(sizes).fit(np.load(points), sup),
        "model": lambda: save(
            classifier(sizes).fit(np.load(points, mmap_mode="r"), sup), folder / "model", overwrite=True
        ),
        "usimul train": lambda: command(
            "train",
            points,
            supervision,
            "--prior",
            PRIOR,
            "--epochs",
            sizes.epochs,
            "--output",
            folder / "trained",
            "--scaling",
            "none",
            "--overwrite",
        ),
        "usimul evaluate": lambda: command("evaluate", folder / "model", points, "--supervision", supervision),
        "usimul predict": lambda: command("predict", folder / "model", points, "--output", folder / f"{name}.csv"),
        "decision_function": lambda: load_classifier(folder / "model").decision_function(
            np.load(points, mmap_mode="r")
        ),
    }
    start, began = resident("VmRSS"), time.perf_counter()
    tasks[task]()
    return {"start": start, "peak": resident("VmHWM") - start, "seconds": time.perf_counter() - began}


def run(task: str, folder: Path, name: str, sizes: Sizes) -> dict[str, float]:
    """Measure one task in a fresh process."""
    given = [task, str(folder), name, json.dumps(asdict(sizes))]
    done = subprocess.run([sys.executable, __file__, "--measure", *given], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{task} on {name} failed:\n{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


# --- the table ------------------------------------------------------------------------------------------------------


def write_pair(folder: Path, name: str, n_bytes: int, sizes: Sizes) -> None:
    make_file(folder / f"{name}.npy", n_bytes, sizes).save(folder / f"{name}.npz")


def report(folder: Path, gigabytes: list[float], sizes: Sizes) -> list[str]:
    lines = [
        "# Memory",
        "",
        f"`python benchmarks/memory.py --sizes {' '.join(f'{size:g}' for size in gigabytes)}`, "
        f"{time.strftime('%Y-%m-%d')}.",
        f"{os.cpu_count()} cores ({platform.machine()}), {platform.system()} {platform.release().split('-')[0]}, "
        f"Python {platform.python_version()}, torch {torch.__version__}, "
        f"threads of torch: {torch.get_num_threads()}; load {os.getloadavg()[0]:.1f} at the start.",
        f"Sparse files of {sizes.n_features} float32 features; `joint`, mlp, {sizes.n_triplets:,} triplets and "
        f"{sizes.n_unlabeled:,} unlabeled points",
        f"over the whole file, {sizes.epochs} epochs of {-(-(sizes.n_triplets + sizes.n_unlabeled) // 256)} steps.",
        "Peak: VmHWM of a fresh process, beyond its resident set after the imports and a small training in memory",
        "(column start). Aim: under 2 GB at 20 GB, and flat. `fit in memory` is the same on `np.load` without mapping.",
        "",
        "| task | file, GB | rows | start, MB | peak beyond it, MB | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for number, size in enumerate(gigabytes):
        name = f"{size:g}"
        write_pair(folder, name, round(size * GIGA), sizes)
        tasks = ["fit"] + (["fit in memory", "model"] if number == 0 else [])
        tasks += ["usimul predict", "decision_function"] if size <= 5 else []
        for task in tasks:
            found = run(task, folder, name, sizes)
            if task == "model":  # only made for the predictions that follow
                continue
            rows = len(np.load(folder / f"{name}.npy", mmap_mode="r"))
            lines.append(
                f"| {task} | {name} | {rows:,} | {found['start'] / 1e6:.0f} | {found['peak'] / 1e6:.0f} "
                f"| {found['seconds']:.1f} |"
            )
            print(lines[-1], flush=True)
        (folder / f"{name}.npy").unlink()
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=float, nargs="+", default=[1, 5, 20], help="of the files, in GB")
    parser.add_argument("--folder", type=Path, help="where the files are made; default: a temporary folder")
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        task, folder, name, sizes = arguments.measure
        print(json.dumps(measure(task, Path(folder), name, Sizes(**json.loads(sizes)))))
        return
    sizes = Sizes()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as made:
        needed = 4 * sizes.n_used * sizes.n_features * 4  # a row in the middle of zeros takes whole pages
        if shutil.disk_usage(made).free < needed:
            sys.exit(f"The folder needs {needed / 1e6:.0f} MB of free space; name another with --folder.")
        lines = report(Path(made), arguments.sizes, sizes)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
