"""Plain words made from the numbers of a table: nothing here is written by hand about a particular result."""

from __future__ import annotations

from usimul.experiments.tables import CEILING, Table

__all__ = ["findings"]

PRINTED = ("usimul", "usimul-abs", "usimul-relu")
OURS = ("joint", "joint-plain", "joint-likelihood", "usimul-exact", "usimul-exact-abs", "usimul-exact-relu", "auto")


def _method(row: str) -> str:
    return row.split(",")[0]


def _world(table: Table) -> str:
    worlds = {spec.world for cell in table.experiment.cells for spec in cell.specs if spec.method.startswith("usimul")}
    return worlds.pop() if len(worlds) == 1 else "definition1"


def findings(table: Table) -> list[str]:
    """Return sentences on what the table shows, or that it shows nothing yet."""
    filled = {place: cell for place, cell in table.cells.items() if cell.mean is not None}
    if not filled:
        return ["No run of this experiment is in the store yet."]
    said = []
    if table.n_missing:
        said.append(f"{table.n_missing} of the planned runs are missing, so everything below is preliminary.")
    if table.experiment.kind == "sweep":
        said += _growth(table)
    else:
        said += [*_best(table), *_printed(table), *_gap(table)]
    if min(len(cell.values) for cell in filled.values()) < 3:
        said.append("Fewer than three seeds: differences of a point or two may be chance.")
    return said


def _means(table: Table, column: str) -> dict[str, float]:
    return {r: c.mean for r in table.experiment.rows if (c := table.cell(r, column)).mean is not None}


def _best(table: Table) -> list[str]:
    winners: dict[str, int] = {}
    columns = 0
    for column in table.experiment.columns:
        means = {row: m for row, m in _means(table, column).items() if _method(row) != CEILING}
        if len(means) > 1:
            columns += 1
            best = max(means, key=means.__getitem__)
            winners[best] = winners.get(best, 0) + 1
    if not columns:
        return []
    order = sorted(winners.items(), key=lambda item: -item[1])
    named = ", ".join(f"`{row}` in {n}" for row, n in order[:4])
    return [f"Best mean of a column, without counting `{CEILING}` ({columns} in all): {named}.", *_claim(table)]


def _claim(table: Table) -> list[str]:
    """Say in how many columns the paper's estimator is ahead of the published methods that it is compared with."""
    held, seen = 0, 0
    for column in table.experiment.columns:
        means = _means(table, column)
        printed = [m for row, m in means.items() if _method(row) in PRINTED]
        compared = [m for row, m in means.items() if _method(row) not in (*PRINTED, *OURS, CEILING)]
        if printed and compared:
            seen += 1
            held += max(printed) > max(compared)
    if not seen:
        return []
    return [
        f"The paper's claim that its estimator is ahead of the methods it compares with holds in {held} of {seen} "
        f"columns in the world `{_world(table)}`."
    ]


def _printed(table: Table) -> list[str]:
    below, seen = 0, 0
    for cell in table.experiment.cells:
        mean = table.cell(cell.row, cell.column).mean
        if mean is not None and cell.specs and cell.specs[0].method in PRINTED:
            seen += 1
            prior = cell.specs[0].prior
            below += mean < 100 * max(prior, 1 - prior) - 1e-9
    if not seen:
        return []
    return [
        f"The printed estimator stays below the share of the more frequent class, which needs no learning, in {below} "
        f"of {seen} cells."
    ]


def _gap(table: Table) -> list[str]:
    gaps: dict[str, list[float]] = {}
    for column in table.experiment.columns:
        means = _means(table, column)
        if CEILING in means:
            for row, mean in means.items():
                if _method(row) in ("joint", "usimul-exact-abs"):
                    gaps.setdefault(row, []).append(means[CEILING] - mean)
    return [
        f"`{row}` is {sum(g) / len(g):.1f} points below `{CEILING}` on average ({min(g):.1f} to {max(g):.1f})."
        for row, g in gaps.items()
    ]


def _growth(table: Table) -> list[str]:
    said = []
    for row in table.experiment.rows:
        means = [m for c in table.experiment.columns if (m := table.cell(row, c).mean) is not None]
        if len(means) > 1:
            change = means[-1] - means[0]
            word = "gains" if change >= 0 else "loses"
            said.append(
                f"`{row}` {word} {abs(change):.1f} points from the smallest to the largest amount "
                f"({means[0]:.1f} to {means[-1]:.1f})."
            )
    return said
