"""One self-contained HTML page about a demo: table, curves as inline SVG, settings. It fetches nothing."""

from __future__ import annotations

from usimul.experiments.demo import DemoResult
from usimul.report.charts import Series, line_chart
from usimul.report.pages import page_environment

__all__ = ["render_demo"]


def render_demo(result: DemoResult) -> str:
    """Return the page."""
    constant = min(result.prior, 1.0 - result.prior)
    label_free = line_chart(
        [Series(row.method, row.label_free_risk, i) for i, row in enumerate(result.rows)],
        title="Label-free risk on test points by epoch, one curve for each method",
        x_label="epoch",
        y_label="label-free risk (error rate)",
        include=(0.0, 0.5),
        reference=(constant, "one class for all points"),
    )
    risks = [
        line_chart(
            [Series(row.method, row.risk, i)],
            title=f"Training risk of {row.method} by epoch",
            x_label="epoch",
            y_label="training risk (own units)",
        )
        for i, row in enumerate(result.rows)
    ]
    template = page_environment("usimul.experiments").get_template("demo.html")
    return template.render(result=result, label_free=label_free, risks=list(zip(result.rows, risks, strict=True)))
