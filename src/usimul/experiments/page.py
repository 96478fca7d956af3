"""One self-contained HTML page about a set of experiments: asked, run, found, how to repeat. It fetches nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from usimul.experiments.claims import CLAIMS, JUDGED, judge_claims
from usimul.experiments.curves import panels
from usimul.experiments.findings import findings
from usimul.experiments.store import Row
from usimul.experiments.tables import Table
from usimul.report.charts import line_chart
from usimul.report.pages import page_environment

__all__ = ["render_page"]


@dataclass(frozen=True)
class _Chart:
    title: str
    svg: Markup
    names: list[tuple[int, str]]


def _charts(table: Table, rows: dict[str, Row]) -> list[_Chart]:
    if table.experiment.kind == "table":
        return []
    found = []
    for panel in panels(table, rows):
        svg = line_chart(
            panel.curves,
            title=f"{table.experiment.title}: {panel.title}",
            x_label=table.experiment.axis,
            y_label="test accuracy (%)",
            include=(40.0, 100.0),
        )
        found.append(_Chart(panel.title, svg, [(curve.style, curve.name) for curve in panel.curves]))
    return found


def _code(text: str) -> Markup:
    """Set words between backticks as code."""
    parts = text.split("`")
    return Markup("").join(Markup("<code>{}</code>").format(p) if i % 2 else p for i, p in enumerate(parts))


def _made(tables: Sequence[Table], rows: dict[str, Row]) -> dict[str, Any]:
    """Where and when the rows of these tables were made."""
    wanted = {run.id for table in tables for run in table.experiment.runs()}
    used = [row for identity, row in rows.items() if identity in wanted]
    done = [row for row in used if row["status"] == "done"]
    versions = Counter(", ".join(f"{k} {v}" for k, v in row["versions"].items()) for row in done)
    where = Counter(f"{row['where']['system']}, {row['where']['cores']} cores" for row in done)
    return {
        "runs": len(done),
        "wanted": len(wanted),
        "failed": [row for row in used if row["status"] == "failed"],
        "first": min((row["when"] for row in done), default="-"),
        "last": max((row["when"] for row in done), default="-"),
        "hours": sum(row["seconds"] for row in done) / 3600,
        "versions": versions.most_common(),
        "where": where.most_common(),
        "measured": sorted({row["result"]["measured_on"] for row in done}),
    }


def render_page(
    tables: Sequence[Table], rows: dict[str, Row], *, heading: str, command: str, budget: str, extra: str = ""
) -> str:
    """Return the page.

    Parameters
    ----------
    tables
        Filled tables, in order.
    rows
        Of the store, by run id.
    heading
        Title of the page.
    command
        How to make it again.
    budget
        What the budget means, in words.
    extra
        A Markdown table that needs no runs, appended as it is in a box of fixed width letters.
    """
    sections = [
        {
            "table": table,
            "charts": _charts(table, rows),
            "findings": [_code(said) for said in findings(table)],
            "legend": [_code(line) for line in table.legend()],
        }
        for table in tables
    ]
    verdicts = {(verdict.claim.words, verdict.method): verdict for verdict in judge_claims(tables, rows)}
    claims = [
        (claim.words, claim.rule, [str(verdicts[claim.words, method]) for method in JUDGED])
        for claim in CLAIMS
        if any(verdicts[claim.words, method].seen for method in JUDGED)
    ]
    template = page_environment("usimul.experiments").get_template("reproduce.html")
    return template.render(
        sections=sections,
        claims=claims,
        judged=JUDGED,
        made=_made(tables, rows),
        heading=heading,
        command=command,
        budget=budget,
        extra=extra,
    )
