"""What an estimate of the prior says: a value, an interval, how it was found, and what has to hold for it."""

from __future__ import annotations

import math
import textwrap
from dataclasses import asdict, dataclass
from typing import Any

from scipy.stats import norm

from usimul.validation import UndefinedAtHalfError

__all__ = ["HALF_MARGIN", "SIDES", "PriorEstimate", "PriorNearHalfError", "refuse_near_half"]

SIDES = ("minority", "majority")
"""Whether the positives are the rarer class or the commoner one."""

HALF_MARGIN = 1e-3  # an interval that ends this near to 1/2 reaches it

Interval = tuple[float, float]

HOW_TO_CHOOSE = (
    "Choose by what is known of the classes: side='minority' if the positives are the rarer class, 'majority' if they "
    "are the commoner one (--side on the command line). If nobody knows, label some points drawn at random."
)


@dataclass(frozen=True)
class PriorEstimate:
    """An estimate of the prior P(y = +1).

    Attributes
    ----------
    value
        The estimate; None where it is not known which of the two ``roots`` holds.
    interval
        At confidence ``level``; None with ``value``.
    level
        Confidence of the intervals.
    method
        ``acceptance``, ``likelihood``, ``labels``, or several joined by `` + ``.
    roots
        The two priors that fit equally well without knowing the side, or one if the names of the classes are known.
    root_intervals
        The interval of each root.
    side
        ``minority``, ``majority``, or None.
    assumptions
        What has to hold, in words.
    notes
        What else a reader should know of this estimate.
    profile_interval
        With ``likelihood``: the interval where the log likelihood is less than half a chi-square quantile below its
        maximum, beside the bootstrap interval.
    details
        Figures behind it, by name.
    """

    value: float | None
    interval: Interval | None
    level: float
    method: str
    roots: tuple[float, ...]
    root_intervals: tuple[Interval, ...]
    side: str | None
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()
    profile_interval: Interval | None = None
    details: tuple[tuple[str, float], ...] = ()

    @property
    def near_half(self) -> bool:
        """Whether an interval reaches 1/2 although the names of the classes hang on the side."""
        return len(self.roots) > 1 and max(interval[1] for interval in self.root_intervals[:1]) > 0.5 - HALF_MARGIN

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {**asdict(self), "near_half": self.near_half, "details": dict(self.details)}

    def __str__(self) -> str:
        percent = f"{100 * self.level:g}%"
        if self.value is not None and self.interval is not None:
            low, high = self.interval
            lines = [f"prior                {self.value:.4f}   {percent} interval {low:.4f} to {high:.4f}"]
        else:
            lines = ["prior                not known: two values fit equally well"]
            for root, (low, high) in zip(self.roots, self.root_intervals, strict=True):
                which = "rarer" if root <= 0.5 else "commoner"
                lines.append(f"  positives {which:<9}{root:.4f}   {percent} interval {low:.4f} to {high:.4f}")
            lines += _filled("how to choose        ", HOW_TO_CHOOSE)
        lines.append(f"method               {self.method}")
        for name, figure in self.details:
            lines.append(f"  {name:<19}{figure:,.6g}")
        for head, texts in (("assumes              ", self.assumptions), ("note                 ", self.notes)):
            for text in texts:
                lines += _filled(head, text)
        return "\n".join(lines)


def _filled(head: str, text: str) -> list[str]:
    return textwrap.wrap(text, 100, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False)


class PriorNearHalfError(UndefinedAtHalfError):
    """The prior cannot be told from 1/2; ``estimate`` holds what was found."""

    def __init__(self, message: str, estimate: PriorEstimate) -> None:
        super().__init__(message)
        self.estimate = estimate


def refuse_near_half(estimate: PriorEstimate) -> None:
    """Raise if the intervals of both roots merge at 1/2."""
    if not estimate.near_half:
        return
    (low, _), (_, high) = estimate.root_intervals[0], estimate.root_intervals[-1]
    percent = f"{100 * estimate.level:g} %"
    raise PriorNearHalfError(
        f"the prior cannot be told from 1/2: the {percent} intervals of both roots, {estimate.roots[0]:.3f} and "
        f"{estimate.roots[-1]:.3f} (method {estimate.method}), merge into one from {low:.3f} to {high:.3f}. Without a "
        "label p and 1 - p fit alike, and around 1/2 a small error of what is counted is a large one of p, so neither "
        f"value deserves trust. Label {_labels_for(0.05, estimate.level)} points drawn at random (labels=..., or "
        "--labels), which tells p to 0.05; or collect more tuples; or train with prior=0.5 by method='joint', which "
        "works at every prior and learns the classes up to a swap of their names, which one known label decides. "
        "To get the number all the same, pass near_half='estimate' (--near-half estimate).",
        estimate,
    )


def _labels_for(half_width: float, level: float) -> int:
    """How many labels give an interval of this half width at prior 1/2."""
    return math.ceil((float(norm.ppf(0.5 + 0.5 * level)) * 0.5 / half_width) ** 2)
