"""What wrong yes answers cost, and how much of it the correction brings back; what is measured is not run again.

    USIMUL_DATA=<data folder> OMP_NUM_THREADS=1 python benchmarks/noise.py [--only mnist ...] [--seeds 0 ...] [--table]

Every run appends one JSON line to ``benchmarks/results/noise.jsonl``; ``noise.md`` is made from the lines. One process:
the runs come one after the other, the ones that answer the question first.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import textwrap
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
ROWS, TABLE = RESULTS / "noise.jsonl", RESULTS / "noise.md"
COMMAND = "USIMUL_DATA=<data folder> OMP_NUM_THREADS=1 python benchmarks/noise.py"

SETS = ("mnist", "pendigits", "gaussians", "fashion_mnist")
METHODS = ("joint", "joint-likelihood", "usimul-exact-abs")
SEEDS = (0, 1, 2)
PRIOR, N_TRIPLETS, N_UNLABELED, EPOCHS = 0.4, 3000, 6000, 15
FEWER = 705  # clean triplets that tell as much as all of them with 10 % wrong: usimul.noise.information_kept
CLEAN, UNTOLD, TOLD, SAME = (0.0, 0.0, N_TRIPLETS), (0.1, 0.0, N_TRIPLETS), (0.1, 0.1, N_TRIPLETS), (0.0, 0.0, FEWER)
MORE = ((0.2, 0.0, N_TRIPLETS), (0.2, 0.2, N_TRIPLETS), (0.1, 0.05, N_TRIPLETS), (0.1, 0.15, N_TRIPLETS))
"""The true share of wrong yes answers, the one that the training is told, and the number of triplets."""

Setting = dict[str, Any]


def settings(names: Iterable[str] = SETS, seeds: Iterable[int] = SEEDS) -> Iterator[Setting]:
    """Yield every run of the table, each once; the ones that can be missed most easily last."""
    for cells in ((CLEAN, UNTOLD, TOLD, SAME), MORE):
        for seed in seeds:
            for data in names:
                for method in METHODS if cells is not MORE else METHODS[:1]:
                    for true, told, n in cells:
                        yield {
                            "data": data,
                            "method": method,
                            "wrong_yes": true,
                            "told": told,
                            "seed": seed,
                            "n": n,
                            "n_unlabeled": N_UNLABELED,
                            "epochs": EPOCHS,
                        }


@cache
def _data(name: str) -> Any:
    from usimul.datasets import load_dataset, make_gaussians

    if name == "gaussians":
        return make_gaussians(20_000, 20_000, prior=PRIOR, random_state=0)
    return load_dataset(name, random_state=0) if name == "pendigits" else load_dataset(name)


def run(setting: Setting) -> dict[str, Any]:
    """Draw, train, judge; return one row."""
    import numpy as np
    import torch

    import usimul
    from usimul.datasets import resample_to_prior
    from usimul.metrics import accuracy

    torch.set_num_threads(1)
    data, seed = _data(setting["data"]), setting["seed"]
    sup = usimul.sample_triplets(
        data.y_train,
        setting["n"],
        n_unlabeled=setting["n_unlabeled"],
        prior=PRIOR,
        wrong_yes=setting["wrong_yes"],
        random_state=np.random.default_rng(1000 + seed),
    )
    clf = usimul.USimULClassifier(
        setting["method"],
        prior=PRIOR,
        wrong_yes=setting["told"],
        prior_check="ignore",  # the untold and mis-told runs are wrong on purpose
        epochs=setting["epochs"] * (20 if setting["data"] == "gaussians" else 1),
        model="linear" if setting["data"] == "gaussians" else "mlp",
        scaling="feature" if setting["data"] in ("pendigits", "gaussians") else "global",
        random_state=seed,
    )
    cpu = time.process_time()
    clf.fit(data.X_train, sup)
    cpu = time.process_time() - cpu
    test = resample_to_prior(data.y_test, PRIOR, random_state=seed)
    found = clf.decision_function(data.X_test[test])
    # The same classifier judged by fresh noisy answers over test points, with and without being told the share.
    fresh = usimul.sample_triplets(
        data.y_test,
        N_TRIPLETS,
        n_unlabeled=N_TRIPLETS,
        prior=PRIOR,
        wrong_yes=setting["wrong_yes"],
        random_state=np.random.default_rng(2000 + seed),
    )
    judged = [clf.weak_risk(data.X_test, fresh, wrong_yes=told).value for told in (0.0, setting["wrong_yes"])]
    return {
        **setting,
        "accuracy": accuracy(data.y_test[test], found),
        "predicted_positive": float(np.mean(found >= 0)),
        "n_test": len(test),
        "weak_risk_untold": judged[0],
        "weak_risk_told": judged[1],
        "orientation": clf.orientation_.status,
        "cpu_seconds": round(cpu, 1),
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {"usimul": usimul.__version__, "torch": torch.__version__, "python": platform.python_version()},
    }


def _key(row: Setting) -> str:
    return json.dumps([row[n] for n in ("data", "method", "wrong_yes", "told", "seed", "n", "n_unlabeled", "epochs")])


def _done() -> dict[str, dict[str, Any]]:
    if not ROWS.exists():
        return {}
    return {_key(row): row for row in map(json.loads, ROWS.read_text().splitlines())}


# --- table --------------------------------------------------------------------------------------------------------


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _mean(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "-"
    values = [100 * row["accuracy"] for row in rows]
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    few = f" ({len(values)})" if len(values) < len(SEEDS) else ""
    return f"{statistics.mean(values):.1f}{spread}{few}"


def _recovered(best: list[dict[str, Any]], untold: list[dict[str, Any]], told: list[dict[str, Any]]) -> str:
    """Share of the way from the untold runs to the best ones, over the seeds that have all three runs."""
    by_seed = [{row["seed"]: row["accuracy"] for row in rows} for rows in (best, untold, told)]
    seeds = set.intersection(*(set(found) for found in by_seed))
    if not seeds:
        return "-"
    means = [statistics.mean(found[seed] for seed in seeds) for found in by_seed]
    cost = means[0] - means[1]
    return "nothing to bring back" if cost < 0.005 else f"{100 * (means[2] - means[1]) / cost:.0f} %"


def write_table() -> None:
    """Write the table from the rows of the present sizes."""
    wanted = {_key(setting) for setting in settings()}
    rows = [row for key, row in _done().items() if key in wanted]
    versions = "; ".join(sorted({json.dumps(row["versions"], sort_keys=True) for row in rows})) or "-"
    dates = sorted({row["date"] for row in rows}) or ["-"]
    text = (
        f"Test accuracy in percent, mean ± sample deviation over seeds {', '.join(map(str, SEEDS))}; a number in "
        "brackets: fewer seeds than that; a dash: not run. "
        f"Prior {PRIOR}, world `definition1`, {N_TRIPLETS:,} triplets "
        f"and {N_UNLABELED:,} unlabeled points drawn with replacement from the training part, network `mlp`, "
        f"{EPOCHS} epochs (the two Gaussians: linear, {20 * EPOCHS}), last epoch, test part resampled "
        "to the prior. Even against odd digits; Fashion-MNIST and "
        "Pendigits as their data sets divide them. The draw of answers differs between shares."
    )
    head = ["no wrong", "10 %, untold", "10 %, told", f"no wrong, {FEWER}", "of the cost", "of what can come back"]
    table = [_line(["set", "method", *head]), _line(["---"] * (len(head) + 2))]
    more = [_line(["set", "method", "20 %, untold", "20 %, told 20 %", "10 %, told 5 %", "10 %, told 15 %"])]
    more.append(_line(["---"] * 6))
    for data in SETS:
        for method in METHODS:
            mine = [row for row in rows if (row["data"], row["method"]) == (data, method)]
            clean, untold, told, same, *others = (
                [row for row in mine if (row["wrong_yes"], row["told"], row["n"]) == cell]
                for cell in (CLEAN, UNTOLD, TOLD, SAME, *MORE)
            )
            shares = [_recovered(best, untold, told) for best in (clean, same)]
            table.append(_line([data, f"`{method}`", *map(_mean, (clean, untold, told, same)), *shares]))
            if any(others):
                more.append(_line([data, f"`{method}`", *map(_mean, others)]))
    kept = 1 - 0.1 / (PRIOR * (1 - PRIOR))
    notes = (
        f"At prior {PRIOR} a share of 10 % wrong yes answers is much: with {100 * PRIOR * (1 - PRIOR):.0f} % a yes "
        f"says nothing at all, so the triplets carry the signal of {100 * kept:.0f} % right ones among random ones. "
        f"What that costs in variance no correction can bring back; it takes away the bias. The column "
        f"`no wrong, {FEWER}` shows what can: {FEWER} clean triplets tell as much about certain labels as "
        f"{N_TRIPLETS:,} of which 10 % are wrong (`usimul.noise.information_kept`). The last columns say how far being "
        "told goes from the untold result "
        "towards the clean one, and towards that of as much information."
    )
    judged = [row for row in rows if "weak_risk_told" in row and row["wrong_yes"]]
    head = ["wrong", "classifiers", "true error", "estimate, untold", "estimate, told", "mean gap, untold", "told"]
    risks = [_line(head), _line(["---"] * len(head))]
    for share in sorted({row["wrong_yes"] for row in judged}):
        some = [row for row in judged if row["wrong_yes"] == share]
        error = [1.0 - row["accuracy"] for row in some]
        found = [[row[name] for row in some] for name in ("weak_risk_untold", "weak_risk_told")]
        gaps = [statistics.mean(abs(a - b) for a, b in zip(part, error, strict=True)) for part in found]
        figures = [statistics.mean(part) for part in (error, *found)] + gaps
        risks.append(_line([f"{100 * share:.0f} %", str(len(some)), *(f"{100 * value:.1f}" for value in figures)]))
    on_risks = (
        f"Every classifier above was also judged without labels (second-moment risk) by {N_TRIPLETS:,} fresh triplets "
        "with the same share of wrong answers over test points. Means over all classifiers, in percent."
    )
    out = [
        "# Wrong yes answers",
        "",
        f"Made by `{COMMAND}`",
        f"from the rows in `noise.jsonl`; {dates[0]} to {dates[-1]}; versions {versions}.",
        "",
        *(textwrap.fill(part, 118, break_on_hyphens=False) + "\n" for part in (text, notes)),
        *table,
        "",
        "## Other shares",
        "",
        *more,
        "",
        "## The label-free estimate of the error",
        "",
        textwrap.fill(on_risks, 118, break_on_hyphens=False) + "\n",
        *risks,
        "",
    ]
    TABLE.write_text("\n".join(out))


def main() -> None:
    """Run what is missing, then write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=SETS, default=SETS, help="data sets to run")
    parser.add_argument("--seeds", nargs="*", type=int, choices=SEEDS, default=SEEDS, help="seeds to run")
    parser.add_argument("--table", action="store_true", help="only write the table")
    args = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    done = _done()
    missing = [] if args.table else [s for s in settings(args.only, args.seeds) if _key(s) not in done]
    for number, setting in enumerate(missing, 1):
        row = run(setting)
        with ROWS.open("a") as handle:
            handle.write(json.dumps(row) + "\n")
        shown = ("data", "method", "wrong_yes", "told", "seed", "accuracy", "cpu_seconds")
        print(f"{number}/{len(missing)}", *(row[name] for name in shown), flush=True)
    write_table()


if __name__ == "__main__":
    main()
