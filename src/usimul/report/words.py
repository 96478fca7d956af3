"""What the numbers of a report mean, in sentences that are made from the numbers alone."""

from __future__ import annotations

from usimul.assess import Assessment
from usimul.event_error import ErrorEstimate
from usimul.intervals import wilson_interval

__all__ = ["best_error", "limits", "verdict"]

FAR = 0.1  # share of predicted positives and prior
FEW_LABELS, FEW_TUPLES = 100, 100


def best_error(errors: dict[str, ErrorEstimate | str]) -> ErrorEstimate | None:
    """Return the first estimate that is one; they come in the order of preference."""
    return next((found for found in errors.values() if isinstance(found, ErrorEstimate)), None)


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def verdict(found: Assessment, constant: str | None = None) -> list[str]:
    """Sentences on how good the classifier is, and on what speaks against believing that.

    ``constant`` are words for a classifier that says nearly the same of all points.
    """
    said = [] if constant is None else [constant[0].upper() + constant[1:]]
    said += _on_error(found, best_error(found.errors)) + _on_labels(found)
    if found.trained_points and (found.errors or found.labels):
        said.append("These points seem to be those of the training: the error on new points may be much higher.")
    if found.orientation == "unknown":
        said.append(
            "Which class is which is unknown: the two names may be swapped, and one point of known label would tell."
        )
    if found.prior is not None and constant is None and abs(found.share_positive - found.prior) > FAR:
        said.append(
            f"It calls {_percent(found.share_positive)} of the points positive, far from the stated share of "
            f"{_percent(found.prior)}: the points have another share of positives, or it is wrong in one direction."
        )
    return said


def _on_error(found: Assessment, error: ErrorEstimate | None) -> list[str]:
    if error is None:
        return (
            []
            if found.labels
            else ["Nobody has judged this classifier yet: neither fresh tuples nor labels are given."]
        )
    if error.says_nothing:
        return [
            f"How often it is wrong cannot be told without labels: the estimate from {error.n_tuples:,} tuples says "
            f"nothing here (95 % interval {_percent(error.low)} to {_percent(error.high)})."
        ]
    said = [
        f"Estimated without labels, it is wrong on {_percent(error.value)} of points like these "
        f"(95 % interval {_percent(error.low)} to {_percent(error.high)}, from {error.n_tuples:,} tuples)."
    ]
    if found.prior is not None:
        said[0] += " " + _against_constant(error.low, error.high, min(found.prior, 1.0 - found.prior))
    if error.n_tuples < FEW_TUPLES:
        said.append(f"{error.n_tuples} tuples are few: the interval, not the number before it, is what is known.")
    return said


def _against_constant(low: float, high: float, constant: float) -> str:
    other = f"naming all points alike is wrong on {_percent(constant)}"
    if high < constant:
        return f"That is better than a guess: {other}."
    if low >= constant:
        return f"That is no better than a guess: {other}."
    return f"Whether that is better than a guess is not certain: {other}."


def _on_labels(found: Assessment) -> list[str]:
    labels = found.labels
    if labels is None:
        return []
    wrong = 1.0 - labels.accuracy.value
    low, high = 1.0 - labels.accuracy.high, 1.0 - labels.accuracy.low
    guess = min(labels.share_positive, 1.0 - labels.share_positive)
    said = [
        f"Measured on {labels.n:,} labels, it is wrong on {_percent(wrong)} of the points (95 % interval "
        f"{_percent(low)} to {_percent(high)}). {_against_constant(low, high, guess)}"
    ]
    if found.prior is not None:
        share = wilson_interval(round(labels.share_positive * labels.n), labels.n)
        if not share.low <= found.prior <= share.high:
            said.append(
                f"{_percent(labels.share_positive)} of the labels are positive, not the stated {_percent(found.prior)}"
                ": what was measured on them holds for their share."
            )
    error = best_error(found.errors)
    if error is not None and not error.says_nothing:
        agree = error.low <= high and low <= error.high
        said.append(
            "The intervals with and without labels overlap."
            if agree
            else "The intervals with and without labels do not overlap: the stated share of positives, or the way the "
            "tuples were collected, may not be what was assumed."
        )
    if labels.n < FEW_LABELS:
        said.append(f"{labels.n} labels are few: the intervals, not the numbers, are what is known.")
    ece, chance = labels.calibration_error, labels.calibration_error_by_chance
    if ece.low > chance:
        said.append(
            f"Its probabilities are off by {_percent(ece.value)} on average; if all were right, {_percent(chance)} "
            "would be expected of so many labels. usimul calibrate may find a better temperature."
        )
    else:
        said.append("No error of its probabilities beyond chance was found on these labels.")
    return said


def limits(found: Assessment, *, probability: bool, from_labels: bool) -> list[str]:
    """Sentences on what the report cannot say."""
    said = [
        "All numbers hold for points like the ones of this report, with the same share of positives. Other sites, "
        "times or groups of people may differ, and nothing here would show it.",
        "Tuples count as independent and their answers as right. Wrong answers, and the same few points in many "
        "tuples, make the intervals too short.",
    ]
    if found.errors:
        said.append("Estimates without labels cannot tell a classifier from its opposite: they assume the better one.")
    if found.calibration.kind == "none" and not probability:
        said.append("The probabilities are a monotone map of the score and were never calibrated.")
    elif found.calibration.kind == "none":
        said.append("The probabilities are as they were trained; they were not calibrated.")
    else:
        said.append(
            f"The probabilities are {found.calibration.explain()}. One temperature mends probabilities that are too "
            "sure or not sure enough, and nothing else."
        )
    if from_labels:
        said.append("The training was a simulation: its answers were made from labels.")
    return said
