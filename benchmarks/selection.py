"""Choosing without labels against choosing on test labels; what is measured is not run again.

    USIMUL_DATA=<data folder> OMP_NUM_THREADS=1 python benchmarks/selection.py [--only SET ...] [--seeds 0 ...]

Every training appends one JSON line to ``benchmarks/results/selection.jsonl``; ``selection.md`` is made of them.

Eight candidates are trained on the same part of the tuples, after the pool was divided. The label-free choice is the
one of least estimated error on the held-out part, the oracle's the one of best test accuracy; both are then compared by
test accuracy, as trained, so that the difference is the price of not seeing labels and nothing else.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import textwrap
import time
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
ROWS, TABLE = RESULTS / "selection.jsonl", RESULTS / "selection.md"
COMMAND = "USIMUL_DATA=<data folder> OMP_NUM_THREADS=1 python benchmarks/selection.py"

SIZES = {"mnist": (3000, 6000), "fashion_mnist": (3000, 6000), "pendigits": (2000, 2000), "birdsong": (2000, 2000)}
METHODS = ("joint", "usimul-exact-abs")
CANDIDATES = tuple(product(("mlp", "mlp-dropout"), (1e-3, 3e-4), (6, 12)))
PRIOR, FRACTION, SEEDS = 0.4, 0.2, (0, 1, 2)
GOAL = 1.0

Setting = dict[str, Any]


def settings(names: Iterable[str] = tuple(SIZES), seeds: Iterable[int] = SEEDS) -> Iterator[Setting]:
    """Yield every training of the table; whole comparisons one after the other."""
    for seed, data, method in product(seeds, names, METHODS):
        for model, lr, epochs in CANDIDATES:
            yield {"data": data, "method": method, "seed": seed, "model": model, "lr": lr, "epochs": epochs}


@cache
def _data(name: str, seed: int) -> Any:
    from usimul.datasets import load_dataset

    return load_dataset(name) if name in ("mnist", "fashion_mnist") else load_dataset(name, random_state=seed)


@cache
def _drawn(name: str, seed: int) -> Any:
    from usimul import sample_triplets
    from usimul.splits import pool_split

    n, m = SIZES[name]
    data = _data(name, seed)
    sup = sample_triplets(data.y_train, n, n_unlabeled=m, prior=PRIOR, random_state=1000 + seed)
    return sup, pool_split(sup, FRACTION, random_state=seed)


def judge(clf: Any, setting: Setting, X: Any, held_out: Any, X_test: Any, y_test: Any) -> Setting:
    """Both estimates of the error without labels, and the accuracy on labels."""
    import numpy as np

    from usimul.metrics import accuracy

    found = clf.decision_function(X_test)
    row = {"accuracy": accuracy(y_test, found), "predicted_positive": float(np.mean(found >= 0))}
    for kind in ("second-moment", "position-aware"):
        risk = clf.weak_risk(X, held_out, kind=kind)
        row |= {kind: risk.value, f"{kind} error": risk.standard_error}
    return row


def run(setting: Setting) -> dict[str, Any]:
    """Draw, divide, train, judge; return one row."""
    import torch

    import usimul
    from usimul import WeakClassifier
    from usimul.datasets import resample_to_prior
    from usimul.splits import inside

    torch.set_num_threads(1)
    data = _data(setting["data"], setting["seed"])
    sup, split = _drawn(setting["data"], setting["seed"])
    clf = WeakClassifier(
        setting["method"],
        prior=PRIOR,
        model=setting["model"],
        lr=setting["lr"],
        epochs=setting["epochs"],
        prior_check="ignore",
        random_state=setting["seed"],
    )
    started, cpu = time.perf_counter(), time.process_time()
    clf.fit(data.X_train, inside(sup, split.train))
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    test = resample_to_prior(data.y_test, PRIOR, random_state=setting["seed"])
    found = judge(clf, setting, data.X_train, inside(sup, split.test), data.X_test[test], data.y_test[test])
    return {
        **setting,
        **found,
        "n_train": split.n_train,
        "n_held_out": split.n_test,
        "n_dropped": split.n_dropped,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "versions": {"usimul": usimul.__version__, "torch": torch.__version__, "python": platform.python_version()},
    }


# --- book-keeping -------------------------------------------------------------------------------------------------


def _key(row: Setting) -> str:
    return json.dumps([row[name] for name in ("data", "method", "seed", "model", "lr", "epochs")])


def _rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--table", action="store_true", help="make the table and run nothing")
    given = parser.parse_args()
    done = {_key(row) for row in _rows()}
    missing = [] if given.table else [s for s in settings(given.only, given.seeds) if _key(s) not in done]
    for number, setting in enumerate(missing, 1):
        row = run(setting)
        with ROWS.open("a") as handle:
            handle.write(json.dumps(row) + "\n")
        print(f"{number}/{len(missing)}", *setting.values(), row["second-moment"], row["accuracy"], flush=True)
    TABLE.write_text(table(_rows()))


# --- table --------------------------------------------------------------------------------------------------------


def comparisons(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield, for each set, method and seed with all candidates, what either choice is worth."""
    for data, method, seed in product(SIZES, METHODS, SEEDS):
        mine = [row for row in rows if (row["data"], row["method"], row["seed"]) == (data, method, seed)]
        if len(mine) < len(CANDIDATES):
            continue
        chosen = min(mine, key=lambda row: row["second-moment"])
        unbiased = min(mine, key=lambda row: row["position-aware"])
        yield {
            "data": data,
            "method": method,
            "seed": seed,
            "label-free": 100 * chosen["accuracy"],
            "position-aware": 100 * unbiased["accuracy"],
            "oracle": 100 * max(row["accuracy"] for row in mine),
            "any": 100 * statistics.mean(row["accuracy"] for row in mine),
            "error": 100 * chosen["second-moment error"],
            "off": 100 * (chosen["second-moment"] - (1 - chosen["accuracy"])),
            "held_out": chosen["n_held_out"],
            "dropped": chosen["n_dropped"],
        }


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _paragraph(text: str) -> str:
    return textwrap.fill(text, 118, break_on_hyphens=False)


def table(rows: list[dict[str, Any]]) -> str:
    """Return the page that is made from the rows."""
    found = list(comparisons(rows))
    versions = "; ".join(sorted({json.dumps(row["versions"], sort_keys=True) for row in rows})) or "-"
    out = [
        "# Choosing without labels",
        "",
        f"Made by `{COMMAND}`",
        f"from the rows in `selection.jsonl`; versions {versions}.",
        "",
        _paragraph(
            f"Prior {PRIOR:g}, world `definition1`. Candidates: `mlp` or `mlp-dropout`, rate 1e-3 or 3e-4, 6 or 12 "
            f"epochs. The pool is divided first, {100 * FRACTION:g} % of it held out (`usimul.splits.pool_split`); "
            "all candidates train on the rest. *Label-free* takes the candidate of least second-moment error estimate "
            "on the held-out tuples and unlabeled points, *oracle* the one of best test accuracy, *any* is the mean of "
            "all candidates: what a blind choice gives. All are test accuracies in percent of the same trained "
            "networks, mean over seeds; the test part is resampled to the prior. *Gap*: oracle minus label-free, mean "
            f"(largest); the goal is a mean of at most {GOAL:g}. *Position-aware* takes the unbiased estimate instead. "
            "*SE*: stated standard error of the chosen candidate's estimate, in points; *off*: mean of that estimate "
            "minus the true error, which choosing the least of eight makes too low."
        ),
        "",
        _paragraph(
            "Sizes: 3,000 triplets and 6,000 unlabeled points (MNIST, Fashion-MNIST), 2,000 and 2,000 (others), drawn "
            f"with replacement. All rows took {sum(row['cpu_seconds'] for row in rows) / 60:.0f} minutes of one core."
        ),
        "",
    ]
    head = ["set", "method", "seeds", "held out (dropped)", "any", "position-aware", "label-free", "oracle", "gap"]
    head += ["SE", "off"]
    out += [_line(head), _line(["---"] * len(head))]
    gaps: dict[str, list[float]] = {}
    for data, method in product(SIZES, METHODS):
        mine = [row for row in found if (row["data"], row["method"]) == (data, method)]
        if not mine:
            out.append(_line([data, f"`{method}`", *["-"] * (len(head) - 2)]))
            continue
        gap = [row["oracle"] - row["label-free"] for row in mine]
        gaps.setdefault(method, []).extend(gap)
        means = {name: statistics.mean(row[name] for row in mine) for name in mine[0] if name not in ("data", "method")}
        out.append(
            _line(
                [
                    data,
                    f"`{method}`",
                    str(len(mine)),
                    f"{means['held_out']:.0f} ({means['dropped']:.0f})",
                    *(f"{means[name]:.2f}" for name in ("any", "position-aware", "label-free", "oracle")),
                    f"{statistics.mean(gap):.2f} ({max(gap):.2f})",
                    f"{means['error']:.1f}",
                    f"{means['off']:+.1f}",
                ]
            )
        )
    out.append("")
    for method, values in gaps.items():
        out.append(f"- `{method}`: mean gap {statistics.mean(values):.2f} points over {len(values)} comparisons.")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    main()
