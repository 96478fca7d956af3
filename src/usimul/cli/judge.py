"""What is said about a classifier in words: label-free error, share of positives, orientation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from usimul.assess import OnLabels
    from usimul.estimators import WeakClassifier
    from usimul.event_error import ErrorEstimate
    from usimul.intervals import Estimate
    from usimul.supervision import Supervision

__all__ = ["error_lines", "label_lines", "orientation_line", "risk_lines", "share_line"]

FEW_LABELS = 100  # fewer leave the accuracy open by five points or more to each side


def share_line(share: float, prior: float | None) -> str:
    """Share of predicted positives beside the prior."""
    known = "unknown" if prior is None else f"{prior:g}"
    return f"predicted positive   {share:.3f} of the points (prior {known})"


def orientation_line(estimator: WeakClassifier) -> str:
    """Which class is called positive, and how that is known."""
    from usimul.methods import get_method

    unbiased = get_method(estimator.method_).unbiased_for(estimator.world_)
    return f"class names          {estimator.orientation_.explain(unbiased=unbiased)}"


def risk_lines(
    estimator: WeakClassifier,
    X: NDArray[np.float32],
    sup: Supervision,
    prior: float | None = None,
    wrong_yes: float | None = None,
) -> list[str]:
    """Every estimate of the error that the supervision allows, with its interval; None is what the training had."""
    from usimul.assess import label_free_errors

    return error_lines(label_free_errors(estimator, X, sup, prior, wrong_yes=wrong_yes))


def error_lines(errors: Mapping[str, ErrorEstimate | str]) -> list[str]:
    """Return one line for each label-free estimate."""
    lines = []
    for kind, found in errors.items():
        if isinstance(found, str):
            lines.append(f"  {kind:<18} {found}")
            continue
        error = "" if found.standard_error is None else f" +- {found.standard_error:.4f}"
        nothing = ", says nothing here" if found.says_nothing else ""
        lines.append(
            f"  {kind:<18} {f'{found.value:.4f}{error}':<18}  95% interval {found.low:.3f} to {found.high:.3f}{nothing}"
        )
    return lines


def label_lines(found: OnLabels, swap: bool) -> list[str]:
    """Say what was measured on labels, one figure a line."""
    lines = [f"measured on {found.n:,} labels, share of positives {found.share_positive:.3f}:"]

    def line(name: str, figure: Estimate | None, note: str = "") -> str:
        if figure is None:
            return f"  {name:<18} -   {note or '(labels of one class only)'}".rstrip()
        value = f"{figure.value:.4f}"
        if not math.isfinite(figure.low):
            return f"  {name:<18} {value}"
        return f"  {name:<18} {value:<18}  95% interval {figure.low:.3f} to {figure.high:.3f}{note}"

    lines.append(line("accuracy", found.accuracy))
    if swap:
        best = max(found.accuracy.value, 1.0 - found.accuracy.value)
        lines.append(f"  {'up to a swap':<18} {best:.4f}   (the class names are unknown)")
    lines.append(line("balanced accuracy", found.balanced_accuracy))
    lines.append(line("AUC", found.area_under_curve))
    lines.append(line("Brier score", found.brier))
    lines.append(line("log loss", found.log_loss))
    lines.append(line("calibration error", found.calibration_error))
    lines.append(f"  {'  by chance':<18} {found.calibration_error_by_chance:.4f}   (if every probability were right)")
    lines.append("  probability        said    so      95% interval        points")
    for part in found.bins:
        so = part.observed
        interval = f"{so.low:.3f} to {so.high:.3f}"
        lines.append(f"  {'':<18} {part.predicted:.3f}   {so.value:.3f}   {interval:<16} {part.n:>9,}")
    if found.n < FEW_LABELS:
        lines.append(f"  note: {found.n} labels are few; read the intervals, not the figures")
    return lines
