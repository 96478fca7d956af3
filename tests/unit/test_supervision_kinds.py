"""Kinds with several sources: answers, and sets of known shares. What all kinds share is tested in test_supervision."""

import numpy as np
import pytest

from usimul.supervision import (
    Labels,
    PairAnswers,
    Supervision,
    TripletAnswers,
    Triplets,
    UnlabeledSets,
    load_supervision,
)
from usimul.validation import FileFormatError, InputError


def pairs(**changes):
    return PairAnswers(**{"rows": [[0, 1], [2, 3], [4, 5], [1, 0]], "values": [1, -1, -1, 1], "n_points": 6, **changes})


def triples(**changes):
    return TripletAnswers(**{"rows": [[0, 1, 2], [3, 4, 5], [1, 3, 5]], "values": [-1, 1, 1], "n_points": 6, **changes})


def sets(**changes):
    return UnlabeledSets(**{"rows": [0, 1, 2, 3], "values": [0.2, 0.7, 0.7, 0.2], "n_points": 4, **changes})


MAKERS = (pairs, triples, sets)
each_kind = pytest.mark.parametrize("make", MAKERS, ids=lambda m: m.__name__)


class TestSources:
    def test_pairs_by_answer(self):
        found = pairs().sources()
        assert list(found) == ["similar", "dissimilar"]
        assert found["similar"].tolist() == [[0, 1], [1, 0]]
        assert found["dissimilar"].tolist() == [[2, 3], [4, 5]]

    def test_triples_by_answer(self):
        found = triples().sources()
        assert list(found) == ["first", "second"]
        assert found["first"].tolist() == [[3, 4, 5], [1, 3, 5]]
        assert found["second"].tolist() == [[0, 1, 2]]

    def test_sets_with_more_positives_first(self):
        assert sets().shares == (0.7, 0.2)
        found = sets().sources()
        assert list(found) == ["first", "second"]
        assert found["first"].tolist() == [[1], [2]]
        assert found["second"].tolist() == [[0], [3]]

    @pytest.mark.parametrize(("make", "n"), [(pairs, 8), (triples, 9), (sets, 4)])
    def test_every_point_is_used_once(self, make, n):
        assert make().n_used == n

    def test_one_point_may_be_in_both_sets(self):
        found = sets(rows=[0, 0, 1, 1]).sources()
        assert sorted(found["first"].ravel().tolist()) == sorted(found["second"].ravel().tolist()) == [0, 1]


class TestMissingAnswer:
    @pytest.mark.parametrize(
        ("make", "values", "missing"),
        [
            (pairs, [1] * 4, "dissimilar"),
            (pairs, [-1] * 4, "similar"),
            (triples, [1] * 3, "second"),
            (triples, [-1] * 3, "first"),
        ],
    )
    def test_is_an_error_when_learned_from(self, make, values, missing):
        sup = make(values=values)  # holding such answers is no error, a collection starts like this
        with pytest.raises(InputError, match=rf"holds no '{missing}' answer; both answers are needed\. Ask more"):
            sup.sources()

    def test_is_an_error_in_a_slice_too(self):
        with pytest.raises(InputError, match="PairAnswers holds no 'dissimilar' answer"):
            pairs()[[0, 1]].sources()

    def test_one_set_is_an_error_at_once(self):
        with pytest.raises(InputError, match=r"two different shares, one for each set. Got 1: \[0.2\]"):
            sets(values=[0.2] * 4)
        with pytest.raises(InputError, match=r"Got 3: \[0.1 0.2 0.7\]"):
            sets(values=[0.1, 0.2, 0.7, 0.7])

    @each_kind
    def test_nothing_at_all(self, make):
        empty = make().take(np.empty(0, dtype=int))
        assert empty.n_tuples == 0
        with pytest.raises(InputError, match=r"holds no|has no points"):
            empty.sources()


class TestValues:
    @pytest.mark.parametrize(
        ("make", "values", "message"),
        [
            (pairs, None, "PairAnswers needs `values`, one number for each tuple. Got None"),
            (pairs, [1, 1, -1], r"must have shape \(4,\), one for each tuple. Got \(3,\)"),
            (pairs, [1, -1, 0, 1], r"`values` of PairAnswers must be \+1 or -1, the answer to each question"),
            (pairs, [1, -1, np.nan, 1], "Got nan at position 2"),
            (pairs, [1, -1, 2, 1], r"must lie in \[-1, 1\] and be finite. Got 2.0 at position 2"),
            (triples, [1, 0.5, -1], r"`values` of TripletAnswers must be \+1 or -1"),
            (sets, [0.2, 0.7, 0.7, 1.2], r"`values` of UnlabeledSets must lie in \[0, 1\].* Got 1.2 at position 3"),
            (sets, [0.2, 0.7, 0.7, np.nan], "Got nan at position 3"),
            (sets, None, "UnlabeledSets needs `values`"),
        ],
    )
    def test_refused(self, make, values, message):
        with pytest.raises(InputError, match=message):
            make(values=values)

    @pytest.mark.parametrize(
        ("make", "rows", "message"),
        [
            (pairs, [[0, 1, 2]] * 4, r"`rows` must have shape \(n, 2\). Got shape \(4, 3\)"),
            (pairs, [[0, 0]] * 4, "repeats a row inside one tuple"),
            (triples, [[0, 1, 0]] * 3, "repeats a row inside one tuple"),
            (triples, [[0, 1, 6]] * 3, "outside the pool of 6 rows"),
            (sets, [[0, 1]] * 4, r"`rows` must have shape \(n, 1\)"),
        ],
    )
    def test_rows_refused(self, make, rows, message):
        with pytest.raises(InputError, match=message):
            make(rows=rows)

    @each_kind
    def test_frozen(self, make):
        sup = make()
        for array in (sup.rows, sup.values):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0

    def test_shares_at_the_ends(self):
        assert sets(values=[0, 1, 1, 0]).shares == (1.0, 0.0)


class TestCuts:
    def test_slice_keeps_answers_with_their_tuples(self):
        part = pairs()[[5, 4, 1, 0]]
        assert part.rows.tolist() == [[3, 2], [1, 0], [2, 3]]
        assert part.values.tolist() == [1, -1, 1]
        assert part.sources()["dissimilar"].tolist() == [[1, 0]]

    def test_slice_of_triples(self):
        part = triples()[np.array([False, True, False, True, True, True])]
        assert part.rows.tolist() == [[1, 2, 3], [0, 1, 3]]
        assert part.values.tolist() == [1, 1]

    def test_slice_of_sets(self):
        part = sets()[[3, 1]]
        assert part.rows.ravel().tolist() == [1, 0]
        assert part.shares == (0.7, 0.2)

    def test_slice_that_loses_a_set(self):
        with pytest.raises(InputError, match="two different shares"):
            sets()[[0, 3]]

    @each_kind
    def test_slicing_commutes_with_slicing_points(self, make):
        sup = make()
        X = np.arange(sup.n_points) * 10
        keep = np.arange(sup.n_points)[::-1]
        part = sup[keep]
        assert X[keep][part.rows].tolist() == X[sup.rows].tolist()
        assert part.values.tolist() == sup.values.tolist()

    @each_kind
    def test_take(self, make):
        sup = make()
        part = sup.take([1, 0])
        assert part.rows.tolist() == sup.rows[[1, 0]].tolist()
        assert part.values.tolist() == sup.values[[1, 0]].tolist()
        assert part.n_points == sup.n_points

    @pytest.mark.parametrize("kind", [PairAnswers, TripletAnswers, UnlabeledSets])
    def test_split_is_a_partition(self, kind):
        rows = np.arange(40 * kind.width).reshape(40, kind.width)
        values = np.resize([0.9, 0.1] if kind is UnlabeledSets else [1.0, -1.0], 40)
        sup = kind(rows, values=values)
        large, small = sup.split(0.25, np.random.default_rng(0))
        assert (large.n_tuples, small.n_tuples) == (30, 10)
        found = {tuple(r): v for part in (large, small) for r, v in zip(part.rows.tolist(), part.values, strict=True)}
        assert found == {tuple(r): v for r, v in zip(rows.tolist(), values, strict=True)}


class TestFiles:
    @each_kind
    def test_round_trip(self, make, tmp_path):
        sup = make().with_known_labels({0: 1, 3: -1})
        sup.save(tmp_path / "answers.npz")
        loaded = load_supervision(tmp_path / "answers.npz")
        assert type(loaded) is type(sup)
        assert loaded == sup
        assert {k: v.tolist() for k, v in loaded.sources().items()} == {k: v.tolist() for k, v in sup.sources().items()}

    @each_kind
    def test_equality_looks_at_the_values(self, make):
        sup = make()
        other = sup.values.copy()
        other[[0, 1]] = other[[1, 0]]
        assert sup == make()
        assert sup != make(values=other)

    def test_kinds_are_not_mixed_up(self, tmp_path):
        assert pairs() != Labels([0, 2, 4, 1], values=[1, -1, -1, 1])
        path = tmp_path / "answers.npz"
        pairs().save(path)
        with np.load(path) as archive:
            content = {**archive}
        content["header"] = np.array(str(content["header"]).replace("pair-answers", "triplet-answers"))
        np.savez(path, **content)
        with pytest.raises(FileFormatError, match=r"holds impossible supervision: `rows` must have shape \(n, 3\)"):
            load_supervision(path)

    @each_kind
    def test_repr(self, make):
        sup = make()
        assert repr(sup) == f"{type(sup).__name__}({sup.n_tuples} tuples, pool of {sup.n_points})"


class TestRegistry:
    def test_the_abstract_kind_of_answers_is_no_kind(self):
        assert "_TwoAnswers" not in {cls.__name__ for cls in Supervision.kinds().values()}

    def test_names_in_files(self):
        kinds = Supervision.kinds()
        assert kinds["pair-answers"] is PairAnswers
        assert kinds["triplet-answers"] is TripletAnswers
        assert kinds["unlabeled-sets"] is UnlabeledSets

    def test_yes_is_the_event_of_triplets_with_the_middle_point_as_anchor(self):
        y = np.array([1, 1, -1, -1, 1, -1])
        answered = TripletAnswers([[0, 2, 1], [0, 1, 2]], values=[-1, 1])
        for row, value in zip(answered.rows, answered.values, strict=True):
            triplet = Triplets([row[[1, 0, 2]]])  # anchor first
            a, b, c = y[triplet.rows[0]]
            assert (a in (b, c)) == (value > 0)
