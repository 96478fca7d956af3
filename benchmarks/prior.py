"""The prior estimated without labels, on real data; what is measured is not run again.

    USIMUL_DATA=<data folder> OMP_NUM_THREADS=1 python benchmarks/prior.py [--only birdsong ...] [--table]

Every run appends one JSON line to ``benchmarks/results/prior.jsonl``; ``prior.md`` is made from the lines.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import textwrap
import time
from itertools import product
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
ROWS, TABLE = RESULTS / "prior.jsonl", RESULTS / "prior.md"
COMMAND = "USIMUL_DATA=<data folder> OMP_NUM_THREADS=1 python benchmarks/prior.py"

SIZES = {"mnist": (3000, 6000), "fashion_mnist": (3000, 6000), "pendigits": (2000, 2000), "birdsong": (2000, 2000)}
GOALS = {"mnist": 0.03, "fashion_mnist": 0.03, "pendigits": 0.05, "birdsong": 0.05}
PRIORS = (0.2, 0.4, 0.7)
SEEDS = (0, 1, 2, 3, 4)
WAYS = {"likelihood": "triplets and unlabeled points", "acceptance": "counted answers", "auto": "both"}

Row = dict[str, Any]


def _remembered(bins: Any) -> Any:
    """The same seed trains the same classifiers, so `auto` need not train those of `likelihood` again."""
    last: dict[str, Any] = {}

    def remembered(X: Any, supervision: Any, **settings: Any) -> Any:
        if last.get("of") is not supervision:
            last.update(of=supervision, bins=bins(X, supervision, **settings))
        return last["bins"]

    remembered.cache_info = last
    return remembered


def run(name: str, prior: float, seed: int) -> Row:
    """Draw, estimate in all ways, and return one row."""
    import torch

    import usimul as us
    from usimul.class_prior import estimate as module
    from usimul.datasets import get_record

    torch.set_num_threads(1)
    if not hasattr(module._bins, "cache_info"):
        module._bins = _remembered(module._bins)
    n, n_unlabeled = SIZES[name]
    fixed = name in ("mnist", "fashion_mnist")  # their split is the publisher's
    data = us.load_dataset(name) if fixed else us.load_dataset(name, random_state=seed)
    sup = us.sample_triplets(data.y_train, n, n_unlabeled=n_unlabeled, prior=prior, random_state=1000 + seed)
    side = "minority" if prior < 0.5 else "majority"
    found = {}
    for way in WAYS:
        cpu = time.process_time()
        estimate = us.estimate_prior(
            sup,
            data.X_train,
            side=side,
            method=way,
            near_half="estimate",
            image_shape=data.image_shape,
            random_state=seed,
        )
        found[way] = {
            "value": estimate.value,
            "interval": estimate.interval,
            "profile_interval": estimate.profile_interval,
            "near_half": estimate.near_half,
            "cpu_seconds": round(time.process_time() - cpu, 2),
        }
    return {
        "data": name,
        "title": get_record(name).title,
        "task": data.task,
        "measured_on": data.measured_on,
        "prior": prior,
        "seed": seed,
        "n_triplets": n,
        "n_unlabeled": n_unlabeled,
        "n_asked": sup.n_asked,
        "found": found,
        "versions": {"usimul": us.__version__, "torch": torch.__version__, "python": platform.python_version()},
    }


def _key(row: Row) -> tuple[str, float, int]:
    return row["data"], row["prior"], row["seed"]


def _rows() -> list[Row]:
    return [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []


# --- table --------------------------------------------------------------------------------------------------------


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _errors(rows: list[Row], way: str) -> list[float]:
    return [abs(row["found"][way]["value"] - row["prior"]) for row in rows]


def _covered(rows: list[Row], way: str, kind: str = "interval") -> str:
    hits = [low <= row["prior"] <= high for row in rows for low, high in [row["found"][way][kind]]]
    return f"{sum(hits)} of {len(hits)}" if hits else "-"


def _mean(values: list[float], digits: int = 3) -> str:
    return f"{statistics.mean(values):.{digits}f}" if values else "-"


def table(rows: list[Row]) -> str:
    """Return the page."""
    versions = "; ".join(sorted({json.dumps(row["versions"], sort_keys=True) for row in rows})) or "-"
    out = [
        "# The prior, estimated without labels",
        "",
        f"Made by `{COMMAND}`",
        f"from the rows in `prior.jsonl`, {time.strftime('%Y-%m-%d')}; versions {versions}.",
        "",
        textwrap.fill(
            "World `definition1`; triplets and unlabeled points are drawn with replacement from the training part at "
            "the true prior; the seed decides the draw, the classifiers, and for Pendigits and BirdSong the split. The "
            "side is given, the prior is not. Default settings of `usimul.estimate_prior`. Mean |error| over seeds, in "
            "units of the prior; the goal is that of the likelihood.",
            118,
        ),
        "",
        "`likelihood` sees triplets and unlabeled points alone, `acceptance` the numbers of questions and of yes",
        "answers alone, `auto` both.",
        "",
    ]
    head = ["data", "triplets + unlabeled", "prior", "seeds", "goal", *(f"`{way}`" for way in WAYS), "largest error"]
    head += ["CPU seconds"]
    out += [_line(head), _line(["---"] * len(head))]
    for name, prior in product(SIZES, PRIORS):
        mine = [row for row in rows if row["data"] == name and row["prior"] == prior]
        sizes = " + ".join(f"{size:,}" for size in SIZES[name])
        cells = [_mean(_errors(mine, way)) for way in WAYS]
        largest = f"{max(_errors(mine, 'likelihood')):.3f}" if mine else "-"
        cpu = _mean([row["found"]["likelihood"]["cpu_seconds"] for row in mine], 1)
        out.append(_line([name, sizes, f"{prior:g}", str(len(mine)), f"{GOALS[name]:g}", *cells, largest, cpu]))
    out += [
        "",
        "Largest error and CPU seconds are those of `likelihood`.",
        "",
        "## Do the intervals cover?",
        "",
        "How many of the 95 % intervals hold the true prior. *Near 1/2*: how often the interval reached 1/2, where",
        "`estimate_prior` refuses unless told otherwise.",
        "",
    ]
    head = ["prior", "`likelihood`, as reported", "`likelihood`, profile only", "`acceptance`, Wilson", "`auto`"]
    head += ["near 1/2: `likelihood`", "`acceptance`", "`auto`"]
    out += [_line(head), _line(["---"] * len(head))]
    for prior in (*PRIORS, None):
        mine = [row for row in rows if prior is None or row["prior"] == prior]
        cells = [
            _covered(mine, "likelihood"),
            _covered(mine, "likelihood", "profile_interval"),
            _covered(mine, "acceptance"),
            _covered(mine, "auto"),
        ]
        near = [str(sum(row["found"][way]["near_half"] for row in mine)) for way in WAYS]
        out.append(_line(["all" if prior is None else f"{prior:g}", *cells, *near]))
    out += ["", "Measured on:", ""]
    out += [f"- {name}: {measured}" for name, measured in sorted({(r["title"], str(r["measured_on"])) for r in rows})]
    return "\n".join(out) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--table", action="store_true", help="only write the table")
    chosen = parser.parse_args()
    done = {_key(row) for row in _rows()}
    for seed, prior, name in product(chosen.seeds, PRIORS, chosen.only):
        if chosen.table or (name, prior, seed) in done:
            continue
        row = run(name, prior, seed)
        with ROWS.open("a") as handle:
            handle.write(json.dumps(row) + "\n")
        shown = {way: round(found["value"] - prior, 3) for way, found in row["found"].items()}
        print(name, prior, seed, shown, row["found"]["likelihood"]["cpu_seconds"], flush=True)
    TABLE.write_text(table(_rows()))


if __name__ == "__main__":
    main()
