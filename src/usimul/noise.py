r"""Wrong yes answers: what a stated share of them means, and how large it is among questions that were repeated.

Notation: the statement (the event Y) holds for a share Z of all tuples; of the tuples kept after a yes it does not hold
for a share r, ``wrong_yes``. An annotator who says yes with probability e0 where it does not hold (a wrong yes) and no
with probability e1 where it holds (a wrong no) makes

.. math:: r = \frac{e_0 (1-Z)}{e_0 (1-Z) + (1-e_1) Z}.

With e0 = e1 = e, the *flip rate*, r and e determine each other. Two independent answers to one question differ with
probability 2 e (1 - e), whatever the truth is, so questions that were asked more than once tell e.

Files that hold kept tuples only (triplets, similar pairs) cannot tell: a tuple that stands there twice was answered
yes twice, and how often the same question was answered no is not in the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from usimul.events import EVENTS, Event
from usimul.mixture import signal_kept
from usimul.supervision import (
    ComparedPairs,
    DissimilarPairs,
    PairAnswers,
    SimilarPairs,
    Supervision,
    TripletAnswers,
    Triplets,
)
from usimul.validation import InputError, check_prior, check_real

__all__ = [
    "DISAGREEMENT_Z",
    "NEGLIGIBLE_FLIPS",
    "Repeats",
    "disagreement",
    "estimate_flip_rate",
    "estimate_wrong_yes",
    "flip_rate_of",
    "information_kept",
    "repeats",
    "statement_of",
    "wrong_no_share",
    "wrong_yes_of",
]

FloatArray = NDArray[np.float64]

DISAGREEMENT_Z = 4.0
"""Standard errors from which on annotators are said to disagree more than the stated share allows."""

NEGLIGIBLE_FLIPS = 0.01
"""Flip rate up to which nobody is warned: a slip in a hundred answers, which hardly changes what is learned."""

_STATEMENTS: dict[type[Supervision], str] = {
    Triplets: "triplet",
    SimilarPairs: "similar-pair",
    DissimilarPairs: "dissimilar-pair",
    ComparedPairs: "compared-pair",
    PairAnswers: "similar-pair",
    TripletAnswers: "triplet",
}


def statement_of(supervision: Supervision) -> Event | None:
    """Return the event that a yes states, or None for kinds without such answers and for the world ``release``.

    >>> statement_of(Triplets([[0, 1, 2]])).name
    'triplet'
    """
    if isinstance(supervision, Triplets) and supervision.world in ("release", "pair_plus_unlabeled"):
        return None if supervision.world == "release" else EVENTS["shuffled-pair"]
    name = _STATEMENTS.get(type(supervision))
    return None if name is None else EVENTS[name]


def wrong_yes_of(probability: float, false_yes: float, false_no: float) -> float:
    """Share of wrong yes answers of an annotator, from Z, P(yes | not Y), and P(no | Y).

    >>> round(wrong_yes_of(0.76, 0.26, 0.26), 4)
    0.0999
    """
    wrong = check_real(false_yes, "false_yes", low=0.0, high=1.0) * (1.0 - probability)
    right = (1.0 - check_real(false_no, "false_no", low=0.0, high=1.0)) * probability
    if wrong + right == 0.0:
        raise InputError("an annotator who never says yes has no share of wrong yes answers. Lower `false_no`.")
    return wrong / (wrong + right)


def flip_rate_of(wrong_yes: float, probability: float) -> float:
    """Flip rate e of an annotator whose yes answers are wrong with share ``wrong_yes``, if e0 = e1 = e.

    >>> round(flip_rate_of(0.1, 0.76), 4)
    0.2603
    """
    wrong, right = wrong_yes * probability, (1.0 - wrong_yes) * (1.0 - probability)
    return wrong / (wrong + right)


def information_kept(wrong_yes: float, probability: float) -> float:
    r"""Share of the information that a kept tuple still carries on the labels of its points.

    A right yes tells the labels log(1/Z): the Kullback-Leibler divergence of their law given Y from that of independent
    points. One that is wrong with share r tells

    .. math:: (1-r) \log\frac{1-r}{Z} + r \log\frac{r}{1-Z},

    so n noisy tuples are worth this share of n clean ones where the classes are well separated. What is lost cannot be
    brought back by any correction.

    >>> round(information_kept(0.1, 0.76), 3)
    0.235
    >>> information_kept(0.0, 0.76)
    1.0
    """
    r = check_real(wrong_yes, "wrong_yes", low=0.0, high=1.0)
    z = check_real(probability, "probability", low=0.0, high=1.0)
    if not 0.0 < z < 1.0:
        raise InputError(f"`probability` must lie between 0 and 1, else an answer tells nothing. Got {z!r}.")
    right = (1.0 - r) * math.log((1.0 - r) / z) if r < 1.0 else 0.0
    wrong = r * math.log(r / (1.0 - z)) if r > 0.0 else 0.0
    return (right + wrong) / -math.log(z)


def wrong_no_share(wrong_yes: float, probability: float) -> float:
    """Share of wrong no answers that goes with a share of wrong yes answers, if e0 = e1.

    >>> round(wrong_no_share(0.1, 0.76), 4)
    0.527
    """
    e = flip_rate_of(wrong_yes, probability)
    return wrong_yes_of(1.0 - probability, e, e)


@dataclass(frozen=True)
class Repeats:
    """Questions that were asked more than once.

    Parameters
    ----------
    sizes
        Answers to each such question.
    minority
        How many of them were the rarer answer.
    """

    sizes: NDArray[np.int64]
    minority: NDArray[np.int64]

    @property
    def n_pairs(self) -> int:
        """Number of pairs of answers to one question."""
        return int((self.sizes * (self.sizes - 1) // 2).sum())

    @property
    def n_disagreeing(self) -> int:
        """Number of those pairs that disagree."""
        return int((self.minority * (self.sizes - self.minority)).sum())

    def z(self, flip_rate: float) -> float:
        """Count the standard errors by which there are more pairs that disagree than expected.

        Answers are independent; pairs of one question are not, so their variance is that of m (k - m) with
        m ~ Binomial(k, e). For questions with two answers this is the score of a binomial share.
        """
        mean = variance = 0.0
        for size, count in zip(*np.unique(self.sizes, return_counts=True), strict=True):
            k = int(size)
            law = np.array([math.comb(k, m) * flip_rate**m * (1.0 - flip_rate) ** (k - m) for m in range(k + 1)])
            pairs = np.arange(k + 1) * (k - np.arange(k + 1))
            first = float(law @ pairs)
            mean += count * first
            variance += count * (float(law @ pairs**2) - first**2)
        gap = self.n_disagreeing - mean
        return gap / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, gap) if gap else 0.0


@dataclass(frozen=True)
class RateEstimate:
    """An estimated rate with its interval, and the repeated questions behind it."""

    value: float
    low: float
    high: float
    repeats: Repeats

    def __str__(self) -> str:
        r = self.repeats
        return (
            f"{self.value:.4f} (95% interval {self.low:.4f} to {self.high:.4f}; {len(r.sizes):,} questions asked "
            f"again, {r.n_disagreeing:,} of {r.n_pairs:,} pairs of answers disagree)"
        )


def repeats(supervision: Supervision) -> Repeats:
    """Collect the questions that were asked more than once, with their answers.

    A pair is the same question in either order; three points are the same question in the same order only.
    """
    if not isinstance(supervision, (PairAnswers, TripletAnswers)):
        raise InputError(
            f"{supervision.kind} hold no disagreement: they are the tuples that were kept, so one that stands there "
            "twice was answered alike twice, and other answers to it are not in the file. Pass all answers, yes and "
            "no, as PairAnswers or TripletAnswers."
        )
    assert supervision.values is not None
    rows = np.sort(supervision.rows, axis=1) if isinstance(supervision, PairAnswers) else supervision.rows
    _, place, sizes = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    yes = np.bincount(place.ravel(), weights=supervision.values > 0, minlength=sizes.size).astype(np.int64)
    again = sizes > 1
    return Repeats(sizes[again], np.minimum(yes, sizes - yes)[again])


def estimate_flip_rate(supervision: Supervision, *, z: float = 1.96) -> RateEstimate:
    r"""Estimate how often an answer is flipped, from questions that were asked more than once.

    The share s of disagreeing pairs of answers has the mean 2 e (1 - e), so :math:`\hat e = (1 - \sqrt{1 - 2 s}) / 2`,
    one half at most. The interval holds the e at which s is within ``z`` standard errors of its mean; for questions
    with two answers it is Wilson's, seen through e.

    Assumes that yes and no are flipped equally often, and that answers to one question are independent given the truth.
    The same person asked twice repeats his errors, and hard questions are got wrong by all: then the rate is higher
    than this. Where only doubtful questions were repeated, it is lower.

    Examples
    --------
    >>> asked = np.arange(400).reshape(200, 2)  # 200 pairs, each asked twice; 38 get two different answers
    >>> answers = PairAnswers(np.tile(asked, (2, 1)), values=[1] * 200 + [-1] * 38 + [1] * 162)
    >>> print(estimate_flip_rate(answers))
    0.1063 (95% interval 0.0767 to 0.1465; 200 questions asked again, 38 of 200 pairs of answers disagree)
    """
    found = repeats(supervision)
    if not len(found.sizes):
        raise InputError(
            f"none of the {supervision.n_tuples:,} questions was asked more than once, so nothing tells how often "
            "answers are wrong. Ask some of them again, a few hundred drawn at random, and add the answers."
        )
    share = found.n_disagreeing / found.n_pairs
    value = 0.5 * (1.0 - math.sqrt(max(0.0, 1.0 - 2.0 * share)))

    # z falls as the rate grows, from +inf (or 0) at 0; the ends are where it crosses +z and -z.
    low = 0.0 if not found.n_disagreeing else _crossing(found.z, z, 0.0, value)
    high = _crossing(found.z, -z, value, 0.5)
    return RateEstimate(value, low, high, found)


def _crossing(score: Callable[[float], float], level: float, low: float, high: float) -> float:
    """Return where a falling function reaches ``level`` between two ends; the upper end if it never does."""
    if score(high) > level:
        return high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if score(middle) > level else (low, middle)
    return high


def estimate_wrong_yes(supervision: Supervision, prior: float, *, z: float = 1.96) -> RateEstimate:
    """Estimate the share of wrong yes answers from questions that were asked more than once.

    The flip rate of `estimate_flip_rate`, with its assumptions, seen through Z at ``prior``: the share to state as
    ``wrong_yes`` when the yes answers of these annotators are learned from.

    Examples
    --------
    >>> asked = np.arange(400).reshape(200, 2)
    >>> answers = PairAnswers(np.tile(asked, (2, 1)), values=[1] * 200 + [-1] * 38 + [1] * 162)
    >>> print(round(estimate_wrong_yes(answers, 0.4).value, 4))
    0.0989
    """
    flips = estimate_flip_rate(supervision, z=z)
    statement = statement_of(supervision)
    assert statement is not None  # repeats() has refused kinds without answers
    holds = statement.probability(check_prior(prior))
    value, low, high = (wrong_yes_of(holds, e, e) for e in (flips.value, flips.low, flips.high))
    return RateEstimate(value, low, high, flips.repeats)


def disagreement(supervision: Supervision, prior: float | None, wrong_yes: float = 0.0) -> str | None:
    """Return words when annotators disagree more than the stated share of wrong yes answers allows, else None.

    Without repeated questions, and for kinds that hold kept tuples only, there is nothing to compare. A stated share
    of less than `NEGLIGIBLE_FLIPS` counts as that.
    """
    if not isinstance(supervision, (PairAnswers, TripletAnswers)):
        return None
    found, statement = repeats(supervision), statement_of(supervision)
    stated = 0.0
    if wrong_yes and prior is not None and statement is not None:
        signal_kept(wrong_yes, statement.probability(prior))  # refuses a share that leaves nothing
        stated = flip_rate_of(wrong_yes, statement.probability(prior))
    allowed = max(stated, NEGLIGIBLE_FLIPS)
    score = found.z(allowed)
    if not len(found.sizes) or score <= DISAGREEMENT_Z:
        return None
    flips = estimate_flip_rate(supervision)
    told = "" if prior is None else f", while wrong_yes={wrong_yes:g} means {stated:.3f}"
    advice = ""
    if prior is not None:
        advice = f" State wrong_yes={estimate_wrong_yes(supervision, prior).value:.3f}, or find out why they disagree."
    return (
        f"the same questions were answered differently too often: {found.n_disagreeing:,} of {found.n_pairs:,} "
        f"pairs of answers disagree, {score:.1f} standard errors more than at a flip rate of {allowed:.3f}. "
        f"The flip rate is about {flips.value:.3f} ({flips.low:.3f} to {flips.high:.3f}){told}.{advice}"
    )
