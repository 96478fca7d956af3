"""The kinds of supervision."""

from __future__ import annotations

import numpy as np

from usimul.supervision.base import Supervision
from usimul.validation import InputError, IntArray

__all__ = [
    "WORLDS",
    "ComparedPairs",
    "ConfidenceDifference",
    "DissimilarPairs",
    "Labels",
    "PairAnswers",
    "SimilarPairs",
    "SimilarityConfidence",
    "TripletAnswers",
    "Triplets",
    "Unlabeled",
    "UnlabeledSets",
]

WORLDS = ("definition1", "pair_plus_unlabeled", "release")
"""How triplets came about; see `usimul.sampling.sample_triplets`."""


class Triplets(Supervision):
    """Uncertain-similarity triplets (x; x', x''): x shares its class with x' or with x'', not known which.

    One line of ``rows`` is ``anchor, companion, companion``; the order of the two companions means nothing.

    >>> sup = Triplets([[0, 1, 2], [3, 4, 5]], unlabeled=[6, 7], n_points=8)
    >>> sup
    Triplets(2 tuples, 2 unlabeled, pool of 8)
    >>> sup[[0, 1, 2, 6]].rows
    array([[0, 1, 2]])
    >>> Triplets([[0, 1, 1]])
    Traceback (most recent call last):
    ...
    usimul.validation.InputError: `rows` repeats a row inside one tuple, which says nothing about its class: position 0.
    """

    kind = "triplets"
    source = "triplets"
    width = 3
    worlds = WORLDS
    sampler = "sample_triplets"
    columns = ("anchor", "companion1", "companion2")


class SimilarPairs(Supervision):
    """Pairs (x, x') of which it is known that both points share their class."""

    kind = "similar-pairs"
    source = "similar"
    width = 2
    sampler = "sample_similar_pairs"
    columns = ("first", "second")


class DissimilarPairs(Supervision):
    """Pairs (x, x') of which it is known that the two points belong to different classes."""

    kind = "dissimilar-pairs"
    source = "dissimilar"
    width = 2
    sampler = "sample_dissimilar_pairs"
    columns = ("first", "second")


class ComparedPairs(Supervision):
    """Pairs (x, x') of which it is known that x is at least as positive as x': never x negative and x' positive."""

    kind = "compared-pairs"
    source = "compared"
    width = 2
    sampler = "sample_compared_pairs"
    columns = ("first", "second")


class SimilarityConfidence(Supervision):
    """Pairs with the probability, in [0, 1], that both points share their class."""

    kind = "similarity-confidence"
    source = "pairs"
    width = 2
    sampler = "sample_similarity_confidence"
    columns = ("first", "second")
    value_column = "confidence"
    value_range = (0.0, 1.0)


class ConfidenceDifference(Supervision):
    """Pairs with P(y' = +1 | x') - P(y = +1 | x), second minus first, in [-1, 1]."""

    kind = "confidence-difference"
    source = "pairs"
    width = 2
    sampler = "sample_confidence_difference"
    columns = ("first", "second")
    value_column = "difference"
    value_range = (-1.0, 1.0)


class Unlabeled(Supervision):
    """Points of which nothing is known."""

    kind = "unlabeled"
    source = "points"
    width = 1
    sampler = "sample_unlabeled"
    columns = ("point",)


class Labels(Supervision):
    """Points with their label, +1 or -1, in ``values``: for the fully supervised reference only."""

    kind = "labels"
    source = "labeled"
    width = 1
    value_range = (-1.0, 1.0)
    sampler = "sample_labels"
    columns = ("point",)
    value_column = "label"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.values is not None and np.any(np.abs(self.values) != 1.0):
            raise InputError("`values` of Labels must be +1 or -1.")


class _TwoAnswers(Supervision):
    """Tuples that were all asked about, with the answer in ``values``: +1 or -1. Each answer is a source of its own."""

    value_range = (-1.0, 1.0)
    answers = ("yes", "no")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.values is not None and np.any(np.abs(self.values) != 1.0):
            raise InputError(f"`values` of {type(self).__name__} must be +1 or -1, the answer to each question.")

    def sources(self) -> dict[str, IntArray]:
        """Row indices by answer; an answer that never came is an error, since both are needed to learn."""
        assert self.values is not None
        found = {name: self.rows[self.values == sign] for name, sign in zip(self.answers, (1.0, -1.0), strict=True)}
        for name, rows in found.items():
            if not len(rows):
                raise InputError(f"{type(self).__name__} holds no {name!r} answer; both answers are needed. Ask more.")
        return found


class PairAnswers(_TwoAnswers):
    """Independent pairs with the answer to "do they share their class?": +1 similar, -1 dissimilar."""

    kind = "pair-answers"
    width = 2
    answers = ("similar", "dissimilar")
    sampler = "sample_pair_answers"
    columns = ("first", "second")
    value_column = "answer"


class TripletAnswers(_TwoAnswers):
    """Independent (x1, x2, x3) with the answer to "is x2 at least as close to x1 as x3?": +1 yes, -1 no.

    With binary labels "no" means y1 = y3 and y1 != y2. "Yes" is the event of `Triplets` with x2 as the anchor.
    """

    kind = "triplet-answers"
    width = 3
    answers = ("first", "second")
    sampler = "sample_triplet_answers"
    columns = ("first", "second", "third")
    value_column = "answer"


class UnlabeledSets(Supervision):
    """Two sets of unlabeled points whose shares of positives are known; ``values`` is the share of each point's set."""

    kind = "unlabeled-sets"
    source = "sets"
    width = 1
    value_range = (0.0, 1.0)
    sampler = "sample_unlabeled_sets"
    columns = ("point",)
    value_column = "share"

    def __post_init__(self) -> None:
        super().__post_init__()
        found = np.unique(np.asarray(self.values))
        if self.n_tuples and found.size != 2:
            raise InputError(
                f"`values` of UnlabeledSets must hold two different shares, one for each set. Got {found.size}: "
                f"{np.array2string(found, threshold=6)}."
            )

    @property
    def shares(self) -> tuple[float, float]:
        """Shares of positives of the two sets, the greater one first."""
        assert self.values is not None
        if not self.n_tuples:
            raise InputError("this UnlabeledSets has no points, so there are no shares. Draw points from two sets.")
        return float(self.values.max()), float(self.values.min())

    def sources(self) -> dict[str, IntArray]:
        """Row indices of the two sets, the one with more positives first."""
        high, low = self.shares
        assert self.values is not None
        return {"first": self.rows[self.values == high], "second": self.rows[self.values == low]}
