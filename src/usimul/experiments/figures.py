"""Figures as PNG, SVG or PDF files, drawn from a filled table; needs matplotlib."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from usimul.experiments.curves import panels
from usimul.experiments.store import Row
from usimul.experiments.tables import Table
from usimul.validation import missing_dependency

__all__ = ["save_figure"]

# Told apart without colour: line style and marker differ from curve to curve.
STYLES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1)), (0, (1, 1)), (0, (7, 2)), (0, (3, 1, 1, 1, 1, 1)))
MARKERS = "osv^DPX*"
# Okabe and Ito's colours, which also differ in lightness.
COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7f7f7f")


def save_figure(table: Table, rows: dict[str, Row], path: Path) -> Path:
    """Draw a sweep or a convergence experiment; the suffix of ``path`` decides the format."""
    try:
        matplotlib: Any = importlib.import_module("matplotlib")
    except ImportError as error:
        raise missing_dependency("matplotlib", "plots", "drawing figures") from error
    with matplotlib.rc_context({"backend": "Agg", "font.size": 9, "svg.hashsalt": "usimul"}):
        plt: Any = importlib.import_module("matplotlib.figure")
        found = panels(table, rows)
        figure = plt.Figure(figsize=(4.6 * len(found), 4.2), layout="constrained")
        for number, panel in enumerate(found):
            axes = figure.add_subplot(1, len(found), number + 1)
            for i, curve in enumerate(panel.curves):
                axes.errorbar(
                    curve.places,
                    curve.values,
                    yerr=curve.spread,
                    label=curve.name,
                    color=COLOURS[i % len(COLOURS)],
                    linestyle=STYLES[i % len(STYLES)],
                    marker=MARKERS[i % len(MARKERS)] if curve.at is not None else None,
                    markersize=4,
                    linewidth=1.4,
                    capsize=2,
                )
            axes.set_title(panel.title)
            axes.set_xlabel(table.experiment.axis)
            axes.set_ylabel("test accuracy (%)")
            axes.grid(alpha=0.3)
            if number == 0:  # one legend below all panels, where it hides no curve
                handles, labels = axes.get_legend_handles_labels()
                figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, dpi=160, metadata=metadata)
    return path
