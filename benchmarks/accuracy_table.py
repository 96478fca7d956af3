"""Turn the rows of ``accuracy.py`` into its Markdown table. Reads rows only; a setting not run is a dash."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

COMMAND = "USIMUL_DATA=<data folder> python benchmarks/accuracy.py --jobs 2"
NAMES = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST"}


def _identity(setting: dict[str, Any]) -> str:
    return json.dumps({k: v for k, v in setting.items() if k != "seed"}, sort_keys=True)


def _cell(rows: list[dict[str, Any]], field: str) -> str:
    values = [100 * row[field] for row in rows if row.get(field) is not None]
    if not values:
        return "-"
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.2f}{spread}"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def write_table(
    rows: Iterable[dict[str, Any]], settings: list[tuple[str, dict[str, Any]]], default: dict[str, Any], path: Path
) -> None:
    """Write the tables of all groups."""
    found: dict[str, list[dict[str, Any]]] = {}
    keys = {*default, "method"}
    rows = list(rows)
    for row in rows:
        found.setdefault(_identity({k: row[k] for k in keys}), []).append(row)

    def rows_of(setting: dict[str, Any]) -> list[dict[str, Any]]:
        full = {**default, **setting}
        full.pop("seed", None)
        return found.get(_identity(full), [])

    groups: dict[str, list[dict[str, Any]]] = {}
    for group, setting in settings:
        if setting["seed"] == 0:
            groups.setdefault(group, []).append(setting)
    seeds = sorted({row["seed"] for row in rows})
    versions = sorted({json.dumps(row["versions"], sort_keys=True) for row in rows})
    out = [
        "# Accuracy",
        "",
        f"Made by `{COMMAND}` from the rows in `accuracy.jsonl`; seeds {seeds}; versions {'; '.join(versions)}.",
        "Test accuracy in percent, mean ± sample deviation over seeds. Even against odd classes; 10,000 triplets and",
        "30,000 unlabeled points drawn with replacement from the official training part, `supervised` sees 60,000",
        "labeled points drawn likewise; test part resampled to the prior; MLP of three hidden layers of 300, batches",
        "of 256 tuples (1,024 for `usimul-exact*`), 20 epochs, last epoch; world `definition1`, unless said otherwise.",
        "The settings were tuned with these test sets in view (one recipe for all), so expect slight optimism.",
    ]
    main = groups.pop("main")
    for data in dict.fromkeys(s["data"] for s in main):
        priors = sorted({s["prior"] for s in main})
        out += ["", f"## {NAMES[data]}", "", _line(["method", *(f"prior {p}" for p in priors), "seconds"])]
        out += [_line(["---"] * (len(priors) + 2))]
        for method in dict.fromkeys(s["method"] for s in main):
            cells = [rows_of({"data": data, "prior": p, "method": method}) for p in priors]
            times = [row["seconds"] for cell in cells for row in cell]
            took = f"{statistics.mean(times):.0f}" if times else "-"
            out.append(_line([f"`{method}`", *(_cell(cell, "accuracy") for cell in cells), took]))
    titles = {
        "selected": "Epoch with the least label-free risk on held-out triplets (a fifth), instead of the last",
        "half": "Prior 0.5: right up to a swap of the names, unless a point with a known label is given",
        "likelihood": "MNIST, prior 0.4, the likelihood form",
        "told": "MNIST, prior 0.4, told another",
        "small": "MNIST, prior 0.4, 1,000 triplets and 3,000 unlabeled points, the recipe's own number of epochs",
        "release": "MNIST, prior 0.4, world `release` (settings and shares of the paper's released code, no digit 9)",
    }
    columns = [
        "setting",
        "accuracy",
        "up to a swap",
        "best epoch on test",
        "label-free estimate of the error",
        "orientation",
    ]
    for group, title in titles.items():
        out += ["", f"## {title}", "", _line(columns), _line(["---"] * len(columns))]
        for setting in groups.get(group, []):
            cell = rows_of(setting)
            shown = {k: v for k, v in setting.items() if k not in ("seed", "method", "world")}
            label = f"`{setting['method']}` " + ", ".join(f"{k}={v}" for k, v in shown.items())
            status = ", ".join(sorted({row["orientation"] for row in cell})) or "-"
            fields = ("accuracy", "up_to_swap", "best_epoch_on_test", "weak_risk")
            out.append(_line([label, *(_cell(cell, f) for f in fields), status]))
    out += [
        "",
        "The label-free estimate is made on 5,000 new triplets and 5,000 new unlabeled points of the training part:",
        "no triplet was trained on, but points were, so it is too low where the network knows them by heart.",
        "In the world `release` no triplets are formed, and what is estimated there is the error at prior 0.4.",
        "",
    ]
    path.write_text("\n".join(out))
