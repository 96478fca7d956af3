"""From rows of a store to tables: terminal, Markdown, LaTeX, CSV. Reads results; runs and imports nothing heavy."""

from __future__ import annotations

import csv
import io
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from usimul.experiments.grid import Cell, Experiment
from usimul.experiments.spec import Run
from usimul.experiments.store import Row
from usimul.validation import check_choice

__all__ = ["FORMATS", "SEARCHES", "CellResult", "Table", "make_table", "paired_p_values"]

SEARCHES = ("none", "label-free", "oracle")
LEVEL = 0.05
TEST_SEEDS = 3  # with two seeds a paired t-test calls next to nothing different
CEILING = "supervised"  # sees the labels, so it takes no part in the comparison


@dataclass(frozen=True)
class CellResult:
    """What the store says of one cell: a value for each seed that is there."""

    values: dict[int, float]
    wanted: int
    failed: int
    planned: bool
    paper: float | None = None
    rank: int = 0  # 1: best or not significantly worse than it; 2: best of the others

    @property
    def mean(self) -> float | None:
        """Mean in percent."""
        return None if not self.values else 100 * sum(self.values.values()) / len(self.values)

    @property
    def deviation(self) -> float | None:
        """Sample deviation in percent; None for a single seed."""
        if len(self.values) < 2 or self.mean is None:
            return None
        m = self.mean / 100
        return 100 * math.sqrt(sum((v - m) ** 2 for v in self.values.values()) / (len(self.values) - 1))

    def text(self, plus_minus: str = "±") -> str:
        """Mean and deviation, a dash if nothing was run; fewer seeds than wanted are marked."""
        if self.mean is None:
            return "failed" if self.failed else "-"
        spread = "" if self.deviation is None else f" {plus_minus} {self.deviation:.2f}"
        part = "" if len(self.values) == self.wanted else f" ({len(self.values)}/{self.wanted})"
        return f"{self.mean:.2f}{spread}{part}"


@dataclass(frozen=True)
class Table:
    """An experiment with its cells filled from a store."""

    experiment: Experiment
    cells: dict[tuple[str, str], CellResult]
    search: str
    correction: str
    selections: tuple[str, ...]
    measured: tuple[str, ...] = ()

    def cell(self, row: str, column: str) -> CellResult:
        """Return a cell; an empty one where the experiment has none."""
        return self.cells.get((row, column), CellResult({}, 0, 0, planned=False))

    @property
    def n_missing(self) -> int:
        """Number of runs that are planned and not in the store."""
        return sum(c.wanted - len(c.values) - c.failed for c in self.cells.values() if c.planned)

    def legend(self) -> list[str]:
        """Say what the numbers are."""
        seeds = len(self.experiment.seeds)
        chosen = " and ".join(self.selections)
        lines = [
            f"Test accuracy in percent, mean ± sample deviation over {seeds} seeds; epoch: {chosen}"
            + ("" if self.search == "none" else f"; settings searched by {self.search}")
            + ". A dash: not run.",
        ]
        if "oracle" in self.selections or self.search == "oracle":
            lines.append("ORACLE: chosen on test labels, as the paper did. Nobody without labels can do that.")
        test = "paired t-test over seeds at 5 %" + (", Holm's correction" if self.correction == "holm" else "")
        tested = f", and what is not significantly worse ({test})" if seeds >= TEST_SEEDS else ""
        lines.append(
            f"Bold: best of a column but for `{CEILING}`{tested}; cells with fewer seeds than others do not compete."
        )
        lines.append("Underlined: best of the others.")
        if any(row.startswith(("sconf", "confdiff")) for row in self.experiment.rows):
            lines.append(
                "`sconf-*` and `confdiff-*` learn from confidences of a classifier that was trained on the labels of "
                "the training points, which no annotator could give; the others but for `supervised` see answers only."
            )
        if self.experiment.paper:
            lines.append("[paper: ...]: the number that the paper reports, in its own protocol.")
        if self.measured:
            lines.append(f"Measured on (training / test points before any draw): {'; '.join(self.measured)}.")
        return [*lines, *self.experiment.notes]

    # --- formats ----------------------------------------------------------------------------------------------

    def _texts(self, best: tuple[str, str], second: tuple[str, str], plus_minus: str, paper: str) -> list[list[str]]:
        lines = []
        for row in self.experiment.rows:
            line = []
            for column in self.experiment.columns:
                cell = self.cell(row, column)
                text = cell.text(plus_minus)
                around = best if cell.rank == 1 else second if cell.rank == 2 else ("", "")
                text = f"{around[0]}{text}{around[1]}"
                line.append(text if cell.paper is None else f"{text} {paper.format(cell.paper)}")
            lines.append(line)
        return lines

    def terminal(self, width: int = 100) -> str:
        """Columns are folded into blocks that fit the width; ``*`` best, ``_`` second."""
        body = self._texts(("", "*"), ("", "_"), "±", "[paper {:g}]")
        first = max([len(r) for r in self.experiment.rows] + [6])
        sizes = [
            max(len(name), *(len(line[i]) for line in body)) if body else len(name)
            for i, name in enumerate(self.experiment.columns)
        ]
        out, start = [self.experiment.title, "=" * len(self.experiment.title)], 0
        while start < len(sizes):
            end, used = start, first
            while end < len(sizes) and (end == start or used + 2 + sizes[end] <= width):
                used += 2 + sizes[end]
                end += 1
            names = [self.experiment.columns[i].rjust(sizes[i]) for i in range(start, end)]
            out += ["", "  ".join(["method".ljust(first), *names])]
            out += [
                "  ".join([row.ljust(first), *(line[i].rjust(sizes[i]) for i in range(start, end))])
                for row, line in zip(self.experiment.rows, body, strict=True)
            ]
            start = end
        return "\n".join([*out, "", *(textwrap.fill(line, width) for line in self.legend())])

    def markdown(self) -> str:
        """Return a Markdown table with its legend."""
        body = self._texts(("**", "**"), ("<u>", "</u>"), "±", "[paper: {:g}]")
        head = ["method", *self.experiment.columns]
        lines = [f"## {self.experiment.title}", "", self.experiment.question, ""]
        lines += ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
        lines += [
            "| " + " | ".join([f"`{row}`", *line]) + " |" for row, line in zip(self.experiment.rows, body, strict=True)
        ]
        return "\n".join([*lines, "", *(f"{line}  " for line in self.legend())])

    def latex(self) -> str:
        """Return a ``table`` environment; needs the package booktabs."""
        body = self._texts((r"\textbf{", "}"), (r"\underline{", "}"), r"$\pm$", r"{{\footnotesize[paper: {:g}]}}")
        columns = len(self.experiment.columns)
        lines = [
            "% needs \\usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_tex(self.experiment.title)}. {' '.join(_tex(line) for line in self.legend())}}}",
            rf"\begin{{tabular}}{{l{'r' * columns}}}",
            r"\toprule",
            " & ".join(["method", *(_tex(c) for c in self.experiment.columns)]) + r" \\",
            r"\midrule",
        ]
        lines += [
            " & ".join([rf"\texttt{{{_tex(row)}}}", *line]) + r" \\"
            for row, line in zip(self.experiment.rows, body, strict=True)
        ]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])

    def csv(self) -> str:
        """One line a cell, with every seed's value."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(
            ["experiment", "row", "column", "mean", "deviation", "seeds", "wanted", "failed", "paper", "values"]
        )
        for (row, column), cell in self.cells.items():
            values = " ".join(f"{seed}:{value:.6f}" for seed, value in sorted(cell.values.items()))
            numbers = ["" if v is None else f"{v:.4f}" for v in (cell.mean, cell.deviation)]
            paper = "" if cell.paper is None else f"{cell.paper:g}"
            counts = [len(cell.values), cell.wanted, cell.failed]
            writer.writerow([self.experiment.name, row, column, *numbers, *counts, paper, values])
        return out.getvalue()


FORMATS = {"terminal": Table.terminal, "md": Table.markdown, "tex": Table.latex, "csv": Table.csv}


def _tex(text: str) -> str:
    for symbol, escaped in (("\\", r"\textbackslash "), ("&", r"\&"), ("%", r"\%"), ("_", r"\_"), ("#", r"\#")):
        text = text.replace(symbol, escaped)
    return text.replace("±", r"$\pm$").replace("`", "'")


def _value(row: Row, half: bool) -> float:
    result: dict[str, Any] = row["result"]
    return float(result["up_to_swap" if half else "accuracy"])


def _chosen(cell: Cell, seed: int, rows: dict[str, Row], search: str) -> tuple[float | None, bool]:
    """Return the value of a cell for a seed, and whether a run failed: of several settings, the searched one."""
    found = [rows[i] for spec in cell.specs if (i := Run(spec, seed).id) in rows]
    done = [row for row in found if row["status"] == "done"]
    # A search among settings of which some are missing would depend on what happens to be there.
    if not done or len(done) < len(cell.specs):
        return None, any(row["status"] == "failed" for row in found)
    if len(done) > 1 and search == "label-free":
        done.sort(key=lambda row: math.inf if row["result"]["own_risk"] is None else row["result"]["own_risk"])
    elif len(done) > 1 and search == "oracle":
        done.sort(key=lambda row: -_value(row, cell.specs[0].prior == 0.5))
    return _value(done[0], cell.specs[0].prior == 0.5), False


def make_table(
    experiment: Experiment, rows: dict[str, Row], *, search: str = "none", correction: str = "none"
) -> Table:
    """Fill the cells of an experiment.

    Parameters
    ----------
    experiment
        What is wanted.
    rows
        Of a store, by run id.
    search
        How one of several settings is chosen: ``"none"`` takes the first.
    correction
        ``"none"``, as in the paper, or ``"holm"`` for the number of comparisons in a column.
    """
    check_choice(search, SEARCHES, "search")
    check_choice(correction, ("none", "holm"), "correction")
    cells = {}
    for cell in experiment.cells:
        values, failed = {}, 0
        for seed in experiment.seeds:
            value, broken = _chosen(cell, seed, rows, search) if cell.specs else (None, False)
            if value is not None:
                values[seed] = value
            failed += broken
        wanted = len(experiment.seeds) if cell.specs else 0
        place = (cell.row, cell.column)
        cells[place] = CellResult(values, wanted, failed, bool(cell.specs), experiment.paper.get(place))
    for column in experiment.columns:
        for group in dict.fromkeys(_group(row) for row in experiment.rows):
            _rank([p for p in cells if p[1] == column and _group(p[0]) == group], cells, correction)
    measured = sorted(
        {
            row["result"]["measured_on"]
            for run in experiment.runs()
            if (row := rows.get(run.id)) is not None and row["status"] == "done"
        }
    )
    selections = tuple(dict.fromkeys(spec.selection for cell in experiment.cells for spec in cell.specs))
    return Table(experiment, cells, search, correction, selections, tuple(measured))


def _group(row: str) -> str:
    """Return the data set of a curve, "method, set"; methods are compared on one set."""
    return row.partition(", ")[2]


def _rank(column: list[tuple[str, str]], cells: dict[tuple[str, str], CellResult], correction: str) -> None:
    """Mark the best of a column and those that are not significantly worse, then the best of the others."""
    places = [p for p in column if cells[p].values and not p[0].startswith(CEILING)]
    # A mean over fewer seeds than the others is no match for them: seeds differ more than methods.
    most = max((len(cells[p].values) for p in places), default=0)
    places = [p for p in places if len(cells[p].values) == most]
    if len(places) < 2:
        return
    order = sorted(places, key=lambda p: -(cells[p].mean or 0.0))
    best = cells[order[0]]
    p_values = paired_p_values(best.values, [cells[p].values for p in order[1:]], correction)
    first = [order[0], *(p for p, value in zip(order[1:], p_values, strict=True) if value >= LEVEL)]
    rest = [p for p in order if p not in first]
    for places_of, rank in ((first, 1), (rest[:1], 2)):
        for place in places_of:
            cells[place] = CellResult(**{**cells[place].__dict__, "rank": rank})


def paired_p_values(
    best: dict[int, float], others: Sequence[dict[int, float]], correction: str = "none"
) -> list[float]:
    """Two-sided p-values of paired t-tests of each of ``others`` against ``best``, over the seeds that both have.

    Fewer than three common seeds can show next to nothing: the p-value is then 1 if the means agree and 0 if they
    differ, so that such a table marks its best number only.

    Examples
    --------
    >>> paired_p_values({0: 0.9, 1: 0.92, 2: 0.91}, [{0: 0.8, 1: 0.83, 2: 0.8}])[0] < 0.01
    True
    """
    found = [_paired_p_value(best, other) for other in others]
    if correction == "none":
        return found
    order = sorted(range(len(found)), key=found.__getitem__)
    adjusted, largest = [0.0] * len(found), 0.0
    for place, index in enumerate(order):
        largest = max(largest, min(1.0, (len(found) - place) * found[index]))
        adjusted[index] = largest
    return adjusted


def _paired_p_value(best: dict[int, float], other: dict[int, float]) -> float:
    seeds = sorted(set(best) & set(other))
    differences = [best[s] - other[s] for s in seeds]
    if not differences:
        return 0.0
    mean = sum(differences) / len(differences)
    if len(seeds) < TEST_SEEDS:
        return 1.0 if mean == 0 else 0.0
    variance = sum((d - mean) ** 2 for d in differences) / (len(differences) - 1)
    if variance == 0:
        return 1.0 if mean == 0 else 0.0
    from scipy.special import stdtr

    t = mean / math.sqrt(variance / len(differences))
    return float(2 * stdtr(len(differences) - 1, -abs(t)))
