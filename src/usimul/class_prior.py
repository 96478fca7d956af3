"""The class prior and what supervision says about it: for now, whether the two contradict each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from usimul.events import EVENTS
from usimul.mixture import acceptance_probability, similar_probability
from usimul.noise import flip_rate_of
from usimul.supervision import (
    ComparedPairs,
    ConfidenceDifference,
    DissimilarPairs,
    PairAnswers,
    SimilarityConfidence,
    SimilarPairs,
    Supervision,
    TripletAnswers,
    Triplets,
)

__all__ = ["CONFLICT_Z", "Conflict", "prior_conflict"]

CONFLICT_Z = 4.0
"""Standard errors from which on a stated prior is called contradicted: a true one is, once in 16,000 collections."""


@dataclass(frozen=True)
class Conflict:
    """A figure of the supervision that the stated prior does not explain."""

    what: str
    observed: float
    expected: float
    z: float
    hint: str = ""
    counted: bool = True

    def __str__(self) -> str:
        return (
            f"{self.what}: {self.observed:.4f} observed, {self.expected:.4f} expected, {abs(self.z):.1f} standard "
            f"errors away.{self.hint}"
        )


def prior_conflict(supervision: Supervision, prior: float, wrong_yes: float = 0.0) -> Conflict | None:
    """Return the conflict between a stated prior and the supervision, if there is one.

    With a share r = ``wrong_yes`` of wrong yes answers, an accepted share of Z/(1 - r) is the most that fits, if no
    answer was wrongly no. How many were is not known, so a lower accepted share contradicts nothing then. Kinds that
    keep all answers are taken to hold wrong yes and wrong no answers at one rate, which gives the share of yes.

    Examples
    --------
    >>> sup = Triplets([[0, 1, 2]] * 760, n_asked=1000, n_accepted=760, world="definition1")
    >>> prior_conflict(sup, 0.4) is None
    True
    >>> print(prior_conflict(sup, 0.1))
    accepted share of the tuples asked about: 0.7600 observed, 0.9100 expected, 16.6 standard errors away. \
The observed rate fits a prior of 0.400 or 0.600.
    """
    check = _CHECKS.get(type(supervision))
    found = check(supervision, prior, wrong_yes) if check else None
    return found if found and abs(found.z) > CONFLICT_Z else None


def _rate(what: str, hits: int, n: int, expected: float, roots: str = "") -> Conflict:
    observed = hits / n
    z = (observed - expected) / math.sqrt(expected * (1.0 - expected) / n)
    return Conflict(what, observed, expected, z, roots)


def _roots(product: float) -> str:
    """Priors p with ``p (1 - p)`` equal to ``product``, which cannot exceed 1/4."""
    if product > 0.25:
        return " No prior fits the observed rate better than 0.500."
    root = math.sqrt(1.0 - 4.0 * product)
    return f" The observed rate fits a prior of {0.5 * (1 - root):.3f} or {0.5 * (1 + root):.3f}."


def _acceptance(event: str) -> Callable[[Supervision, float, float], Conflict | None]:
    def check(supervision: Supervision, prior: float, wrong_yes: float) -> Conflict | None:
        asked, accepted = supervision.n_asked, supervision.n_accepted
        if not asked or accepted is None or supervision.world not in (None, "definition1"):
            return None
        holds = EVENTS[event].probability(prior)
        if wrong_yes >= 1.0 - holds > 0.0:  # such a yes says nothing, which is for others to refuse
            return None
        expected = holds / (1.0 - wrong_yes)
        if wrong_yes and accepted / asked <= expected:
            return None
        rate = accepted / asked * (1.0 - wrong_yes)
        product = (
            0.5 * (1.0 - rate) if event == "similar-pair" else 0.5 * rate if event == "dissimilar-pair" else 1 - rate
        )
        what = "accepted share of the tuples asked about"
        return _rate(what, accepted, asked, expected, _roots(product))

    return check


def _answers(supervision: Supervision, prior: float, wrong_yes: float) -> Conflict | None:
    assert supervision.values is not None
    yes, n = int((supervision.values > 0).sum()), supervision.n_tuples
    in_pairs = isinstance(supervision, PairAnswers)
    holds = similar_probability(prior) if in_pairs else acceptance_probability(prior)
    flips = flip_rate_of(wrong_yes, holds)
    if flips >= 0.5:  # such answers say nothing, which is for others to refuse
        return None
    right = min(1.0, (yes / n - flips) / (1.0 - 2.0 * flips))
    what = "share of similar pairs" if in_pairs else "share of yes answers"
    expected = flips * (1.0 - holds) + (1.0 - flips) * holds
    return _rate(what, yes, n, expected, _roots(0.5 * (1.0 - right) if in_pairs else 1.0 - right))


def _mean(what: str, values: np.ndarray, expected: float, hint: str) -> Conflict | None:
    if values.size < 2:
        return None
    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    gap = float(values.mean()) - expected
    z = gap / error if error > 0 else math.copysign(math.inf, gap) if abs(gap) > 1e-12 else 0.0
    return Conflict(what, float(values.mean()), expected, z, hint, counted=False)


def _similarity(supervision: Supervision, prior: float, wrong_yes: float) -> Conflict | None:
    assert supervision.values is not None
    hint = " Confidences of a classifier trained at another prior have to be re-scaled (usimul.posterior.rescale)."
    return _mean("mean similarity confidence", supervision.values, similar_probability(prior), hint)


def _difference(supervision: Supervision, prior: float, wrong_yes: float) -> Conflict | None:
    """Differences of independent points have mean 0, and half their mean square is at most p q."""
    assert supervision.values is not None
    c = supervision.values
    centre = _mean("mean confidence difference", c, 0.0, " The two points of a pair must be drawn alike.")
    if centre and abs(centre.z) > CONFLICT_Z:
        return centre
    hint = " It estimates the variance of P(y = +1 | x), which cannot exceed p (1 - p); is the prior right?"
    spread = _mean("half the mean square of the differences", 0.5 * c**2, prior * (1.0 - prior), hint)
    return spread if spread and spread.z > 0 else None


_CHECKS: dict[type[Supervision], Callable[[Supervision, float, float], Conflict | None]] = {
    Triplets: _acceptance("triplet"),
    SimilarPairs: _acceptance("similar-pair"),
    DissimilarPairs: _acceptance("dissimilar-pair"),
    ComparedPairs: _acceptance("compared-pair"),
    PairAnswers: _answers,
    TripletAnswers: _answers,
    SimilarityConfidence: _similarity,
    ConfidenceDifference: _difference,
}
