"""The paper's claims, each a rule on the numbers of a table: where it holds, for its estimator and for ours.

A claim is tested cell by cell; the verdict is a count. The same rules and margins judge every estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from usimul.events import EVENTS
from usimul.experiments.disclosure import disclosure
from usimul.experiments.store import Row
from usimul.experiments.tables import CEILING, Table

__all__ = ["CLAIMS", "JUDGED", "Claim", "Verdict", "claims_markdown", "judge_claims"]

JUDGED = ("usimul", "usimul-abs", "usimul-exact-abs", "joint")
"""The paper's estimator as printed, without and with its correction; with right weights; the tuple-level one."""

COMPARED = ("sconf-", "pcomp-", "pc-auc", "pcu", "confdiff-")
WRONG_PRIOR = 3.0  # points of accuracy that a prior off by 0.05 may cost
STEADY = 2.0  # points that the last epoch may lie below the best one

Count = tuple[int, int]


@dataclass(frozen=True)
class Claim:
    """What the paper says, the rule that stands for it, and the experiments whose cells are counted."""

    words: str
    rule: str
    experiments: tuple[str, ...]
    count: Callable[[Table, str, dict[str, Row], Sequence[Table]], Count]


@dataclass(frozen=True)
class Verdict:
    """In how many of the cells that were run a claim holds, for one estimator."""

    claim: Claim
    method: str
    held: int
    seen: int

    def __str__(self) -> str:
        """``-`` if nothing was run, else a word and the count."""
        if not self.seen:
            return "-"
        word = "holds" if self.held == self.seen else "fails" if not self.held else "in part"
        return f"{word}: {self.held} of {self.seen}"


def _means(table: Table, column: str) -> dict[str, float]:
    return {row: m for row in table.experiment.rows if (m := table.cell(row, column).mean) is not None}


def _method(row: str) -> str:
    return row.partition(", ")[0]


def _ahead(table: Table, method: str, rows: dict[str, Row], tables: Sequence[Table]) -> Count:
    """Compare within a column; a method that the table leaves out is looked for in the same column of the others."""
    held = seen = 0
    for column in table.experiment.columns:
        means = _means(table, column)
        others_of = [found[method] for other in tables if method in (found := _means(other, column))]
        means = {**({method: others_of[0]} if others_of else {}), **means}
        others = [m for row, m in means.items() if row.startswith(COMPARED)]
        if method in means and others:
            seen, held = seen + 1, held + (means[method] > max(others))
    return held, seen


def _commoner(prior: float) -> float:
    """Accuracy of naming all points alike, in percent: what needs no learning."""
    return 100 * max(prior, 1 - prior) + 1e-9


def _learns(table: Table, method: str, rows: dict[str, Row], tables: Sequence[Table]) -> Count:
    """Count cells above the share of the commoner class, which needs no learning."""
    held = seen = 0
    for cell in table.experiment.cells:
        mean = table.cell(cell.row, cell.column).mean
        if _method(cell.row) == method and mean is not None and cell.specs:
            seen, held = seen + 1, held + (mean > _commoner(cell.specs[0].prior))
    return held, seen


def _correction(table: Table, method: str, rows: dict[str, Row], tables: Sequence[Table]) -> Count:
    plain = method.removesuffix("-abs")
    held = seen = 0
    for column in table.experiment.columns:
        means = _means(table, column)
        if plain != method and plain in means and method in means:
            seen, held = seen + 1, held + (means[method] > means[plain])
    return held, seen


def _wrong_prior(table: Table, method: str, rows: dict[str, Row], tables: Sequence[Table]) -> Count:
    """Compare each prior told that is off by 0.05 with the right one, on the same data; a constant bears nothing."""
    held = seen = 0
    cells = [c for c in table.experiment.cells if c.row == method and c.specs]
    right = {c.specs[0].data: table.cell(c.row, c.column).mean for c in cells if c.specs[0].told is None}
    for cell in cells:
        spec, mean = cell.specs[0], table.cell(cell.row, cell.column).mean
        best = right.get(spec.data)
        if spec.told is not None and abs(spec.told - spec.prior) < 0.06 and mean is not None and best is not None:
            seen, held = seen + 1, held + (mean > max(best - WRONG_PRIOR, _commoner(spec.prior)))
    return held, seen


def _more(table: Table, method: str, rows: dict[str, Row], tables: Sequence[Table]) -> Count:
    held = seen = 0
    for row in table.experiment.rows:
        means = [m for column in table.experiment.columns if (m := table.cell(row, column).mean) is not None]
        if _method(row) == method and len(means) == len(table.experiment.columns):
            seen, held = seen + 1, held + (means[-1] > means[0])
    return held, seen


def _steady(table: Table, method: str, rows: dict[str, Row], tables: Sequence[Table]) -> Count:
    from usimul.experiments.curves import panels

    held = seen = 0
    for panel in panels(table, rows):
        for curve in panel.curves:
            if curve.name == method:
                prior = table.experiment.cells[0].specs[0].prior
                least = max(max(curve.values) - STEADY, _commoner(prior))
                seen, held = seen + 1, held + (curve.values[-1] > least)
    return held, seen


TABLES = ("table1", "real-world-0.4", "real-world-0.6", "private-0.4", "private-0.6")

LEARNING = (*TABLES, "correction")

CLAIMS = (
    Claim(
        "It learns from triplets and unlabeled points.",
        "mean accuracy above the share of the commoner class",
        LEARNING,
        _learns,
    ),
    Claim(
        "It is ahead of the ten compared methods.",
        "mean accuracy above that of each of them, in a column",
        TABLES,
        _ahead,
    ),
    Claim(
        "The absolute-value correction helps.",
        "mean accuracy above that of the same risk without it",
        ("correction",),
        _correction,
    ),
    Claim(
        "It bears an inaccurate prior.",
        f"it learns, and told a prior off by 0.05 it loses less than {WRONG_PRIOR:g} points",
        ("wrong-prior-0.4", "wrong-prior-0.6"),
        _wrong_prior,
    ),
    Claim(
        "More triplets help.",
        "mean accuracy with all of them above that with a fifth",
        ("more-triplets-0.4", "more-triplets-0.6"),
        _more,
    ),
    Claim("More unlabeled points help.", "the same", ("more-unlabeled",), _more),
    Claim(
        "Training is steady.",
        f"it learns, and the last epoch lies less than {STEADY:g} points below the best one (means over seeds)",
        ("convergence",),
        _steady,
    ),
)


def judge_claims(tables: Sequence[Table], rows: dict[str, Row]) -> list[Verdict]:
    """Count for each claim and estimator where it holds in these tables.

    Parameters
    ----------
    tables
        Filled tables of one world; a claim whose experiments are not among them is not seen.
    rows
        Of the store, by run id; curves are read from them.
    """
    verdicts = []
    for claim in CLAIMS:
        about = [table for table in tables if table.experiment.name in claim.experiments]
        for method in JUDGED:
            counts = [claim.count(table, method, rows, tables) for table in about]
            verdicts.append(Verdict(claim, method, sum(c[0] for c in counts), sum(c[1] for c in counts)))
    return verdicts


def privacy_line() -> str:
    """Judge the claim that needs no runs, from the table of what one answer gives away."""
    found = disclosure(EVENTS["triplet"], 0.4)
    return (
        f"*Full privacy protection*: fails by enumeration, in any world where answers are true. A yes gives "
        f"{found.bits:.2f} bits about three labels at prior 0.4, and with the two other labels known it can decide the "
        f"third (certainty {found.rest_known:.2f})."
    )


def claims_markdown(verdicts: Sequence[Verdict], world: str) -> str:
    """Return the table of claims of one world."""
    lines = [
        f"## What the paper claims, in world `{world}`",
        "",
        "| claim | counted as holding where | " + " | ".join(f"`{method}`" for method in JUDGED) + " |",
        "| --- | --- |" + " --- |" * len(JUDGED),
    ]
    for claim in CLAIMS:
        found = {verdict.method: str(verdict) for verdict in verdicts if verdict.claim is claim}
        cells = [found.get(method, "-") for method in JUDGED]
        lines.append(f"| {claim.words} | {claim.rule} | " + " | ".join(cells) + " |")
    return "\n".join(
        [
            *lines,
            "",
            "`usimul` and `usimul-abs` are the estimator as printed; the other two are this library's. A count is of "
            "cells that were run; a dash: none was.",
            f"`{CEILING}` is not compared with. Differences are of means over seeds, without a test of significance.",
            "",
            privacy_line(),
        ]
    )
