"""How far a trained classifier can be trusted: label-free error, agreement, calibration, and what few labels say.

Everything rests on scores that are computed once. Label-free figures hold for points like those that they were made on:
of points that were trained on they are too good, and a warning says so where that can be noticed.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from torch import Tensor, nn

from usimul.calibration import (
    Bin,
    Calibration,
    calibration_error,
    losses_of_probabilities,
    probabilities,
    reliability,
    temperature_from_labels,
    temperature_from_tuples,
)
from usimul.estimators import WeakClassifier, judging_prior
from usimul.event_error import ErrorEstimate, event_error, observed_event
from usimul.events import Event, noisy
from usimul.intervals import Estimate, area_interval, balanced_interval, wilson_interval
from usimul.metrics import area_under_curve
from usimul.models import ScoreNet
from usimul.supervision import Labels, Supervision, Triplets
from usimul.validation import (
    InputError,
    InputTypeError,
    PriorMismatchWarning,
    TrainedPointsWarning,
    UndefinedAtHalfError,
    UsimulError,
    check_class_labels,
    check_count,
)
from usimul.weak_risk import WEAK_RISKS

__all__ = [
    "Agreement",
    "Assessment",
    "OnLabels",
    "agreement",
    "assess",
    "calibrate",
    "judge_on_labels",
    "label_free_errors",
    "plain_scores",
    "retrain",
    "seems_trained_on",
]

FloatArray = NDArray[np.float64]

TRAINED_POINTS = (
    "these points have the same means and deviations as those of the training, so they seem to be the same. What is "
    "estimated on points that were trained on is too good, and a temperature found on them too low: use new points."
)


@dataclass(frozen=True)
class Agreement:
    """How often two classifiers say the same of a point, at best over the two ways to name the classes.

    ``kappa`` is the agreement beyond that of independent guesses with the same shares (Cohen 1960); None where one of
    the classifiers gives every point the same class and the other too.
    """

    name: str
    share: float
    kappa: float | None
    swapped: bool


@dataclass(frozen=True)
class OnLabels:
    """What is measured on labels, each figure with its interval; None where labels of both classes would be needed."""

    n: int
    share_positive: float
    accuracy: Estimate
    balanced_accuracy: Estimate | None
    area_under_curve: Estimate | None
    brier: Estimate
    log_loss: Estimate
    calibration_error: Estimate
    calibration_error_by_chance: float
    bins: list[Bin] = field(repr=False)


@dataclass(frozen=True)
class Assessment:
    """Everything that is known about a classifier from a set of points.

    Attributes
    ----------
    n_points, share_positive
        Number of points, and share of them that is predicted positive.
    prior
        Share of positives by which it was judged; None if none was stated.
    errors
        Label-free estimates of the error by kind, or words on why there is none.
    agreements
        With each other classifier.
    labels
        What labels say, or None.
    orientation, calibration
        How it is known which class is which, and how scores become probabilities.
    trained_points
        Whether the points seem to be those of the training.
    """

    n_points: int
    share_positive: float
    prior: float | None
    errors: dict[str, ErrorEstimate | str]
    agreements: list[Agreement]
    labels: OnLabels | None
    orientation: str
    calibration: Calibration
    trained_points: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, dictionaries and numbers, for JSON."""
        return asdict(self)


def assess(
    estimator: WeakClassifier,
    X: Any,
    supervision: Supervision | None = None,
    *,
    labels: ArrayLike | None = None,
    prior: float | None = None,
    others: Mapping[str, WeakClassifier] | None = None,
    held_out: bool = False,
) -> Assessment:
    """Judge a classifier by fresh tuples, by other classifiers, by labels, or by all of them.

    Parameters
    ----------
    estimator
        A fitted classifier.
    X
        Points, best ones that were not trained on.
    supervision
        Tuples over the rows of X.
    labels
        One label for each row of X, named as in ``classes_``.
    prior
        Share of positives in X; None takes that of the training.
    others
        Other fitted classifiers by name, such as those of `retrain`.
    held_out
        Whether the points of ``supervision`` are known to have been kept from training, although X is the same pool
        (`usimul.splits`). Then nothing warns of that.

    Examples
    --------
    >>> from usimul.datasets import make_gaussians
    >>> from usimul.sampling import sample_triplets
    >>> data = make_gaussians(1000, 1000, prior=0.3, random_state=0)
    >>> sup = sample_triplets(data.y_train, 1000, n_unlabeled=1000, random_state=0)
    >>> clf = WeakClassifier("joint-likelihood", prior=0.3, model="linear", epochs=20, random_state=0)
    >>> clf = clf.fit(data.X_train, sup)
    >>> fresh = sample_triplets(data.y_test, 1000, n_unlabeled=500, random_state=1)
    >>> found = assess(clf, data.X_test, fresh, labels=data.y_test)
    >>> error = 1 - found.labels.accuracy.value
    >>> found.errors["likelihood"].low < error < found.errors["likelihood"].high
    True
    """
    scores = estimator.decision_function(X)
    if supervision is not None:
        supervision.check_pool(len(scores))
        prior = judging_prior(estimator, supervision, prior)
    elif prior is None:
        prior = estimator.prior_
    known = not held_out and seems_trained_on(estimator, X)
    if known:
        warnings.warn(TRAINED_POINTS, TrainedPointsWarning, stacklevel=2)
    positive = None if labels is None else _positive(estimator, labels, len(scores))
    return Assessment(
        n_points=len(scores),
        share_positive=float(np.mean(scores >= 0)),
        prior=prior,
        errors={} if supervision is None else label_free_errors(estimator, X, supervision, prior, scores),
        agreements=[agreement(scores, other.decision_function(X), name) for name, other in (others or {}).items()],
        labels=None if positive is None else judge_on_labels(scores, positive, estimator.calibration_),
        orientation=estimator.orientation_.status,
        calibration=estimator.calibration_,
        trained_points=known,
    )


def _positive(estimator: WeakClassifier, labels: ArrayLike, n: int) -> NDArray[np.bool_]:
    classes = estimator.classes_.tolist()
    found = check_class_labels(labels, classes, "labels")
    if found.shape != (n,):
        raise InputError(f"there must be one label for each point, {n}. Got shape {found.shape}.")
    return np.asarray(found == classes[1], dtype=np.bool_)


def label_free_errors(
    estimator: WeakClassifier,
    X: Any,
    supervision: Supervision,
    prior: float | None = None,
    scores: FloatArray | None = None,
    wrong_yes: float | None = None,
) -> dict[str, ErrorEstimate | str]:
    """Every estimate of the error that the supervision allows, with a 95 % interval; words where one is not defined.

    ``likelihood`` is the first choice: `usimul.event_error`. The others are those of ``weak_risk``, with normal
    intervals. ``prior`` and ``wrong_yes`` None are the training's; ``scores`` of all points save their computation.
    """
    found: dict[str, ErrorEstimate | str] = {}
    prior = judging_prior(estimator, supervision, prior)
    wrong_yes = estimator.wrong_yes_ if wrong_yes is None else wrong_yes
    event = heard_event(supervision, prior, wrong_yes)
    for kind in WEAK_RISKS if isinstance(supervision, Triplets) else WEAK_RISKS[:1]:
        try:
            with warnings.catch_warnings():
                if found:  # the first estimate has warned
                    warnings.simplefilter("ignore", PriorMismatchWarning)
                risk = estimator.weak_risk(X, supervision, kind=kind, prior=prior, wrong_yes=wrong_yes)
        except UndefinedAtHalfError:
            found[kind] = "not defined at prior 0.5"
        except UsimulError as error:
            found[kind] = f"not defined: {error}"
        else:
            low, high = risk.interval()
            found[risk.kind] = ErrorEstimate(
                risk.value, low, high, 0.95, supervision.n_tuples, risk.kind, risk.standard_error
            )
    if event is None or prior is None or supervision.n_tuples < 2:
        return found
    scores = estimator.decision_function(X) if scores is None else scores
    plain = scores[supervision.unlabeled] if supervision.n_unlabeled else None
    return {"likelihood": event_error(scores[supervision.rows], plain, prior, event), **found}


def heard_event(supervision: Supervision, prior: float | None, wrong_yes: float) -> Event | None:
    """Return the event that the tuples were observed under, with the stated share of wrong yes answers."""
    event = observed_event(supervision)
    return event if event is None or prior is None else noisy(event, wrong_yes, prior)


def agreement(scores: ArrayLike, others: ArrayLike, name: str = "") -> Agreement:
    """Compare what two classifiers say of the same points.

    >>> agreement([1, 1, -1, -1], [-1, -1, 1, -1])
    Agreement(name='', share=0.75, kappa=0.5, swapped=True)
    """
    first, second = np.asarray(scores) >= 0, np.asarray(others) >= 0
    if first.shape != second.shape or first.ndim != 1 or not first.size:
        raise InputError(f"both classifiers must judge the same points. Got {first.shape} and {second.shape} scores.")
    swapped = bool(np.mean(first == second) < 0.5)
    if swapped:
        second = ~second
    share, a, b = float(np.mean(first == second)), float(first.mean()), float(second.mean())
    chance = a * b + (1.0 - a) * (1.0 - b)
    return Agreement(name, share, None if chance == 1.0 else (share - chance) / (1.0 - chance), swapped)


def retrain(estimator: WeakClassifier, X: Any, supervision: Supervision, *, seeds: Sequence[int]) -> list[Any]:
    """Train copies of a classifier on the same data with other seeds; ``assess(..., others=...)`` compares them."""
    copies = [clone(estimator).set_params(random_state=check_count(seed, "seeds", low=0)) for seed in seeds]
    return [made.fit(X, supervision) for made in copies]


def judge_on_labels(scores: FloatArray, positive: ArrayLike, calibration: Calibration) -> OnLabels:
    """Measure accuracy, ranking and calibration on labels, with 95 % intervals.

    Wilson's for the accuracy, of the balanced accuracy made of two of them; Newcombe's for the area under the curve;
    normal ones for Brier score and log loss; a bootstrap for the expected calibration error.
    """
    y, said = np.asarray(positive, dtype=bool), scores >= 0
    n, n_positive = y.size, int(y.sum())
    right = said == y
    both = 0 < n_positive < n
    predicted = probabilities(scores, calibration.temperature)
    brier, log_loss = losses_of_probabilities(predicted, y)
    ece = calibration_error(predicted, y)
    area = area_under_curve(np.where(y, 1, -1), scores) if both else 0.0
    hits = (int(right[y].sum()), int(right[~y].sum()))
    return OnLabels(
        n=n,
        share_positive=n_positive / n,
        accuracy=wilson_interval(int(right.sum()), n),
        balanced_accuracy=balanced_interval(hits, (n_positive, n - n_positive)) if both else None,
        area_under_curve=area_interval(area, n_positive, n - n_positive) if both else None,
        brier=brier,
        log_loss=log_loss,
        calibration_error=ece.error,
        calibration_error_by_chance=ece.by_chance,
        bins=reliability(predicted, y),
    )


def calibrate(
    estimator: WeakClassifier, X: Any, y: Supervision | ArrayLike, *, held_out: bool = False
) -> WeakClassifier:
    """Return the classifier with probabilities calibrated by one temperature; predictions stay as they are.

    Parameters
    ----------
    estimator
        A fitted classifier; it is not changed.
    X
        Points that were not trained on, with the share of positives that predictions will be made for.
    y
        Tuples over the rows of X that were observed under one event (triplets, similar, dissimilar or compared pairs),
        or one label for each row.
    held_out
        Whether the points of ``y`` are known to have been kept from training, see `assess`.

    See Also
    --------
    usimul.calibration.temperature_from_tuples : The criterion without labels.

    Examples
    --------
    >>> from usimul.datasets import make_gaussians
    >>> from usimul.sampling import sample_triplets
    >>> data = make_gaussians(1000, 1000, prior=0.3, random_state=0)
    >>> sup = sample_triplets(data.y_train, 500, n_unlabeled=500, random_state=0)
    >>> clf = WeakClassifier("joint", prior=0.3, epochs=10, random_state=0).fit(data.X_train, sup)
    >>> fresh = sample_triplets(data.y_test, 500, n_unlabeled=500, random_state=1)
    >>> calibrated = calibrate(clf, data.X_test, fresh)
    >>> calibrated.calibration_.kind, calibrated.calibration_.temperature < 1  # it was not sure enough
    ('label-free', True)
    """
    scores = estimator.decision_function(X)
    if not held_out and seems_trained_on(estimator, X):
        warnings.warn(TRAINED_POINTS, TrainedPointsWarning, stacklevel=2)
    made = copy.copy(estimator)
    if not isinstance(y, Supervision):
        made.calibration_ = temperature_from_labels(scores, _positive(estimator, y, len(scores)))
        return made
    y.check_pool(len(scores))
    if isinstance(y, Labels) and y.values is not None:
        made.calibration_ = temperature_from_labels(scores[y.rows[:, 0]], y.values > 0)
        return made
    event = heard_event(y, estimator.prior_, estimator.wrong_yes_)
    if event is None:
        world = f" of world {y.world!r}" if y.world else ""
        raise InputTypeError(
            "calibration without labels needs tuples that were observed under one event: triplets of world "
            f"definition1 or pair_plus_unlabeled, similar, dissimilar or compared pairs. Got {type(y).__name__}"
            f"{world}. Pass such tuples, or labels."
        )
    made.calibration_ = temperature_from_tuples(scores[y.rows], plain_scores(scores, y, event), event)
    return made


def plain_scores(scores: FloatArray, supervision: Supervision, event: Event) -> FloatArray:
    """Scores of points that follow the law of all points: unlabeled ones, and members that the event does not shift.

    >>> from usimul.events import EVENTS
    >>> sup = Triplets([[0, 1, 2]], unlabeled=[3], n_points=4)
    >>> plain_scores(np.array([5.0, 6.0, 7.0, 8.0]), sup, EVENTS["triplet"])
    array([8., 6., 7.])
    """
    parts = [scores[supervision.unlabeled].ravel()] if supervision.n_unlabeled else []
    tried = (0.2, 0.35, 0.7, 0.9)  # marginals are ratios of cubics in p: no member keeps these four by chance
    kept = [i for i in range(event.size) if all(abs(event.marginals(p)[i] - p) < 1e-12 for p in tried)]
    parts += [scores[supervision.rows[:, i]] for i in kept]
    if not parts:
        raise InputError(f"calibration on {type(supervision).__name__} needs unlabeled points too. Got none: add them.")
    return np.concatenate(parts)


def seems_trained_on(estimator: WeakClassifier, X: Any) -> bool:
    """Whether X has the very means and deviations by which the classifier scales its input.

    They were taken from the points of the training; others differ in them. Without scaling nothing can be noticed.
    """
    if estimator.scaling == "none":
        return False
    module = estimator.module_
    probe = ScoreNet(nn.Identity(), cast(Tensor, module.shift).numel())
    probe.set_scaling(*(torch.as_tensor(part).cpu() for part in estimator._scaling(estimator._points(X, reset=False))))
    pairs = ((module.shift, probe.shift), (module.scale, probe.scale))
    return all(bool(torch.allclose(cast(Tensor, kept).cpu(), new, rtol=1e-4, atol=1e-7)) for kept, new in pairs)
