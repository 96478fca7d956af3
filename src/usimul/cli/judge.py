"""What is said about a classifier in words: label-free error, share of positives, orientation."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from usimul.validation import PriorMismatchWarning, UndefinedAtHalfError, UsimulError
from usimul.weak_risk import WEAK_RISKS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from usimul.estimators import WeakClassifier
    from usimul.supervision import Supervision

__all__ = ["orientation_line", "risk_lines", "share_line"]


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
    from usimul.supervision import Triplets

    lines: list[str] = []
    for kind in WEAK_RISKS if isinstance(sup, Triplets) else WEAK_RISKS[:1]:
        try:
            with warnings.catch_warnings():
                if lines:  # the first estimate has warned
                    warnings.simplefilter("ignore", PriorMismatchWarning)
                risk = estimator.weak_risk(X, sup, kind=kind, prior=prior, wrong_yes=wrong_yes)
        except UndefinedAtHalfError:
            lines.append(f"  {kind:<18} not defined at prior 0.5")
            continue
        except UsimulError as error:
            lines.append(f"  {kind:<18} not defined: {error}")
            continue
        low, high = risk.interval()
        lines.append(
            f"  {risk.kind:<18} {risk.value:.4f} +- {risk.standard_error:.4f}   95% interval {low:.3f} to {high:.3f}"
        )
    return lines
