"""Tuples of other libraries: what they say about classes, and the pool behind copied points."""

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from usimul.convert import nearer_triplets, pairs_with_signs, pool_of_copies, pool_of_frames
from usimul.events import EVENTS
from usimul.supervision import DissimilarPairs, SimilarPairs, TripletAnswers, Triplets
from usimul.validation import InputError

LABELS = list(itertools.product((-1, 1), repeat=3))


def at_least_as_near(a, b, c):
    """Whether b is at least as near to a as c is, if classes are the only distance."""
    return (a != b) <= (a != c)


class TestNearerTriplets:
    def test_the_event_is_that_of_the_kind(self):
        """Put labels in the places of rows: the triplet's event holds exactly where the comparison does."""
        sup = nearer_triplets([[0, 1, 2]])
        assert isinstance(sup, Triplets)
        assert sup.world is None
        allowed = {tuple(row) for row in np.where(EVENTS["triplet"].table, 1, -1).tolist()}
        for y in LABELS:
            anchor, companion1, companion2 = (y[row] for row in sup.rows[0])
            assert ((anchor, companion1, companion2) in allowed) == at_least_as_near(*y)

    def test_answers_keep_the_order_of_asking(self):
        sup = nearer_triplets([[4, 1, 2], [4, 2, 1]], [1, -1], n_points=5)
        assert sup == TripletAnswers([[4, 1, 2], [4, 2, 1]], values=[1.0, -1.0], n_points=5)

    def test_ordered_by_answer_strict_ones_come_twice(self):
        """What the note says: of independent triples, put in order by the answer, 2 in the place of 1."""
        ordered = Counter((a, b, c) if at_least_as_near(a, b, c) else (a, c, b) for a, b, c in LABELS)
        for y in LABELS:
            strict = y[0] == y[1] != y[2]
            assert ordered[y] == (2 if strict else 1 if at_least_as_near(*y) else 0)

    def test_refused(self):
        with pytest.raises(
            InputError, match=r"`triplets` must have shape \(n, 3\). Got shape \(1, 2, 3\). It looks like copies"
        ):
            nearer_triplets(np.zeros((1, 2, 3)))
        with pytest.raises(InputError, match="`answers` must hold 1 labels, each"):
            nearer_triplets([[0, 1, 2]], [0])
        with pytest.raises(InputError, match="repeats a row"):
            nearer_triplets([[0, 1, 1]])


class TestPairs:
    def test_split_by_sign(self):
        similar, dissimilar = pairs_with_signs([[0, 1], [2, 3], [1, 4]], [1, -1, -1], n_points=5)
        assert similar == SimilarPairs([[0, 1]], n_points=5)
        assert dissimilar == DissimilarPairs([[2, 3], [1, 4]], n_points=5)

    @pytest.mark.parametrize(("y", "words"), [([1], "must hold 2 labels"), ([1, 0], "each \\+1 or -1")])
    def test_refused(self, y, words):
        with pytest.raises(InputError, match=words):
            pairs_with_signs([[0, 1], [1, 2]], y)


class TestPoolOfCopies:
    @pytest.mark.parametrize("kind", [np.float64, np.float32, np.uint8])
    def test_copies_come_back(self, kind):
        rng = np.random.default_rng(0)
        tuples = rng.integers(0, 3, (50, 3, 2)).astype(kind)
        X, rows = pool_of_copies(tuples)
        assert X.dtype == kind
        assert np.array_equal(X[rows], tuples)
        firsts = list(dict.fromkeys(map(tuple, tuples.reshape(-1, 2).tolist())))
        assert [tuple(row) for row in X.tolist()] == firsts

    def test_signed_zeros_are_one_point(self):
        X, rows = pool_of_copies([[[0.0, 1.0], [-0.0, 1.0]]])
        assert len(X) == 1
        assert rows.tolist() == [[0, 0]]

    def test_refused(self):
        with pytest.raises(InputError, match=r"shape \(n, width, features\).*Got shape \(2, 2\)"):
            pool_of_copies(np.zeros((2, 2)))
        with pytest.raises(InputError, match="Row 1, column 0 is nan"):
            pool_of_copies([[[1.0], [np.nan]]])


class TestPoolOfFrames:
    FIRST = pd.DataFrame({"a": [1.0, 2.0, 1.0], "b": [0.0, 5.0, 0.0]})
    SECOND = pd.DataFrame({"a": [2.0, 3.0, 4.0], "b": [5.0, 5.0, 5.0]})

    @pytest.mark.parametrize("kind", [lambda frame: frame, pa.Table.from_pandas], ids=["pandas", "arrow"])
    def test_by_features(self, kind):
        points, rows = pool_of_frames(kind(self.FIRST), kind(self.SECOND))
        assert rows.tolist() == [[0, 1], [1, 2], [0, 3]]
        assert points.rows.tolist() == [[1, 0], [2, 5], [3, 5], [4, 5]]
        assert points.feature_names == ("a", "b")

    @pytest.mark.parametrize("kind", [lambda frame: frame, pa.Table.from_pandas], ids=["pandas", "arrow"])
    def test_by_ids(self, kind):
        first, second = self.FIRST.assign(id=["x", "y", "x"]), self.SECOND.assign(id=["y", "z", "w"])
        points, rows = pool_of_frames(kind(first), kind(second))
        assert points.ids == ("x", "y", "z", "w")
        assert rows.tolist() == [[0, 1], [1, 2], [0, 3]]
        with pytest.raises(InputError, match=r"An id must always have the same features\. 'y'"):
            pool_of_frames(kind(first), kind(second.assign(id=["z", "y", "w"])))

    def test_refused(self):
        with pytest.raises(InputError, match="same number of rows"):
            pool_of_frames(self.FIRST, self.SECOND[:2])
        with pytest.raises(InputError, match="the same columns"):
            pool_of_frames(self.FIRST, self.SECOND.rename(columns={"a": "c"}))
        with pytest.raises(InputError, match="at least two tables"):
            pool_of_frames(self.FIRST)
