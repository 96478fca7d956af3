"""Argument checks: what passes unchanged, what is refused, and that the sentence says what came."""

from pathlib import Path

import numpy as np
import pytest

from usimul import validation as v

REFUSED = v.InputError, v.InputTypeError


class TestErrors:
    def test_tree(self):
        assert issubclass(v.InputError, v.UsimulError)
        assert issubclass(v.InputError, ValueError)
        assert issubclass(v.InputTypeError, TypeError)
        assert issubclass(v.FileFormatError, ValueError)
        assert issubclass(v.MissingDependencyError, ImportError)
        assert issubclass(v.PriorMismatchWarning, v.UsimulWarning)
        assert issubclass(v.UsimulWarning, UserWarning)

    def test_missing_dependency_names_the_install_line(self):
        error = v.missing_dependency("matplotlib", "plots", "Drawing")
        assert isinstance(error, v.MissingDependencyError)
        assert str(error) == (
            "Drawing needs the package 'matplotlib', which is not installed. "
            "Install it with: pip install 'usimul[plots]'"
        )


class TestProblems:
    def test_none(self):
        problems = v.Problems("x.csv")
        assert not problems
        problems.refuse()

    def test_one(self):
        problems = v.Problems("x.csv")
        problems.add("Ids must differ", "'a' is twice", advice="Rename one.")
        assert str(problems) == "'x.csv': Ids must differ. 'a' is twice. Rename one."
        with pytest.raises(v.FileFormatError, match=r"Ids must differ"):
            problems.refuse(v.FileFormatError)

    def test_each_sort_is_shown_and_all_are_counted(self):
        problems = v.Problems("x.csv")
        for i in range(1500):
            problems.add("Cells must be numbers", f"line {i}")
        problems.add("Columns must have names")
        problems.add("Cells must be numbers", times=500)
        assert len(problems) == 2001
        head, cells, columns = str(problems).split("\n")
        assert head == "'x.csv' has 2,001 problems:"
        assert (
            cells
            == f"  - Cells must be numbers. Line 0; {'; '.join(f'line {i}' for i in range(1, 10))}; and 1,990 more."
        )
        assert columns == "  - Columns must have names."

    def test_advice_alone_is_no_problem(self):
        problems = v.Problems("x.csv")
        problems.add("Ids must be known", "'a' is not")
        problems.add("Ids must be known", advice="Name them.", times=0)
        assert str(problems) == "'x.csv': Ids must be known. 'a' is not. Name them."


class TestChoice:
    def test_known(self):
        assert v.check_choice("b", iter(["a", "b"]), "x") == "b"

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ("relo", "`c` must be one of: none, relu, abs. Got 'relo'. Did you mean 'relu'"),
            ("zzzz", r"Got 'zzzz'\.$"),
            (None, r"Got None\.$"),
            (["abs"], r"Got \['abs'\]"),
        ],
    )
    def test_unknown(self, value, message):
        with pytest.raises(REFUSED, match=message):
            v.check_choice(value, ["none", "relu", "abs"], "c")

    def test_wrong_type_is_a_type_error(self):
        with pytest.raises(v.InputTypeError):
            v.check_choice(1, ["a"], "c")


class TestReal:
    @pytest.mark.parametrize("value", [0.5, 1, np.float32(0.25), np.float64(0.5), np.int64(1)])
    def test_passes(self, value):
        found = v.check_real(value, "x", low=0, high=1)
        assert type(found) is float
        assert found == value

    @pytest.mark.parametrize("value", [True, "0.5", None, 1j, [0.5], np.array(0.5)])
    def test_no_number(self, value):
        with pytest.raises(v.InputTypeError, match="`x` must be a number"):
            v.check_real(value, "x")

    def test_every_refusal_says_what_to_do(self):
        for check, value, remedy in (
            (lambda v_: v.check_real(v_, "x", low=0), "1", "Pass one plain number."),
            (lambda v_: v.check_real(v_, "x", low=0), -1, "Choose a number in that range."),
            (lambda v_: v.check_count(v_, "x"), 1.5, "Pass one whole number."),
            (lambda v_: v.check_count(v_, "x", low=2), 1, "Pass 2 or more."),
        ):
            with pytest.raises(REFUSED) as caught:
                check(value)
            assert str(caught.value).endswith(remedy)

    @pytest.mark.parametrize(
        ("closed", "low_ok", "high_ok", "interval"),
        [
            ("both", True, True, r"\[0, 1\]"),
            ("left", True, False, r"\[0, 1\)"),
            ("right", False, True, r"\(0, 1\]"),
            ("neither", False, False, r"\(0, 1\)"),
        ],
    )
    def test_ends(self, closed, low_ok, high_ok, interval):
        for value, ok in ((0.0, low_ok), (1.0, high_ok), (0.5, True), (-0.1, False), (1.1, False), (np.nan, False)):
            if ok:
                assert v.check_real(value, "x", low=0, high=1, closed=closed) == value
            else:
                with pytest.raises(v.InputError, match=f"`x` must lie in {interval}. Got {value}"):
                    v.check_real(value, "x", low=0, high=1, closed=closed)

    def test_fraction_is_open(self):
        assert v.check_fraction(0.2, "f") == 0.2
        for value in (0, 1):
            with pytest.raises(v.InputError, match=r"\(0, 1\)"):
                v.check_fraction(value, "f")


class TestCount:
    @pytest.mark.parametrize("value", [1, np.int32(3)])
    def test_passes(self, value):
        found = v.check_count(value, "n")
        assert type(found) is int
        assert found == value

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (0, "`n` must be at least 1. Got 0"),
            (True, "`n` must be an integer. Got True of type bool"),
            (2.0, "`n` must be an integer. Got 2.0 of type float"),
            (None, "`n` must be an integer"),
        ],
    )
    def test_refused(self, value, message):
        with pytest.raises(REFUSED, match=message):
            v.check_count(value, "n")


class TestPrior:
    def test_passes(self):
        assert v.check_prior(0.5) == 0.5
        assert v.check_prior(0.501, defined_at_half=False) == 0.501

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"value": None}, r"is required. Got None. Pass prior="),
            ({"value": None, "method": "su"}, "is required for method 'su'. Got None"),
            ({"value": 0}, r"`prior` must lie in \(0, 1\). Got 0.0"),
            ({"value": 1}, r"`prior` must lie in \(0, 1\)"),
            ({"value": float("nan")}, "Got nan"),
            ({"value": "0.4"}, "`prior` must be a number"),
            ({"value": 0.5, "defined_at_half": False, "method": "su"}, "must differ from 0.5 for method 'su'"),
            ({"value": 0.5 + 1e-9, "defined_at_half": False}, "must differ from 0.5, because its weights divide"),
        ],
    )
    def test_refused(self, options, message):
        with pytest.raises(REFUSED, match=message):
            v.check_prior(**options)

    def test_undefined_at_half_is_told_from_other_errors(self):
        with pytest.raises(v.UndefinedAtHalfError, match=r"Got 0.5. Ask otherwise\."):
            v.check_prior(0.5, defined_at_half=False, remedy="Ask otherwise.")
        with pytest.raises(v.InputError) as caught:
            v.check_prior(1.5, defined_at_half=False)
        assert not isinstance(caught.value, v.UndefinedAtHalfError)


class TestPlaces:
    def test_a_place_to_write_is_left_as_it_was(self, tmp_path):
        assert v.check_parent(tmp_path / "new") == tmp_path / "new"
        assert not list(tmp_path.iterdir())

    def test_a_folder_that_is_not_there(self, tmp_path):
        with pytest.raises(v.InputError, match=r"`output`: the folder '.*no' does not exist; make it first"):
            v.check_parent(tmp_path / "no" / "m", "output")

    @pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that nobody can write in")
    def test_a_folder_that_takes_no_files(self):
        with pytest.raises(v.InputError, match=r"nothing can be written in the folder '/proc'.*Choose another folder"):
            v.check_parent("/proc/model")


class TestSeed:
    def test_integer_and_generator(self):
        assert v.check_seed(3).integers(1 << 60) == np.random.default_rng(3).integers(1 << 60)
        rng = np.random.default_rng(0)
        assert v.check_seed(rng) is rng

    def test_none_differs_each_time(self):
        assert v.check_seed(None).integers(1 << 60) != v.check_seed(None).integers(1 << 60)

    def test_random_state(self):
        first, again = (v.check_seed(np.random.RandomState(1)).integers(1 << 60) for _ in range(2))
        assert first == again

    @pytest.mark.parametrize("value", [-1, 1.5, "0", True])
    def test_refused(self, value):
        with pytest.raises(REFUSED, match=r"`random_state` must be"):
            v.check_seed(value)


class TestRows:
    def test_shape_dtype_and_flags(self):
        rows = v.check_rows([[1, 0], [2, 3]], "r", width=2, n_points=4)
        assert rows.dtype == np.int64
        assert rows.tolist() == [[1, 0], [2, 3]]
        assert not rows.flags.writeable
        assert v.check_rows(np.array([3, 1], dtype=np.uint8), "r", width=1).tolist() == [[3], [1]]
        assert v.check_rows([], "r", width=3).shape == (0, 3)

    def test_repeats_may_be_allowed(self):
        assert v.check_rows([[1, 1]], "r", width=2, distinct=False).tolist() == [[1, 1]]

    @pytest.mark.parametrize("value", [[[True, False]], [[None, 1]], [[0.5, 1.0]], [[np.inf, 1.0]], [[2.0**60, 1.0]]])
    def test_no_indices(self, value):
        with pytest.raises(v.InputTypeError, match=r"`r` must hold integer row indices. Got dtype"):
            v.check_rows(value, "r", width=2)


class TestLabels:
    @pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float32])
    def test_passes(self, dtype):
        labels = v.check_labels(np.array([1, -1, 1], dtype=dtype))
        assert labels.dtype == np.int64
        assert labels.tolist() == [1, -1, 1]

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            ([0, 1], r"0, 1 \(dtype int64\). Translate them first: np.where\(y == positive, 1, -1\)"),
            ([1, 2], "1, 2 "),
            (["a", "b"], "a, b "),
            (["1", "-1"], "-1, 1 .dtype <U2"),
            ([None, 1], "1, None "),
            ([1, -1, 0], "-1, 0, 1 "),
            ([1.0, -1.0, np.nan], "-1.0, 1.0, nan "),
            ([1, 1], r"1 \(dtype int64\)\.$"),
            ([], "none "),
            (list(range(9)), r"0, 1, 2, 3, 4, 5, \.\.\. "),
        ],
    )
    def test_refused(self, value, shown):
        with pytest.raises(v.InputError, match=r"`y` must hold both labels \+1 and -1 .* Got values: " + shown):
            v.check_labels(value)

    def test_names_of_classes(self):
        assert v.check_class_labels(np.array([True, False]), [False, True]).tolist() == [True, False]
        assert v.check_class_labels([1.0, -1.0, 1.0], [-1, 1]).tolist() == [1.0, -1.0, 1.0]
        for value, classes, got in (
            ([0, 1], [-1, 1], "Got: 0, 1. "),
            (["1"], [-1, 1], "Got: '1'. "),
            ([np.nan, 1.0], [-1, 1], "Got: nan, 1.0. "),
            (np.arange(9), [0, 1], r"Got: 0, 1, 2, 3, 4, 5, \.\.\.\. "),
        ):
            with pytest.raises(v.InputError, match=f"`y` must hold the two classes of the classifier.*{got}Translate"):
                v.check_class_labels(value, classes)

    def test_translating_is_told_for_files_and_arrays(self):
        words = r"in a file, write ill for the positive .* well for .*; in Python, use numpy.where\(.*'ill', 'well'\)"
        with pytest.raises(v.InputError, match=words):
            v.check_class_labels(["x"], ["well", "ill"])

    def test_a_subset_may_miss_a_class(self):
        labels = v.check_labels_subset([1.0, 1.0], "k", n=2)
        assert labels.dtype == np.int64
        assert not labels.flags.writeable
        assert v.check_labels_subset([], "k", n=0).size == 0

    @pytest.mark.parametrize("value", [[1], [1, 0], [1, np.nan], ["a", "b"]])
    def test_subset_refused(self, value):
        with pytest.raises(v.InputError, match=r"`k` must hold 2 labels, each \+1 or -1. Got \["):
            v.check_labels_subset(value, "k", n=2)
