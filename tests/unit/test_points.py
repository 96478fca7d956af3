"""Points from arrays, tables and data frames: what they hold, and that all problems are told at once."""

import builtins
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from usimul.points import Points, check_ids, read_labels, read_points, write_array_file
from usimul.validation import FileFormatError, InputError, InputTypeError, MissingDependencyError, Problems

GOOD = "id,age,height\nann,31,1.7\nbob,45,1.9\neve,28,1.6\n"
X = np.array([[31, 1.7], [45, 1.9], [28, 1.6]])
BAD_TABLE = "id,age,height\nann,old,1.7\nbob,,inf\nann,3\n,1,1e60\ncid, 7 ,2\n"


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def problems_of(source, **options):
    with pytest.raises(InputError) as error:
        read_points(source, **options)
    return str(error.value)


class TestArrays:
    def test_npy_stays_on_disk(self, tmp_path):
        np.save(tmp_path / "x.npy", X)
        points = read_points(tmp_path / "x.npy")
        assert isinstance(points.rows, np.memmap)
        assert points.rows.filename == tmp_path / "x.npy"
        assert np.array_equal(points.rows, X)
        assert (points.ids, points.feature_names, points.image_shape) == (None, None, None)

    def test_images_in_npy_stay_on_disk(self, tmp_path):
        images = np.arange(2 * 3 * 4 * 5, dtype=np.uint8).reshape(2, 3, 4, 5)
        np.save(tmp_path / "x.npy", images)
        points = read_points(tmp_path / "x.npy")
        assert isinstance(points.rows, np.memmap)
        assert points.image_shape == (3, 4, 5)
        assert np.array_equal(points.rows.reshape(images.shape), images)

    def test_channels_last(self):
        images = np.arange(2 * 6 * 5 * 3).reshape(2, 6, 5, 3)
        points = read_points(images)
        assert points.image_shape == (3, 6, 5)
        assert points.rows[1, 1 * 30 + 2 * 5 + 3] == images[1, 2, 3, 1]

    def test_npz_with_ids(self, tmp_path):
        points = Points(X, None, ("a", "b", "c"), ("age", "height"))
        with (tmp_path / "x.npz").open("wb") as handle:
            write_array_file(points, handle, ".npz")
        again = read_points(tmp_path / "x.npz")
        assert np.array_equal(again.rows, X)
        assert (again.ids, again.feature_names) == (points.ids, points.feature_names)

    def test_images_get_their_shape_back(self, tmp_path):
        images = np.arange(2 * 3 * 4 * 5, dtype=np.uint8).reshape(2, 3, 4, 5)
        for suffix in (".npy", ".npz"):
            with (tmp_path / f"x{suffix}").open("wb") as handle:
                write_array_file(read_points(images), handle, suffix)
            again = read_points(tmp_path / f"x{suffix}")
            assert again.image_shape == (3, 4, 5)
            assert np.array_equal(again.rows.reshape(images.shape), images)

    @pytest.mark.parametrize(
        ("ids", "message"),
        [
            (["a", "b"], "needs 3 ids, one for each row. Got 2"),
            (["a", "b", "a"], "Ids must differ. 'a' is the id of rows 0 and 2"),
            ([1.0, 2.0, 3.0], "must hold texts or whole numbers in 'ids'. Got dtype float64"),
        ],
    )
    def test_bad_ids_in_npz(self, tmp_path, ids, message):
        np.savez(tmp_path / "x.npz", X=X, ids=np.array(ids))
        with pytest.raises((InputError, FileFormatError), match=message):
            read_points(tmp_path / "x.npz")

    def test_every_bad_number_is_counted(self):
        bad = np.zeros((100, 3))
        bad[10:60, 1] = np.nan
        text = problems_of(bad)
        assert "'ndarray' has 50 problems" in text
        assert "Row 10, column 1 is nan; row 11, column 1 is nan" in text
        assert "row 29, column 1 is nan; and 30 more" in text
        assert "row 30" not in text

    def test_objects_are_told_what_is_expected(self):
        with pytest.raises(InputTypeError, match=r"a pandas DataFrame.*Got list"):
            read_points([[1.0]])
        with pytest.raises(InputTypeError, match="named fields"):
            read_points(np.zeros(3, dtype=[("a", int)]))

    def test_missing_and_unknown_files(self, tmp_path):
        with pytest.raises(InputError, match="there is no file or folder"):
            read_points(tmp_path / "gone.csv")
        with pytest.raises(InputError, match=r"must be a \.npy or \.npz file, a table"):
            read_points(write(tmp_path / "x.txt", "1"))

    @pytest.mark.parametrize(
        ("name", "options", "word"),
        [
            ("x.npy", {"id_column": "a"}, "`id_column` does not belong to .*x.npy', an array"),
            ("x.npy", {"resize": (2, 2)}, "`resize` does not belong"),
            ("x.csv", {"key": "a"}, "`key` does not belong to .*x.csv', a table"),
            ("x.csv", {"mode": "grey"}, "`mode` does not belong"),
            (".", {"ignore": ["a"]}, "`ignore` does not belong to .*, a folder or archive of images"),
        ],
    )
    def test_options_that_do_not_belong(self, tmp_path, name, options, word):
        np.save(tmp_path / "x.npy", X)
        write(tmp_path / "x.csv", GOOD)
        with pytest.raises(InputError, match=word):
            read_points(tmp_path / name, **options)


class TestPoints:
    def test_rows_of(self):
        points = Points(X, ids=("ann", "bob", "7"))
        assert points.rows_of(["bob", 7, "ann", "bob"]).tolist() == [1, 2, 0, 1]
        assert points.rows_of(np.array([["bob", "ann"]])).tolist() == [[1, 0]]
        with pytest.raises(InputError, match=r"2 problems:\n.*'bop' is none \(did you mean 'bob'\?\); '8' is none"):
            points.rows_of(["bop", "ann", 8])

    def test_rows_of_without_ids(self):
        with pytest.raises(InputError, match=r"have no ids\. Name them by row numbers"):
            Points(X).rows_of(["a"])

    def test_frozen(self):
        with pytest.raises(AttributeError):
            Points(X).rows = X

    def test_points_pass_through(self):
        points = Points(X)
        assert read_points(points) is points

    def test_chunks_cover_all_rows(self, monkeypatch):
        monkeypatch.setattr("usimul.points.base.CHUNK_VALUES", 4)
        parts = list(Points(X).chunks())
        assert [start for start, _ in parts] == [0, 2]
        assert np.array_equal(np.concatenate([part for _, part in parts]), X.astype(np.float32))

    @pytest.mark.parametrize(
        ("cells", "texts"), [(["a", " b "], ("a", "b")), ([1, np.int64(2)], ("1", "2")), ([1.0, 2.0], ("1", "2"))]
    )
    def test_ids_are_text(self, cells, texts):
        assert check_ids(cells, range(2), "row", Problems("x")) == texts

    @pytest.mark.parametrize("cell", [None, "", "  ", 1.5, float("nan"), True, b"a"])
    def test_no_ids(self, cell):
        problems = Problems("x")
        check_ids([cell], [3], "row", problems)
        assert len(problems) == 1
        assert "row 3 has" in str(problems).lower()


class TestCsv:
    def test_named_columns(self, tmp_path):
        points = read_points(write(tmp_path / "x.csv", GOOD))
        assert np.array_equal(points.rows, X)
        assert points.ids == ("ann", "bob", "eve")
        assert points.feature_names == ("age", "height")
        assert points.source == str(tmp_path / "x.csv")

    def test_id_column_and_ignored_columns(self, tmp_path):
        path = write(tmp_path / "x.csv", "name,id,age,note\nann,1,31,tall\nbob,2,45,\n")
        points = read_points(path, id_column="name", ignore=["note"])
        assert points.ids == ("ann", "bob")
        assert points.feature_names == ("id", "age")
        assert points.rows.tolist() == [[1, 31], [2, 45]]
        assert read_points(path, ignore=["note", "name", "id"]).ids is None

    def test_quotes_bom_tabs_and_windows_lines(self, tmp_path):
        path = tmp_path / "x.tsv"
        path.write_bytes('﻿"id"\t"a,b"\r\n"x\ty"\t1\r\n\r\nz\t2\r\n'.encode())
        points = read_points(path)
        assert points.ids == ("x\ty", "z")
        assert points.feature_names == ("a,b",)
        assert points.rows.tolist() == [[1], [2]]

    def test_what_pandas_wrote(self, tmp_path):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.normal(size=(500, 4)), columns=list("abcd"))
        frame.to_csv(tmp_path / "x.csv", index=False)
        assert np.array_equal(read_points(tmp_path / "x.csv").rows, frame.to_numpy())

    def test_in_chunks(self, tmp_path, monkeypatch):
        monkeypatch.setattr("usimul.points.tables.CHUNK_VALUES", 32)
        path = write(tmp_path / "x.csv", "id,a,b\n" + "".join(f"p{i},{i},{-i}\n" for i in range(11)))
        points = read_points(path)
        assert points.rows[:, 0].tolist() == list(range(11))
        assert points.ids[10] == "p10"
        write(path, "id,a,b\n" + "".join(f"p{i},{i},{'x' if i == 9 else -i}\n" for i in range(11)))
        assert "Line 11, column 'b' is 'x'" in problems_of(path)

    def test_all_problems_at_once(self, tmp_path):
        text = problems_of(write(tmp_path / "x.csv", BAD_TABLE))
        assert "x.csv' has 6 problems" in text
        for words in (
            "Line 2, column 'age' is 'old'; line 3, column 'age' is empty; line 3, column 'height' is 'inf'; "
            "line 5, column 'height' is '1e60'",
            "Lines must have 3 cells, as the first one has. Line 4 has 2",
            "Every point needs an id, a text or a whole number. Line 5 has empty",
        ):
            assert words in text, text
        assert "'cid'" not in text

    def test_empty_lines_of_one_column(self, tmp_path):
        path = write(tmp_path / "y.csv", "label\n1\n\n-1\n\n\n1\n")
        for read in (read_labels, read_points):
            with pytest.raises(
                InputError, match=r"except at its end. Line 3 is; line 5 is; line 6 is. Fill in the cell"
            ):
                read(path)
        assert read_labels(write(path, "\nlabel\n1\n-1\n\n\n"))[0].tolist() == [1, -1]
        assert read_points(write(path, "a,b\n1,2\n\n3,4\n")).rows.tolist() == [[1, 2], [3, 4]]

    def test_underscores_are_no_part_of_numbers(self, tmp_path):
        assert "Line 2, column 'a' is '1_000'" in problems_of(write(tmp_path / "x.csv", "a,b\n1_000,2\n3,4\n"))
        assert read_labels(write(tmp_path / "y.csv", "label\n1_0\n2\n"))[0].tolist() == ["1_0", "2"]
        assert read_points(write(tmp_path / "x.csv", "1_0,2_0\n1,2\n")).feature_names == ("1_0", "2_0")

    def test_repeated_ids_name_both_lines(self, tmp_path):
        text = problems_of(write(tmp_path / "x.csv", 'id,a\n"x\ny",1\nb,2\n"x\ny",3\n'))
        assert "is the id of lines 2 and 5" in text

    @pytest.mark.parametrize(
        ("content", "options", "message"),
        [
            ("", {}, "is empty; expected a first line"),
            ("a,b\n", {}, "At least one point is expected. There are no rows"),
            ("1,2\n3,4\n", {}, "must name its columns in the first line, which holds numbers: 1, 2"),
            ("a;b\n1;2\n", {}, "must separate columns by commas. Its first line has semicolons"),
            ("id\nann\n", {}, "At least one column of numbers is expected. The columns are: id"),
            (",a\n0,1\n", {}, r"Columns must have names. Column 1 has none. pandas: to_csv\(..., index=False\)"),
            ("a,a\n0,1\n", {}, "Columns must have different names. 'a' occurs 2 times"),
            (GOOD, {"id_column": "name"}, "A column 'name' is expected. The columns are: id, age, height"),
            (GOOD, {"ignore": ["hight"]}, r"A column 'hight' is expected.*\(did you mean 'height'\?\)"),
            ('id,a\n"x,1\n', {}, "is no whole table; near line 2"),
        ],
    )
    def test_refused(self, tmp_path, content, options, message):
        with pytest.raises((InputError, FileFormatError), match=message):
            read_points(write(tmp_path / "x.csv", content), **options)

    def test_no_utf8(self, tmp_path):
        (tmp_path / "x.csv").write_bytes("id,größe\na,1\n".encode("latin-1"))
        with pytest.raises(FileFormatError, match="is no text in UTF-8"):
            read_points(tmp_path / "x.csv")


class TestJsonLines:
    def test_objects(self, tmp_path):
        path = write(tmp_path / "x.jsonl", '{"id": "a", "x": 1, "y": 0.5}\n\n{"y": 1.5, "x": 2, "id": 7}\n')
        points = read_points(path)
        assert points.rows.tolist() == [[1, 0.5], [2, 1.5]]
        assert points.ids == ("a", "7")

    def test_all_problems_at_once(self, tmp_path):
        path = write(tmp_path / "x.jsonl", '{"id": "a", "x": "1"}\n{"id": "b"}\nx\n{"id": "a", "x": NaN}\n[1]\n')
        text = problems_of(path)
        assert "has 6 problems" in text
        for words in ("line 1, column 'x' is '1'", "line 2, column 'x' is empty", "'a' is the id of lines 1 and 4"):
            assert words in text.replace("Line", "line")
        assert "Line 3 is not: 'x'; line 5 is not: '[1]'" in text

    def test_a_feature_called_format(self, tmp_path):
        path = write(tmp_path / "x.jsonl", '{"format": 1, "version": 5, "x": 2}\n{"format": 3, "version": 6, "x": 4}\n')
        assert read_points(path).rows.tolist() == [[1, 5, 2], [3, 6, 4]]
        write(path, '{"format": "a", "label": 1}\n{"format": "b", "label": -1}\n')
        assert read_labels(path)[0].tolist() == [1, -1]

    def test_empty(self, tmp_path):
        with pytest.raises(FileFormatError, match="is empty; expected one JSON object a line"):
            read_points(write(tmp_path / "x.jsonl", "\n"))


TABLE = {"id": ["ann", "bob", "eve"], "age": [31, 45, 28], "height": [1.7, 1.9, 1.6]}


def arrow(path):
    return pa.table(TABLE)


def parquet(path):
    pq.write_table(pa.table(TABLE), path / "x.parquet", row_group_size=2)
    return path / "x.parquet"


def frame(path):
    return pd.DataFrame(TABLE)


def indexed(path):
    return pd.DataFrame(TABLE).set_index("id")


def nullable(path):
    return pd.DataFrame(TABLE).convert_dtypes()


def objects(path):
    return pd.DataFrame(TABLE, dtype=object)


class TestFrames:
    @pytest.mark.parametrize("make", [arrow, parquet, frame, indexed, nullable, objects], ids=lambda f: f.__name__)
    def test_same_points(self, tmp_path, make):
        points = read_points(make(tmp_path))
        assert np.array_equal(points.rows, X)
        assert points.ids == ("ann", "bob", "eve")
        assert points.feature_names == ("age", "height")

    @pytest.mark.parametrize("kind", [np.uint8, np.float32, np.int64, bool])
    def test_types_are_kept(self, tmp_path, kind):
        values = np.array([0, 1, 1], dtype=kind)
        table = pa.table({"a": values, "b": values})
        pq.write_table(table, tmp_path / "x.parquet")
        for source in (table, tmp_path / "x.parquet", pd.DataFrame({"a": values, "b": values})):
            assert read_points(source).rows.dtype == kind

    @pytest.mark.parametrize("as_file", [False, True])
    def test_all_problems_of_arrow_at_once(self, tmp_path, as_file):
        table = pa.table(
            {
                "id": ["a", None, "a"],
                "n": [1, None, 3],
                "f": [1.0, np.inf, np.nan],
                "t": ["x", "y", "z"],
                "l": [[1]] * 3,
            }
        )
        pq.write_table(table, tmp_path / "x.parquet", row_group_size=2)
        text = problems_of(tmp_path / "x.parquet" if as_file else table)
        assert "has 7 problems" in text
        for words in (
            "Column 't' holds string; column 'l' holds list<",
            "--ignore t",
            "row 1, column 'n' is empty",
            "row 1, column 'f' is inf; row 2, column 'f' is nan",
            "Row 1 has empty",
            "'a' is the id of rows 0 and 2",
        ):
            assert words in text.replace("Row 1, column 'n'", "row 1, column 'n'"), text

    def test_all_problems_of_pandas_at_once(self):
        data = pd.DataFrame(
            {
                "id": [1, 2, 1],
                "f": [1.0, np.nan, np.inf],
                "n": pd.array([1, None, 3], dtype="Int64"),
                "o": ["5", None, 6],
                "t": pd.to_datetime(["2020-01-01"] * 3),
                "c": pd.Categorical([1, 2, 3]),
            }
        )
        text = problems_of(data)
        assert "'DataFrame' has 8 problems" in text
        for words in (
            "Row 1, column 'f' is empty or NaN",
            "row 2, column 'f' is inf",
            "row 1, column 'n' is empty or NaN",
            "row 0, column 'o' is '5'; row 1, column 'o' is empty",
            "column 'c' holds category",
            "'1' is the id of rows 0 and 2",
        ):
            assert words in text, text

    def test_row_numbers_are_positions_not_the_index(self):
        points = read_points(pd.DataFrame({"a": [1.0, 2.0]}, index=[10, 5]))
        assert points.ids is None
        assert points.rows[:, 0].tolist() == [1.0, 2.0]

    def test_the_index_of_pandas_is_no_feature(self, tmp_path):
        pd.DataFrame(TABLE).iloc[[2, 0]].to_parquet(tmp_path / "x.parquet")
        points = read_points(tmp_path / "x.parquet")
        assert points.feature_names == ("age", "height")
        assert np.array_equal(points.rows, X[[2, 0]])
        assert points.ids == ("eve", "ann")

    def test_empty(self, tmp_path):
        for source in (pa.table({"a": pa.array([], pa.int64())}), pd.DataFrame({"a": []})):
            assert "At least one point is expected" in problems_of(source)

    def test_damaged_parquet(self, tmp_path):
        whole = parquet(tmp_path).read_bytes()
        for size in (0, 3, len(whole) // 2, len(whole) - 1):
            (tmp_path / "cut.parquet").write_bytes(whole[:size])
            with pytest.raises(FileFormatError, match=r"cut\.parquet' is not a whole Parquet file"):
                read_points(tmp_path / "cut.parquet")

    def test_without_pyarrow(self, tmp_path, monkeypatch):
        path = parquet(tmp_path)
        real = builtins.__import__

        def refuse(name, *args, **kwargs):
            if name.startswith("pyarrow"):
                raise ImportError(name)
            return real(name, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", refuse)
        with pytest.raises(MissingDependencyError, match=r"pip install 'usimul\[parquet\]'"):
            read_points(path)


@pytest.fixture(scope="module")
def hub():
    return pytest.importorskip("datasets")


class TestHuggingFace:
    def test_numbers(self, hub):
        data = hub.Dataset.from_dict(TABLE)
        points = read_points(data)
        assert np.array_equal(points.rows, X)
        assert points.ids == ("ann", "bob", "eve")

    def test_selected_rows_and_other_formats(self, hub):
        data = hub.Dataset.from_dict(TABLE).select([2, 0]).with_format("numpy")
        points = read_points(data)
        assert np.array_equal(points.rows, X[[2, 0]])
        assert points.ids == ("eve", "ann")

    def test_images(self, hub):
        from PIL import Image

        arrays = np.random.default_rng(0).integers(0, 256, (3, 4, 5), dtype=np.uint8)
        kinds = hub.Features(id=hub.Value("string"), image=hub.Image(), label=hub.ClassLabel(names=["no", "yes"]))
        content = {"id": list("abc"), "image": [Image.fromarray(a) for a in arrays], "label": [0, 1, 0]}
        data = hub.Dataset.from_dict(content, features=kinds)
        points = read_points(data)
        assert points.image_shape == (1, 4, 5)
        assert points.ids == ("a", "b", "c")
        assert np.array_equal(points.rows.reshape(3, 4, 5), arrays)
        assert read_points(data, mode="rgb", resize=(2, 3)).rows.shape == (3, 3 * 2 * 3)
        text = problems_of(data, ignore=["image"])
        assert "Features must not be labels. Column 'label' holds classes (no, yes). Leave it out" in text

    def test_splits_are_not_one_data_set(self, hub):
        data = hub.DatasetDict(train=hub.Dataset.from_dict(TABLE))
        with pytest.raises(InputTypeError, match=r"Got DatasetDict. Choose one of its splits"):
            read_points(data)


class TestLabels:
    @pytest.mark.parametrize(
        ("content", "column", "expected"),
        [
            ("id,label\na,1\nb,-1\n", None, [1, -1]),
            ("id,y\na,+1\nb,-1\n", None, [1, -1]),
            ("id,y,z\na,cat,0\nb,dog,1\n", "y", ["cat", "dog"]),
            ("id,y,z\na,0.5,0\nb,1,1\n", "y", [0.5, 1.0]),
        ],
    )
    def test_csv(self, tmp_path, content, column, expected):
        labels, ids = read_labels(write(tmp_path / "y.csv", content), column=column)
        assert labels.tolist() == expected
        assert ids == ("a", "b")

    def test_parquet_and_jsonl(self, tmp_path):
        pq.write_table(pa.table({"y": [1, -1, 1]}), tmp_path / "y.parquet")
        write(tmp_path / "y.jsonl", '{"y": 1}\n{"y": -1}\n{"y": 1}\n')
        for name in ("y.parquet", "y.jsonl"):
            labels, ids = read_labels(tmp_path / name)
            assert labels.tolist() == [1, -1, 1]
            assert ids is None

    @pytest.mark.parametrize(
        ("content", "column", "message"),
        [
            (
                "id,a,b\nx,1,2\n",
                None,
                "A column 'label' is expected. The columns are: id, a, b. Name the one.*--column",
            ),
            ("id,a\nx,1\n", "b", "A column 'b' is expected"),
            ("id,label\nx,\ny,1\n", None, "Every point needs a label. Line 2, column 'label' is empty"),
            ("id,label\nx,1\nx,1\n", None, "'x' is the id of lines 2 and 3"),
            ("id,label\n", None, "At least one label is expected"),
        ],
    )
    def test_refused(self, tmp_path, content, column, message):
        with pytest.raises(InputError, match=message):
            read_labels(write(tmp_path / "y.csv", content), column=column)


def test_importing_loads_no_optional_package():
    import subprocess

    code = "import sys, usimul.points, usimul.supervision, usimul.convert\n"
    code += "print([n for n in ('torch', 'pandas', 'pyarrow', 'datasets', 'PIL') if n in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
