"""From a filled table to curves: what a figure shows, without any plotting library."""

from __future__ import annotations

import math
from dataclasses import dataclass

from usimul.experiments.grid import Cell
from usimul.experiments.spec import Run
from usimul.experiments.store import Row
from usimul.experiments.tables import Table
from usimul.report.charts import Series

__all__ = ["Panel", "panels"]


@dataclass(frozen=True)
class Panel:
    """One plot: its title and its curves."""

    title: str
    curves: tuple[Series, ...]


def panels(table: Table, rows: dict[str, Row]) -> list[Panel]:
    """Return one panel for each data set."""
    experiment = table.experiment
    if experiment.kind == "curve":
        return [
            Panel(
                column,
                tuple(
                    curve
                    for i, row in enumerate(experiment.rows)
                    if (cell := experiment.cell(row, column)) is not None
                    and (curve := _by_epoch(cell, experiment.seeds, rows, i)) is not None
                ),
            )
            for column in experiment.columns
        ]
    sets = list(dict.fromkeys(row.split(", ", 1)[1] for row in experiment.rows))
    return [Panel(name, tuple(_sweep(table, name))) for name in sets]


def _sweep(table: Table, name: str) -> list[Series]:
    found: list[Series] = []
    for row in [r for r in table.experiment.rows if r.endswith(f", {name}")]:
        places, values, spread = [], [], []
        for column in table.experiment.columns:
            cell = table.cell(row, column)
            if cell.mean is not None:
                places.append(float(column))
                values.append(cell.mean)
                spread.append(cell.deviation or 0.0)
        found.append(Series(row.split(", ", 1)[0], values, len(found), at=places, spread=spread))
    return found


def _by_epoch(cell: Cell, seeds: tuple[int, ...], rows: dict[str, Row], style: int) -> Series | None:
    """Mean over seeds of the accuracy after each epoch; runs that were longer are cut to the shortest."""
    curves = [
        row["result"]["by_epoch"]
        for seed in seeds
        if (row := rows.get(Run(cell.specs[0], seed).id)) is not None and row["status"] == "done"
    ]
    if not curves:
        return None
    length = min(len(curve) for curve in curves)
    means = [100 * sum(curve[i] for curve in curves) / len(curves) for i in range(length)]
    return Series(cell.row, [m if math.isfinite(m) else math.nan for m in means], style)
