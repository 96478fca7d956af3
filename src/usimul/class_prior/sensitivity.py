"""What a wrong prior would change: the label-free risk and the share of predicted positives, against assumed priors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from usimul.splits import hold_out
from usimul.supervision import Triplets
from usimul.validation import InputError, InputTypeError, check_fraction, check_prior, check_seed
from usimul.weak_risk import second_moment_risk

__all__ = ["Assumed", "prior_sensitivity"]

RandomState = int | np.random.Generator | np.random.RandomState | None


@dataclass(frozen=True)
class Assumed:
    """What is seen under one assumed prior.

    ``held_out`` says what was divided before training again: ``"points"``, of which none that judges was trained on,
    or ``"tuples"``, whose points were. None where nothing was divided.
    """

    prior: float
    risk: float
    standard_error: float
    predicted_positive: float
    held_out: str | None = None


def prior_sensitivity(
    estimator: Any,
    X: Any,
    supervision: Triplets,
    priors: Sequence[float],
    *,
    retrain: bool = False,
    judge: Triplets | None = None,
    held_out: float = 0.25,
    random_state: RandomState = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Assumed, ...]:
    """Judge a classifier without labels under each of several assumed priors.

    Without ``retrain`` a fitted classifier stays as it is, and only the judgement changes. With it, the classifier is
    trained again under each prior, so that the share of predicted positives shows how far the training follows what it
    is told. The risk is the second-moment estimate of the error rate (`usimul.weak_risk`); on points that were trained
    on it is too low, and shows differences rather than levels.

    A risk that hardly changes says that the prior matters little here, not that every prior is right: the risk is no
    way to choose the prior.

    Parameters
    ----------
    estimator
        A fitted `usimul.WeakClassifier`, or with ``retrain`` one that need not be fitted; it is cloned.
    X
        The pool of points.
    supervision
        Triplets over its rows: the judges, and with ``retrain`` the teachers.
    priors
        Priors to assume.
    retrain
        Whether to train again under each.
    judge
        With ``retrain``: triplets over rows of X that judge. None holds out a share ``held_out`` of the points with the
        triplets among them, or of the triplets if that would cost more than a tenth of them (`usimul.splits.hold_out`).
    held_out
        See ``judge``.
    random_state
        Seed of what is held out.
    progress
        Called with the number of priors done and of all.

    Examples
    --------
    >>> from usimul import USimULClassifier, make_gaussians, sample_triplets
    >>> data = make_gaussians(2000, 10, prior=0.3, random_state=0)
    >>> sup = sample_triplets(data.y_train, 2000, n_unlabeled=1000, prior=0.3, random_state=0)
    >>> clf = USimULClassifier("joint-likelihood", prior=0.3, model="linear", epochs=20, random_state=0)
    >>> rows = prior_sensitivity(clf.fit(data.X_train, sup), data.X_train, sup, [0.2, 0.3, 0.4])
    >>> [row.prior for row in rows], rows[0].predicted_positive == rows[2].predicted_positive
    ([0.2, 0.3, 0.4], True)
    """
    for given in (supervision, judge):
        _check_triplets(given)
    assumed = [check_prior(prior) for prior in priors]
    if not assumed:
        raise InputError("`priors` must hold at least one prior to assume. Got none.")
    teachers, judges = supervision, supervision if judge is None else judge
    divided = None
    if retrain:
        if "prior" not in estimator.get_params():
            raise InputTypeError(f"{type(estimator).__name__} has no parameter `prior`, so it cannot be trained again.")
        if judge is None:
            supervision.check_pool(len(X))
            fraction, seed = check_fraction(held_out, "held_out"), int(check_seed(random_state).integers(2**31))
            teachers, judges, divided = hold_out(replace(supervision, n_points=len(X)), fraction, seed)
    elif judge is not None:
        raise InputError("`judge` belongs to retrain=True. Without it, pass the triplets that judge as `supervision`.")
    judges.check_pool(len(X))
    world = judges.world or "definition1"
    second_moment_risk(np.zeros(judges.rows.shape), _unlabeled(np.zeros(len(X)), judges), assumed[0], world=world)
    scores = None if retrain else estimator.decision_function(X)
    found = []
    for number, prior in enumerate(assumed, 1):
        if retrain:
            scores = _again(estimator, prior).fit(X, teachers).decision_function(X)
        assert scores is not None
        risk = second_moment_risk(scores[judges.rows], _unlabeled(scores, judges), prior, world=world)
        plain = [scores[judges.rows[:, 1:]].ravel()] if world == "definition1" else []
        if judges.unlabeled is not None:
            plain.append(scores[judges.unlabeled])
        share = float(np.mean(np.concatenate(plain) >= 0))
        found.append(Assumed(prior, risk.value, risk.standard_error, share, divided))
        if progress is not None:
            progress(number, len(assumed))
    return tuple(found)


def _check_triplets(given: object) -> None:
    if given is not None and not isinstance(given, Triplets):
        raise InputTypeError(
            f"the sensitivity to the prior is judged by triplets. Got {type(given).__name__}. Pass Triplets."
        )


def _unlabeled(scores: Any, judges: Triplets) -> Any:
    return None if judges.unlabeled is None else scores[judges.unlabeled]


def _again(estimator: Any, prior: float) -> Any:
    """Return an unfitted copy that is told this prior, and does not refuse it for contradicting the counts."""
    fresh = clone(estimator).set_params(prior=prior)
    return fresh.set_params(prior_check="ignore") if "prior_check" in fresh.get_params() else fresh
