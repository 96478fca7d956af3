"""What is said about a classifier in words: label-free error, share of positives, orientation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from usimul.validation import UsimulError
from usimul.weak_risk import WEAK_RISKS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from usimul.estimators import WeakClassifier
    from usimul.supervision import Supervision

__all__ = ["degenerate", "orientation_line", "risk_lines", "share_line"]

NEARLY_CONSTANT = 0.05  # of the smaller class's share: fewer predictions than that carry no information


def share_line(share: float, prior: float) -> str:
    """Share of predicted positives beside the prior."""
    return f"predicted positive   {share:.3f} of the points (prior {prior:g})"


def degenerate(share: float, prior: float) -> str | None:
    """Words for a predictor that gives nearly every point the same class; None for others."""
    limit = NEARLY_CONSTANT * min(prior, 1.0 - prior)
    if limit < share < 1.0 - limit:
        return None
    which = "positive" if share > 0.5 else "negative"
    return (
        f"the classifier calls {'all' if share in (0.0, 1.0) else 'nearly all'} points {which}, so it carries no "
        "information; an estimate of its error says little more than the prior does. "
        "Try --method joint, more tuples, or more epochs."
    )


def orientation_line(estimator: WeakClassifier) -> str:
    """Which class is called positive, and how that is known."""
    words = {
        "risk": "fixed by the training risk",
        "evidence": "decided from the data",
        "given": "fixed by points of known label",
        "unknown": "UNKNOWN: the two class names may be swapped; one labeled point would tell",
    }
    found = estimator.orientation_
    strength = "" if found.z is None else f" ({found.z:.1f} standard errors)"
    return f"class names          {words.get(found.status, found.status)}{strength}"


def risk_lines(estimator: WeakClassifier, X: NDArray[np.float32], sup: Supervision) -> list[str]:
    """Every estimate of the error that the supervision allows, with its interval."""
    from usimul.supervision import Triplets

    lines = []
    for kind in WEAK_RISKS if isinstance(sup, Triplets) else WEAK_RISKS[:1]:
        try:
            risk = estimator.weak_risk(X, sup, kind=kind)
        except UsimulError as error:
            why = " at prior 0.5" if estimator.prior_ == 0.5 else f": {error}"
            lines.append(f"  {kind:<18} not defined{why}")
            continue
        low, high = risk.interval()
        lines.append(
            f"  {risk.kind:<18} {risk.value:.4f} +- {risk.standard_error:.4f}   95% interval {low:.3f} to {high:.3f}"
        )
    return lines
