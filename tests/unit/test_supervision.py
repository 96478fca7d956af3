"""Supervision objects: what they refuse, how they are cut, and what survives on disk."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing

import usimul
from usimul.supervision import (
    ComparedPairs,
    ConfidenceDifference,
    DissimilarPairs,
    Labels,
    SimilarityConfidence,
    SimilarPairs,
    Supervision,
    Triplets,
    Unlabeled,
    load_supervision,
)
from usimul.validation import FileFormatError, InputError, InputTypeError


def triplets(**changes):
    fields = {
        "rows": [[0, 1, 2], [3, 4, 5], [6, 7, 8], [1, 4, 9]],
        "unlabeled": [9, 0, 5, 9],
        "known_rows": [2, 8],
        "known_labels": [1, -1],
        "n_points": 10,
        "world": "definition1",
        "n_asked": 6,
        "n_accepted": 4,
    }
    return Triplets(**{**fields, **changes})


EXAMPLES = [
    triplets(),
    Triplets([[0, 1, 2]]),
    Triplets(np.zeros((0, 3), dtype=int), unlabeled=[1], n_points=4),
    SimilarPairs([[0, 1], [5, 2]], unlabeled=[3], n_points=6),
    DissimilarPairs([[0, 1]]),
    ComparedPairs([[0, 1], [1, 0]]),
    SimilarityConfidence([[0, 1], [2, 3]], values=[0.0, 1 / 3], n_points=4),
    ConfidenceDifference([[0, 1], [2, 3]], values=[-1.0, 0.1]),
    Unlabeled([3, 1, 2], n_points=4),
    Labels([3, 1], values=[1, -1], n_points=4),
]


class TestValidation:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"rows": [[0, 1]]}, r"`rows` must have shape \(n, 3\). Got shape \(1, 2\). Each line is one tuple"),
            ({"rows": [0, 1, 2]}, r"`rows` must have shape \(n, 3\). Got shape \(3,\)"),
            ({"rows": np.zeros((4, 3, 2))}, "copies of points; pass row indices into X instead"),
            ({"rows": [[0, 1, 2.5]]}, "`rows` must hold integer row indices. Got dtype float64"),
            ({"rows": [[0, 1, np.nan]]}, "`rows` must hold integer row indices"),
            ({"rows": [[0, 1, 1e300]]}, "`rows` must hold integer row indices"),
            ({"rows": [["a", "b", "c"]]}, "`rows` must hold integer row indices. Got dtype <U1"),
            ({"rows": [[0, 1, 2], [0, -3, 2]]}, r"negative row indices \(smallest -3\): position 1"),
            (
                {"rows": [[0, 1, 2], [0, 10, 2]]},
                r"outside the pool of 10 rows \(largest index 10; .* 0 to 9\): position 1",
            ),
            ({"rows": [[0, 1, 2], [4, 3, 4]]}, "repeats a row inside one tuple.*: position 1"),
            ({"rows": [[7, 7, 7]] * 8}, "position 0, 1, 2, 3, 4 and 3 more"),
            ({"unlabeled": [[0, 1]]}, r"`unlabeled` must have shape \(n, 1\)"),
            ({"unlabeled": [0, 10]}, "`unlabeled` points outside the pool of 10 rows"),
            ({"n_points": 0}, "`n_points` must be at least 1"),
            ({"n_points": 2.0}, "`n_points` must be an integer"),
            ({"world": "definition2"}, "`world` must be one of: definition1.* Did you mean 'definition1'"),
            ({"n_asked": -1}, "`n_asked` must be at least 0"),
            ({"n_asked": 3}, "`n_asked` cannot be less than the 4 tuples that were accepted. Got 3"),
            ({"n_accepted": 5}, "`n_accepted` must be the number of tuples, 4.* Got 5. Leave it out"),
            ({"n_accepted": 3, "n_asked": None}, "`n_accepted` must be the number of tuples"),
            ({"rows": [[0, 1, 2], [3, 4]]}, r"`rows` must have shape \(n, 3\). Got lines of different lengths"),
            ({"known_rows": [2, 2], "known_labels": [1, -1]}, "`known_labels` must .* Row 2 has both"),
            ({"values": [1.0] * 4}, "Triplets takes no `values`"),
            ({"known_labels": None}, "`known_rows` and `known_labels` must be given together"),
            ({"known_rows": None}, "`known_rows` and `known_labels` must be given together"),
            ({"known_rows": [2, 10]}, "`known_rows` points outside the pool"),
            ({"known_labels": [1]}, "`known_labels` must hold 2 labels, each"),
            ({"known_labels": [1, 0]}, r"each \+1 or -1. Got \[1 0\]"),
        ],
    )
    def test_triplets(self, changes, message):
        with pytest.raises((InputError, InputTypeError), match=message):
            triplets(**changes)

    @pytest.mark.parametrize(
        ("kind", "values", "message"),
        [
            (SimilarityConfidence, None, "needs `values`, one number for each tuple. Got None"),
            (SimilarityConfidence, [0.5], r"must have shape \(2,\), one for each tuple. Got \(1,\)"),
            (SimilarityConfidence, [0.5, -0.1], r"must lie in \[0, 1\] and be finite. Got -0.1 at position 1"),
            (SimilarityConfidence, [np.nan, 0.1], "Got nan at position 0"),
            (ConfidenceDifference, [0.5, -1.1], r"must lie in \[-1, 1\] and be finite. Got -1.1 at position 1"),
            (SimilarityConfidence, ["a", "b"], r"`values` of SimilarityConfidence must be numbers.* Got \['a', 'b'\]"),
            (SimilarityConfidence, [0.5, [0.5]], "`values` of SimilarityConfidence must be numbers"),
            (ConfidenceDifference, [np.inf, 2], r"Got inf at position 0 \(2 such values\)"),
        ],
    )
    def test_values(self, kind, values, message):
        with pytest.raises((InputError, InputTypeError), match=message):
            kind([[0, 1], [2, 3]], values=values)

    def test_labels_are_signs(self):
        with pytest.raises(InputError, match=r"`values` of Labels must be \+1 or -1"):
            Labels([0, 1], values=[1.0, 0.5])

    def test_base_is_abstract(self):
        with pytest.raises(InputTypeError, match="Supervision is abstract; use one of: Triplets, SimilarPairs"):
            Supervision([[0]])

    def test_a_kind_cannot_be_defined_twice(self):
        with pytest.raises(TypeError, match="'triplets' is already defined"):
            type("Other", (Supervision,), {"kind": "triplets"})

    def test_arrays_are_own_copies_and_frozen(self):
        given = np.array([[0, 1, 2]])
        sup = Triplets(given)
        given[0, 0] = 9
        assert sup.rows.tolist() == [[0, 1, 2]]
        for array in (sup.rows, triplets().unlabeled, triplets().known_labels, EXAMPLES[6].values):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
        with pytest.raises(AttributeError):
            sup.rows = given

    def test_whole_floats_are_rows(self):
        assert Triplets([[0.0, 1.0, 2.0]]).rows.dtype == np.int64

    def test_empty_optional_parts_become_none(self):
        sup = triplets(unlabeled=[], known_rows=[], known_labels=[])
        assert sup.unlabeled is None
        assert sup.known_rows is None
        assert sup.known_labels is None

    def test_check_pool(self):
        triplets().check_pool(10)
        triplets(n_points=None).check_pool(10)
        with pytest.raises(InputError, match="made for a pool of 10 points, but X has 11 rows"):
            triplets().check_pool(11)
        with pytest.raises(InputError, match="`triplets` points outside the pool of 9 rows"):
            triplets(n_points=None).check_pool(9)
        with pytest.raises(InputError, match="`unlabeled` points outside the pool"):
            Triplets([[0, 1, 2]], unlabeled=[5]).check_pool(5)
        with pytest.raises(InputError, match="`known_rows` points outside the pool"):
            Triplets([[0, 1, 2]], known_rows=[5], known_labels=[1]).check_pool(5)

    def test_sizes(self):
        sup = triplets()
        assert (sup.n_tuples, sup.n_unlabeled, sup.n_used, sup.shape) == (4, 4, 16, (10,))
        assert {name: rows.shape for name, rows in sup.sources().items()} == {"triplets": (4, 3), "unlabeled": (4, 1)}
        with pytest.raises(InputError, match="does not know the size of its pool"):
            _ = Triplets([[0, 1, 2]]).shape

    def test_repr(self):
        assert repr(triplets()) == (
            "Triplets(4 tuples, 4 unlabeled, 2 known labels, pool of 10, world 'definition1', 4 of 6 asked)"
        )


def sliced_by_loops(sup, kept):
    """The points of every tuple, unlabeled and known, that survive, as rows of the old pool."""
    kept = list(kept)
    return (
        [t for t in sup.rows.tolist() if all(row in kept for row in t)],
        [row for row in sup.unlabeled.tolist() if row in kept],
        [(r, k) for r, k in zip(sup.known_rows.tolist(), sup.known_labels.tolist(), strict=True) if r in kept],
    )


class TestSlicing:
    @pytest.mark.parametrize("as_mask", [False, True])
    def test_renumbers_what_is_inside(self, as_mask):
        sup, kept = triplets(), [0, 1, 2, 4, 8, 9]
        key = np.isin(np.arange(10), kept) if as_mask else np.array(kept)
        part = sup[key]
        tuples, unlabeled, known = sliced_by_loops(sup, kept)
        back = np.array(kept)
        assert back[part.rows].tolist() == tuples == [[0, 1, 2], [1, 4, 9]]
        assert back[part.unlabeled].tolist() == unlabeled == [9, 0, 9]
        assert list(zip(back[part.known_rows], part.known_labels, strict=True)) == known
        assert (part.n_points, part.n_asked, part.n_accepted, part.world) == (6, None, None, "definition1")

    def test_commutes_with_slicing_points(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 2))
        sup = Triplets([rng.choice(60, 3, replace=False) for _ in range(300)], unlabeled=range(60), n_points=60)
        kept = rng.permutation(60)[:40]
        part = sup[kept]
        inside = [t for t in sup.rows.tolist() if set(t) <= set(kept.tolist())]
        assert part.n_tuples == len(inside) > 0
        np.testing.assert_array_equal(X[kept][part.rows], X[np.array(inside)])

    def test_values_follow_their_tuples(self):
        sup = SimilarityConfidence([[0, 1], [2, 3], [1, 3]], values=[0.1, 0.2, 0.3], n_points=4)
        assert sup[[3, 1]].values.tolist() == [0.3]
        assert sup[[3, 1]].rows.tolist() == [[1, 0]]

    def test_scikit_learn_can_index_and_split(self):
        rng = np.random.default_rng(1)
        sup = Triplets([rng.choice(30, 3, replace=False) for _ in range(200)], n_points=30)
        X = np.zeros((30, 1))
        for train, test in KFold(3).split(X, sup):
            for rows in (train, test):
                part = _safe_indexing(sup, rows)
                assert part.n_points == rows.size
                assert part.n_tuples == sum(set(t) <= set(rows.tolist()) for t in sup.rows.tolist())

    def test_take(self):
        part = triplets().take([2, 0], [1])
        assert part.rows.tolist() == [[6, 7, 8], [0, 1, 2]]
        assert part.unlabeled.tolist() == [0]
        assert (part.n_points, part.n_asked, part.n_accepted) == (10, None, None)
        assert triplets().take(slice(1)).unlabeled.tolist() == [9, 0, 5, 9]
        assert EXAMPLES[6].take([1]).values.tolist() == [1 / 3]

    def test_split_is_a_partition(self):
        rows = np.arange(60).reshape(20, 3)
        sup = Triplets(rows, unlabeled=range(40), n_points=60)
        large, small = sup.split(0.25, np.random.default_rng(0))
        assert (large.n_tuples, small.n_tuples, large.n_unlabeled, small.n_unlabeled) == (15, 5, 30, 10)
        assert sorted(large.rows.tolist() + small.rows.tolist()) == rows.tolist()
        assert sorted(large.unlabeled.tolist() + small.unlabeled.tolist()) == list(range(40))
        assert small.rows.tolist() != rows[:5].tolist()
        assert (large, small) == sup.split(0.25, np.random.default_rng(0))

    def test_split_refuses_an_empty_side(self):
        with pytest.raises(InputError, match=r"a share of 0.01 of 4 tuples leaves one side empty"):
            triplets().split(0.01, np.random.default_rng(0))
        with pytest.raises(InputError, match=r"`fraction` must lie in \(0, 1\)"):
            triplets().split(1.0, np.random.default_rng(0))

    def test_with_known_labels(self):
        sup = triplets().with_known_labels({4: -1, 1: 1})
        assert (sup.known_rows.tolist(), sup.known_labels.tolist()) == ([4, 1], [-1, 1])
        assert sup.rows.tolist() == triplets().rows.tolist()
        assert triplets().with_known_labels({}).known_rows is None


class TestEquality:
    def test_equal_by_value(self):
        assert triplets() == triplets()
        assert pickle.loads(pickle.dumps(triplets())) == triplets()

    @pytest.mark.parametrize(
        "changes",
        [
            {"rows": [[0, 2, 1], [3, 4, 5], [6, 7, 8], [1, 4, 9]]},
            {"unlabeled": None},
            {"unlabeled": [9, 0, 5, 8]},
            {"known_labels": [1, 1]},
            {"n_points": 11},
            {"world": None},
            {"n_asked": 7},
        ],
    )
    def test_any_difference_counts(self, changes):
        assert triplets(**changes) != triplets()

    def test_kinds_differ(self):
        assert SimilarPairs([[0, 1]]) != DissimilarPairs([[0, 1]])
        assert triplets() != "triplets"

    def test_not_hashable(self):
        with pytest.raises(TypeError, match="unhashable"):
            hash(triplets())


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "answers.npz"
    triplets().save(path)
    return path


def rewrite(path, *, drop=(), header=None, **arrays):
    """Change single members of a supervision file, keeping the archive itself whole."""
    with np.load(path) as archive:
        content = {name: archive[name] for name in archive.files if name not in drop}
    if header is not None:
        arrays["header"] = np.array(json.dumps({**json.loads(str(content["header"])), **header}))
    np.savez(path, **{**content, **arrays})


class TestFiles:
    @pytest.mark.parametrize("sup", EXAMPLES, ids=lambda s: f"{s.kind}-{s.n_tuples}")
    def test_round_trip(self, sup, tmp_path):
        path = tmp_path / "s.npz"
        sup.save(path)
        loaded = load_supervision(path)
        assert type(loaded) is type(sup)
        assert loaded == sup
        assert not loaded.rows.flags.writeable

    def test_suffix(self, tmp_path):
        with pytest.raises(InputError, match=r"must end in .npz. Got '.*answers.csv'"):
            triplets().save(tmp_path / "answers.csv")
        assert list(tmp_path.iterdir()) == []

    def test_missing(self, tmp_path):
        with pytest.raises(InputError, match=r"there is no supervision file '.*gone.npz'"):
            load_supervision(tmp_path / "gone.npz")

    def test_every_truncation(self, file):
        whole = file.read_bytes()
        for size in range(0, len(whole), 7):
            file.write_bytes(whole[:size])
            with pytest.raises(FileFormatError, match=r"answers.npz' is not a whole supervision file"):
                load_supervision(file)

    def test_changed_bytes_are_noticed_or_harmless(self, file):
        whole, rng = file.read_bytes(), np.random.default_rng(0)
        noticed = 0
        for _ in range(400):
            damaged = bytearray(whole)
            damaged[rng.integers(len(whole))] ^= int(rng.integers(1, 256))
            file.write_bytes(damaged)
            try:
                assert load_supervision(file) == triplets()
            except FileFormatError as error:
                assert "answers.npz" in str(error)  # noqa: PT017 - either outcome is right
                noticed += 1
        assert noticed > 200

    def test_random_bytes(self, file):
        rng = np.random.default_rng(0)
        for size in (1, 10, 1000):
            file.write_bytes(rng.bytes(size))
            with pytest.raises(FileFormatError, match="is not a whole supervision file") as error:
                load_supervision(file)
            assert "allow_pickle" not in str(error.value)

    def test_plain_npy(self, file):
        buffer = io.BytesIO()
        np.save(buffer, np.arange(3))
        file.write_bytes(buffer.getvalue())
        with pytest.raises(FileFormatError, match="is not a whole supervision file"):
            load_supervision(file)

    def test_pickles_are_never_opened(self, file, tmp_path):
        class Bomb:
            def __reduce__(self):
                return (open, (str(tmp_path / "boom"), "w"))

        for content in (None, pickle.dumps(Bomb())):
            if content is None:
                rewrite(file, rows=np.array([Bomb()], dtype=object))
            else:
                file.write_bytes(content)
            with pytest.raises(FileFormatError, match="is not a whole supervision file"):
                load_supervision(file)
        assert not (tmp_path / "boom").exists()

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"header": {"version": 2}}, "has format version 2; this usimul reads version 1"),
            ({"header": {"version": None}}, "has format version None"),
            ({"header": {"format": "other"}}, "is not a usimul supervision file"),
            ({"header": {"kind": "quadruplets"}}, "unknown kind 'quadruplets'; known kinds: triplets, similar-pairs"),
            ({"header": {"kind": ["triplets"]}}, r"unknown kind \['triplets'\]"),
            ({"header": {"kind": "similar-pairs"}}, r"holds impossible supervision: `rows` must have shape \(n, 2\)"),
            ({"header": {"n_points": 5}}, "holds impossible supervision: .* outside the pool of 5 rows"),
            ({"header": {"n_points": "5"}}, "holds impossible supervision: `n_points` must be an integer"),
            ({"header": {"arrays": 3}}, "has lost some of its arrays"),
            ({"header": {"colour": "red"}}, r"has unexpected content \(colour\)"),
            ({"extra": np.zeros(2)}, r"has unexpected content \(extra\)"),
            ({"drop": ["rows"]}, "has lost some of its arrays"),
            ({"drop": ["unlabeled"]}, "has lost some of its arrays"),
            ({"drop": ["header"]}, "is not a whole supervision file"),
            ({"rows": np.array([["a", "b", "c"]])}, "holds impossible supervision: `rows` must hold integer"),
        ],
    )
    def test_foreign_content(self, file, change, message):
        rewrite(file, **change)
        with pytest.raises(FileFormatError, match=message) as error:
            load_supervision(file)
        assert "answers.npz" in str(error.value)

    def test_header_that_is_no_object(self, file):
        with np.load(file) as archive:
            content = {**archive, "header": np.array("[1, 2]")}
        np.savez(file, **content)
        with pytest.raises(FileFormatError, match="is not a usimul supervision file"):
            load_supervision(file)

    def test_an_unchanged_rewrite_still_loads(self, file):
        # Otherwise the cases above could pass because of the rewriting itself.
        rewrite(file, header={})
        assert load_supervision(file) == triplets()

    def test_no_pickled_members(self, file):
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)
            assert set(archive.namelist()) == {
                f"{name}.npy" for name in ("header", "rows", "unlabeled", "known_rows", "known_labels")
            }

    def test_failed_save_leaves_the_old_file(self, file, monkeypatch):
        def full_disk(handle, **arrays):
            handle.write(b"half a fi")
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(np, "savez_compressed", full_disk)
        with pytest.raises(OSError, match="No space left"):
            Triplets([[0, 1, 2]]).save(file, overwrite=True)
        assert load_supervision(file) == triplets()
        assert [p.name for p in file.parent.iterdir()] == ["answers.npz"]

    def test_readers_of_the_old_file_keep_it(self, file):
        # Writing in place would show a reader half of the new file; a second name shows whether that happened.
        other = file.with_name("old.npz")
        other.hardlink_to(file)
        Triplets([[0, 1, 2]]).save(file, overwrite=True)
        assert load_supervision(other) == triplets()

    def test_answers_are_replaced_only_when_asked(self, file):
        for save in (Triplets([[0, 1, 2]]).save, lambda path: usimul.save(Triplets([[0, 1, 2]]), path)):
            with pytest.raises(InputError, match=r"answers.npz' exists already. .*overwrite=True"):
                save(file)
            assert load_supervision(file) == triplets()
        usimul.save(Triplets([[0, 1, 2]]), file, overwrite=True)
        assert load_supervision(file) == Triplets([[0, 1, 2]])

    def test_places_where_nothing_can_be_written(self, tmp_path):
        with pytest.raises(InputError, match=r"the folder '.*nofolder' does not exist; make it first"):
            usimul.save(triplets(), tmp_path / "nofolder" / "z.npz")
        (tmp_path / "folder.npz").mkdir()
        with pytest.raises(InputError, match="is a folder; name a file"):
            triplets().save(tmp_path / "folder.npz", overwrite=True)

    def test_save_replaces(self, file):
        Triplets([[0, 1, 2]]).save(file, overwrite=True)
        assert load_supervision(file) == Triplets([[0, 1, 2]])
        assert [p.name for p in file.parent.iterdir()] == ["answers.npz"]
