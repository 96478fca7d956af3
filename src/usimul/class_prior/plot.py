"""The sensitivity to the prior as a picture, PNG, SVG or PDF; needs matplotlib."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from usimul.class_prior.result import Interval
from usimul.class_prior.sensitivity import Assumed
from usimul.validation import missing_dependency

__all__ = ["need_matplotlib", "save_sensitivity"]

LINE, SHADE, MARK = "#0072b2", "#56b4e9", "#d55e00"


def need_matplotlib() -> Any:
    """Return matplotlib, or say how to get it."""
    try:
        return importlib.import_module("matplotlib")
    except ImportError as error:
        raise missing_dependency("matplotlib", "plots", "drawing the sensitivity to the prior") from error


def save_sensitivity(
    rows: Sequence[Assumed],
    to: Path | IO[bytes],
    kind: str,
    *,
    estimate: float | None = None,
    interval: Interval | None = None,
    retrained: bool = False,
) -> None:
    """Draw risk and share of predicted positives against the assumed prior; ``kind`` is ``png``, ``svg`` or ``pdf``."""
    matplotlib = need_matplotlib()
    with matplotlib.rc_context({"backend": "Agg", "font.size": 9, "svg.hashsalt": "usimul"}):
        figure = importlib.import_module("matplotlib.figure").Figure(figsize=(8.4, 3.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        priors = [row.prior for row in rows]
        low = [max(0.0, row.risk - 1.96 * row.standard_error) for row in rows]
        high = [min(1.0, row.risk + 1.96 * row.standard_error) for row in rows]
        left.fill_between(priors, low, high, color=SHADE, alpha=0.35, linewidth=0, label="95 % interval")
        left.plot(priors, [row.risk for row in rows], "o-", color=LINE, markersize=4, label="label-free risk")
        left.set_ylim(bottom=0.0)
        left.set_ylabel("error rate, estimated without labels")
        right.plot(priors, [row.predicted_positive for row in rows], "o-", color=LINE, markersize=4, label="predicted")
        right.plot(priors, priors, ":", color="#555555", label="equal to the assumed prior")
        right.set_ylim(0.0, 1.0)
        right.set_ylabel("share of predicted positives")
        for axes in (left, right):
            if interval is not None:
                axes.axvspan(*interval, color=MARK, alpha=0.12, linewidth=0)
            if estimate is not None:
                axes.axvline(estimate, color=MARK, linewidth=1.2, label="estimated prior")
            axes.set_xlabel("assumed prior")
            axes.grid(alpha=0.3)
            axes.legend(fontsize=8, frameon=False)
        how = "trained again under each prior" if retrained else "one classifier, judged under each prior"
        figure.suptitle(f"Sensitivity to the prior: {how}", fontsize=10)
        figure.savefig(to, dpi=160, format=kind, metadata={"Date": None} if kind == "svg" else None)
