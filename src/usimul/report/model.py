"""One self-contained HTML page about a trained classifier: what it is, how good it is, and what speaks against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from usimul import __version__
from usimul.assess import Assessment
from usimul.calibration import probabilities
from usimul.estimators import WeakClassifier
from usimul.event_error import ErrorEstimate, event_error, observed_event
from usimul.events import noisy
from usimul.methods import get_method
from usimul.report.charts import Series, histogram, line_chart
from usimul.report.pages import page_environment
from usimul.report.pictures import thumbnail
from usimul.report.words import limits, verdict
from usimul.supervision import Supervision

__all__ = ["Item", "prior_sensitivity", "render_model", "sorted_items"]

FloatArray = NDArray[np.float64]

SHOWN = 6  # items of each sort
BINS = 40
ASSUMED = np.round(np.arange(0.05, 0.951, 0.05), 2)


@dataclass(frozen=True)
class Item:
    """One point of the page."""

    name: str
    score: float
    probability: float
    picture: str | None


@dataclass(frozen=True)
class _Chart:
    title: str
    svg: Markup
    legend: list[tuple[str, str]]
    note: str = ""


def render_model(
    estimator: WeakClassifier,
    found: Assessment,
    scores: FloatArray,
    *,
    name: str,
    points: str,
    rows: NDArray[Any] | None = None,
    image_shape: tuple[int, int, int] | None = None,
    ids: Sequence[str] | None = None,
    supervision: Supervision | None = None,
    made_with: str | None = None,
    constant: str | None = None,
    command: str = "",
) -> str:
    """Return the page.

    Parameters
    ----------
    estimator
        The fitted classifier.
    found
        What `usimul.assess.assess`, or the command, found out about it.
    scores
        Scores of all points.
    name, points
        What the model and the points are called.
    rows, image_shape, ids
        The points, for pictures where they are images, and their names.
    supervision
        The tuples that judged, for the sensitivity to the prior.
    made_with
        Version that trained the model, if it is known.
    constant
        Words for a classifier that says nearly the same of all points.
    command
        How to make the page again.
    """
    method = get_method(estimator.method_)
    sections = [*_training_charts(estimator), _score_chart(scores)]
    calibration = None if found.labels is None else _reliability_chart(found)
    template = page_environment().get_template("model.html")
    return template.render(
        name=name,
        points=points,
        found=found,
        verdict=verdict(found, constant),
        limits=limits(found, probability=method.probability, from_labels=estimator.from_labels_),
        about=_about(estimator, made_with),
        errors=[(kind, e, isinstance(e, ErrorEstimate)) for kind, e in found.errors.items()],
        measured=_measured(found),
        training=sections[:-1],
        scores=sections[-1],
        calibration=calibration,
        sensitivity=None
        if supervision is None
        else _sensitivity_chart(scores, supervision, found.prior, estimator.wrong_yes_),
        items=sorted_items(scores, found.calibration.temperature, rows, image_shape, ids),
        positive=str(estimator.classes_[1]),
        negative=str(estimator.classes_[0]),
        command=command,
        version=__version__,
    )


def _about(estimator: WeakClassifier, made_with: str | None) -> list[tuple[str, str]]:
    method = get_method(estimator.method_)
    unlabeled = f" and {estimator.n_unlabeled_:,} unlabeled points" if estimator.n_unlabeled_ else ""
    model = estimator.model_ if isinstance(estimator.model_, str) else "a network of the user's own"
    trained = len(estimator.history_["risk"])
    about = [
        ("method", f"{method.name}: {method.summary}"),
        ("learned from", f"{estimator.n_tuples_:,} tuples ({method.supervision.__name__}){unlabeled}"),
        ("world", estimator.world_ or "not stated"),
        ("prior, P(positive)", "none was needed" if estimator.prior_ is None else f"{estimator.prior_:g}"),
        ("classes", f"{estimator.classes_[1]!s} (positive) and {estimator.classes_[0]!s}"),
        ("class names", estimator.orientation_.explain(unbiased=method.unbiased_for(estimator.world_))),
        ("probabilities", estimator.calibration_.explain()),
        ("network", f"{model}, {estimator.n_features_in_:,} features"),
        ("epochs", f"{trained} trained, epoch {estimator.n_epochs_} kept, {estimator.n_restarts_} restarts"),
    ]
    if estimator.interrupted_:
        about.append(("training", "was interrupted; these are the weights at that moment"))
    if made_with:
        about.append(("trained with", made_with))
    return about


def _measured(found: Assessment) -> list[tuple[str, str, str]]:
    labels = found.labels
    if labels is None:
        return []
    figures = [
        ("accuracy", labels.accuracy),
        ("balanced accuracy", labels.balanced_accuracy),
        ("area under the curve", labels.area_under_curve),
        ("Brier score", labels.brier),
        ("log loss", labels.log_loss),
        ("calibration error", labels.calibration_error),
    ]
    return [
        (name, "-", "labels of one class only")
        if e is None
        else (name, f"{e.value:.4f}", f"{e.low:.3f} to {e.high:.3f}")
        for name, e in figures
    ]


def _training_charts(estimator: WeakClassifier) -> list[_Chart]:
    history = estimator.history_
    risk, raw = history["risk"], history.get("raw_risk", history["risk"])
    if not risk:
        return []
    curves = [Series("corrected risk, which is minimised", risk, 1)]
    if not np.allclose(risk, raw, rtol=1e-6, atol=1e-9):
        curves.insert(0, Series("raw risk", raw, 0))
    charts = [_curves("Training risk", curves, "risk (the method's own units)")]
    shares = history.get("corrected_share", [])
    if any(shares):
        curve = Series("share of batches that were corrected", shares, 2)
        charts.append(_curves("Corrected batches", [curve], "share of batches", include=(0.0, 1.0)))
    held_out = [value for value in history.get("weak_risk", []) if value is not None]
    if held_out and len(held_out) == len(risk):
        curve = Series("label-free risk on held-out tuples", held_out, 3)
        if estimator.held_out_ == "points":
            note = "No held-out point was trained on, but the best epoch was chosen by it: it ranks epochs."
        else:
            note = (
                "Held-out tuples are made of points that were trained on: it ranks epochs, and is no estimate of the "
                "error."
            )
        charts.append(_curves("Held-out risk", [curve], "estimated error", include=(0.0, 0.5), note=note))
    return charts


def _curves(title: str, curves: list[Series], y_label: str, include: Sequence[float] = (), note: str = "") -> _Chart:
    svg = line_chart(curves, title=f"{title} by epoch", x_label="epoch", y_label=y_label, include=include)
    return _Chart(title, svg, [(f"k{c.style}", c.name) for c in curves], note)


def _score_chart(scores: FloatArray) -> _Chart:
    """Return the histogram; a few far scores would squeeze the rest, so the outermost join the last bars."""
    low, high = np.quantile(scores, [0.001, 0.999])
    low, high = min(low, 0.0), max(high, 0.0)
    width = max(high - low, 1e-6) / BINS
    edges = width * np.arange(np.floor(low / width), np.ceil(high / width) + 1)  # one edge lies at 0
    counts, _ = np.histogram(np.clip(scores, edges[0], edges[-1]), edges)
    svg = histogram(
        edges.tolist(), counts.tolist(), title="Scores of the points", x_label="score", y_label="points", split=0.0
    )
    return _Chart("Scores", svg, [("k-b0", "predicted negative"), ("k-b1", "predicted positive")])


def _reliability_chart(found: Assessment) -> _Chart:
    assert found.labels is not None
    bins = found.labels.bins
    so = Series(
        "share of positives among points of that probability, with 95 % intervals",
        [b.observed.value for b in bins],
        1,
        at=[b.predicted for b in bins],
        between=[(b.observed.low, b.observed.high) for b in bins],
    )
    right = Series("if every probability were right", [0.0, 1.0], 6, at=[0.0, 1.0], dots=False)
    svg = line_chart(
        [right, so],
        title="Share of positives by predicted probability",
        x_label="predicted probability",
        y_label="share of positives",
        include=(0.0, 1.0),
        x_range=(0.0, 1.0),
    )
    return _Chart("Calibration", svg, [("k1", so.name), ("k6", right.name)])


def prior_sensitivity(
    scores: FloatArray, supervision: Supervision, priors: Sequence[float], wrong_yes: float = 0.0
) -> list[tuple[float, ErrorEstimate]]:
    """Return the label-free estimate of the error as it would be under other priors, from the same scores.

    ``wrong_yes`` is the share of wrong yes answers, as it was stated for the estimate beside it. Empty for kinds of
    supervision that are not observed under one event; without the priors under which so many wrong answers would leave
    a yes without information.
    """
    event = observed_event(supervision)
    if event is None or supervision.n_tuples < 2:
        return []
    plain = scores[supervision.unlabeled] if supervision.n_unlabeled else None
    told = [p for p in priors if not wrong_yes or wrong_yes < 1.0 - event.probability(p)]
    return [(p, event_error(scores[supervision.rows], plain, p, noisy(event, wrong_yes, p))) for p in told]


def _sensitivity_chart(
    scores: FloatArray, supervision: Supervision, prior: float | None, wrong_yes: float
) -> _Chart | None:
    priors = sorted({*ASSUMED.tolist(), *([] if prior is None else [prior])})
    found = prior_sensitivity(scores, supervision, priors, wrong_yes)
    if not found:
        return None
    curve = Series(
        "estimated error, with 95 % intervals",
        [e.value for _, e in found],
        1,
        at=[p for p, _ in found],
        between=[(e.low, e.high) for _, e in found],
    )
    share = float(np.mean(scores >= 0))
    guess = Series("naming all points alike", [0.0, 0.5, 0.0], 6, at=[0.0, 0.5, 1.0], dots=False)
    line = [] if prior is None else [prior, prior]
    stated = [Series(f"the stated prior, {p:g}", [0.0, 0.5], 0, at=line, dots=False) for p in line[:1]]
    svg = line_chart(
        [guess, *stated, curve],
        title="Estimated error by assumed prior",
        x_label="assumed share of positives",
        y_label="estimated error",
        include=(0.0, 0.5),
        x_range=(0.0, 1.0),
    )
    legend = [("k1", curve.name), *(("k0", s.name) for s in stated), ("k6", guess.name)]
    by_prior = dict(found)
    note = f"Predicted positive: {100 * share:.1f} % of the points, whatever prior is assumed."
    if prior is not None:
        near = [p for p in by_prior if abs(p - prior) <= 0.05 + 1e-9]
        low, high = min(by_prior[p].value for p in near), max(by_prior[p].value for p in near)
        note += (
            f" If the prior is wrong by up to 0.05, the estimate lies between {100 * low:.1f} and {100 * high:.1f} %."
        )
    return _Chart("Sensitivity to the prior", svg, legend, note)


def sorted_items(
    scores: FloatArray,
    temperature: float,
    rows: NDArray[Any] | None,
    image_shape: tuple[int, int, int] | None,
    ids: Sequence[str] | None,
) -> list[tuple[str, list[Item]]]:
    """Return the most certain points of each class, and those nearest to the border."""
    order = np.argsort(scores, kind="stable")
    certain = [int(i) for i in order[::-1][:SHOWN] if scores[i] >= 0], [int(i) for i in order[:SHOWN] if scores[i] < 0]
    groups = {
        "most certainly positive": certain[0],
        "most certainly negative": certain[1],
        "least certain": np.argsort(np.abs(scores), kind="stable")[:SHOWN].tolist(),
    }
    pictured = rows is not None and image_shape is not None
    scale = (
        _scale(rows, [i for group in groups.values() for i in group]) if rows is not None and pictured else (0.0, 1.0)
    )
    chance = probabilities(scores, temperature)

    def item(i: int) -> Item:
        picture = None
        if rows is not None and image_shape is not None:
            picture = thumbnail(np.asarray(rows[i]), image_shape, scale)
        return Item(f"row {i}" if ids is None else ids[i], float(scores[i]), float(chance[i]), picture)

    return [(title, [item(i) for i in group]) for title, group in groups.items() if group]


def _scale(rows: NDArray[Any], shown: list[int]) -> tuple[float, float]:
    """Return what black and white are: of bytes 0 and 255, of numbers from 0 to 1 these, else the extremes shown."""
    if rows.dtype == np.uint8:
        return 0.0, 255.0
    values = np.stack([np.asarray(rows[i], dtype=np.float64).ravel() for i in shown])
    low, high = float(values.min()), float(values.max())
    return (0.0, 1.0) if low >= 0.0 and high <= 1.0 else (low, high)
