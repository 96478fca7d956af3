"""Supervision in tables: what is written is read again, by rows and by ids, and nothing damaged ever is."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from usimul.files import whole_file
from usimul.points import Points
from usimul.supervision import (
    ComparedPairs,
    Labels,
    PairAnswers,
    SimilarPairs,
    Supervision,
    TripletAnswers,
    Triplets,
    Unlabeled,
    load_supervision,
    passed_over,
    read_supervision,
    write_supervision,
)
from usimul.validation import DiskFullError, FileFormatError, InputError

KINDS = Supervision.kinds()
WITH_HEADER = ("npz", "jsonl", "parquet")
N = 12
IDS = tuple(f"p{i}" for i in range(N))
POINTS = Points(np.zeros((N, 2)), ids=IDS, source="points.csv")
VALUES = {"answer": [1, -1, 1], "label": [1, -1, -1], "share": [0.75, 0.1, 0.75]}
VALUES |= {"confidence": [0.1, 1 / 3, 1.0], "difference": [-1.0, 1e-17, 0.3]}


def example(cls, **extra):
    rows = np.random.default_rng(0).permuted(np.tile(np.arange(N), (3, 1)), axis=1)[:, : cls.width]
    values = None if cls.value_column is None else np.array(VALUES[cls.value_column], dtype=float)
    return cls(rows, values=values, n_points=N, **extra)


def no_space(self, target):
    raise OSError(28, "No space left on device")


FULL = {"unlabeled": [3, 3, 0], "known_rows": [5, 7], "known_labels": [1, -1], "n_asked": 9, "n_accepted": 3}


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def problems_of(path, **options):
    with pytest.raises(InputError) as error:
        read_supervision(path, **options)
    return str(error.value)


class TestRoundTrip:
    def test_every_kind_has_columns(self):
        for cls in KINDS.values():
            assert len(cls.columns) == cls.width
            assert (cls.value_column is None) == (cls.value_range is None)

    @pytest.mark.parametrize("suffix", WITH_HEADER)
    @pytest.mark.parametrize("cls", KINDS.values(), ids=lambda cls: cls.kind)
    @pytest.mark.parametrize("extra", [{}, FULL], ids=["plain", "full"])
    def test_identity(self, tmp_path, cls, suffix, extra):
        sup = example(cls, **extra, **({"world": "pair_plus_unlabeled"} if cls.worlds else {}))
        path = tmp_path / f"s.{suffix}"
        write_supervision(sup, path)
        assert [p.name for p in tmp_path.iterdir()] == [path.name]
        for options in ({}, {"points": POINTS}, {"ids": IDS}, {"kind": cls.kind}, {"by": "rows"}):
            again = read_supervision(path, **options)
            assert type(again) is cls
            assert again == sup

    @pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
    @pytest.mark.parametrize("cls", KINDS.values(), ids=lambda cls: cls.kind)
    def test_identity_by_ids(self, tmp_path, cls, suffix):
        sup = example(cls, **FULL)
        write_supervision(sup, tmp_path / f"s.{suffix}", ids=IDS)
        assert read_supervision(tmp_path / f"s.{suffix}", points=POINTS) == sup
        # The ids decide, not the order of the points at the time of writing.
        turned = Points(POINTS.rows, ids=IDS[::-1])
        assert np.array_equal(read_supervision(tmp_path / f"s.{suffix}", points=turned).rows, N - 1 - sup.rows)

    @pytest.mark.parametrize("suffix", ["csv", "tsv"])
    @pytest.mark.parametrize("cls", KINDS.values(), ids=lambda cls: cls.kind)
    @pytest.mark.parametrize("ids", [None, IDS], ids=["rows", "ids"])
    def test_csv_keeps_rows(self, tmp_path, cls, suffix, ids):
        sup = example(cls, **FULL)
        path = tmp_path / f"s.{suffix}"
        write_supervision(sup, path, ids=ids)
        about = {"kind": cls.kind, "n_asked": 9, "n_accepted": 3, "n_points": N}
        assert read_supervision(path, ids=ids, **about) == sup

    @pytest.mark.parametrize("suffix", WITH_HEADER)
    @pytest.mark.parametrize("extra", [{}, {"unlabeled": [1, 2]}, {"known_rows": [1], "known_labels": [1]}])
    def test_no_tuples(self, tmp_path, suffix, extra):
        sup = Triplets([], **extra)
        write_supervision(sup, tmp_path / f"s.{suffix}")
        assert read_supervision(tmp_path / f"s.{suffix}") == sup

    @given(data=st.data())
    def test_identity_of_anything(self, tmp_path_factory, data):
        cls = data.draw(st.sampled_from(list(KINDS.values())))
        n = data.draw(st.integers(2, 5))
        row = st.lists(st.integers(0, N - 1), min_size=cls.width, max_size=cls.width, unique=True)
        low, high = cls.value_range or (0, 0)
        number = st.sampled_from([-1.0, 1.0]) if cls.value_column in ("answer", "label") else st.floats(low, high)
        values = None
        if cls.value_column == "share":
            a, b = data.draw(st.lists(st.floats(0, 1), min_size=2, max_size=2, unique=True))
            values = [a, b, *data.draw(st.lists(st.sampled_from([a, b]), min_size=n - 2, max_size=n - 2))]
        elif cls.value_column:
            values = data.draw(st.lists(number, min_size=n, max_size=n))
        sup = cls(
            data.draw(st.lists(row, min_size=n, max_size=n)),
            values=values,
            unlabeled=data.draw(st.none() | st.lists(st.integers(0, N - 1))),
            n_points=data.draw(st.sampled_from([None, N, N + 3])),
            n_asked=data.draw(st.none() | st.integers(n, 2**40)),
        )
        path = tmp_path_factory.mktemp("s") / f"s.{data.draw(st.sampled_from(WITH_HEADER))}"
        write_supervision(sup, path)
        assert read_supervision(path) == sup

    def test_ids_with_any_characters(self, tmp_path):
        ids = ["a,b", 'c"d', "e\nf", "größe", "1"]
        sup = Triplets([[0, 1, 2], [2, 3, 4]], n_points=5)
        for suffix in ("csv", "tsv", "jsonl", "parquet"):
            write_supervision(sup, tmp_path / f"s.{suffix}", ids=ids)
            assert read_supervision(tmp_path / f"s.{suffix}", ids=ids) == sup


class TestWriting:
    @pytest.mark.parametrize("suffix", ["npz", "csv", "jsonl", "parquet"])
    @pytest.mark.parametrize("when", ["while writing", "at the end"])
    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
    def test_a_full_disk_leaves_the_old_file(self, tmp_path, monkeypatch, suffix, when):
        path = tmp_path / f"s.{suffix}"
        write_supervision(example(Triplets), path)
        before = path.read_bytes()
        with monkeypatch.context() as patch:
            if when == "at the end":
                patch.setattr("usimul.files.Path.replace", no_space)
            else:
                opened = Path.open
                patch.setattr("usimul.files.Path.open", lambda self, *args, **k: opened(Path("/dev/full"), *args, **k))
            with pytest.raises(
                DiskFullError, match=re.escape(f"must be room for {str(path)!r}. No space left")
            ) as error:
                write_supervision(example(Triplets, **FULL), path, overwrite=True)
            assert error.value.errno == 28
        assert path.read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == [path.name]

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
    def test_a_full_disk_that_numpy_counts(self, tmp_path, monkeypatch):
        with monkeypatch.context() as patch:
            opened = Path.open
            patch.setattr("usimul.files.Path.open", lambda self, *args, **k: opened(Path("/dev/full"), *args, **k))
            with (
                pytest.raises(DiskFullError, match=r"x\.npy'. No space left"),
                whole_file(tmp_path / "x.npy") as handle,
            ):
                np.save(handle, np.zeros(100_000))

    @pytest.mark.parametrize("suffix", ["npz", "csv", "jsonl", "parquet"])
    def test_an_existing_file_is_replaced_only_on_request(self, tmp_path, suffix):
        path = tmp_path / f"s.{suffix}"
        write_supervision(example(Triplets), path)
        before = path.read_bytes()
        with pytest.raises(InputError, match="exists already"):
            write_supervision(example(Triplets, **FULL), path)
        assert path.read_bytes() == before
        write_supervision(example(Triplets, **FULL), path, overwrite=True)
        assert path.read_bytes() != before

    def test_refused(self, tmp_path):
        sup = example(Triplets)
        with pytest.raises(InputError, match=r"must end in \.npz, \.csv"):
            write_supervision(sup, tmp_path / "s.txt")
        with pytest.raises(InputError, match=r"a \.npz file of supervision holds row numbers"):
            write_supervision(sup, tmp_path / "s.npz", ids=IDS)
        with pytest.raises(InputError, match="made for a pool of 12 points, but X has 3"):
            write_supervision(sup, tmp_path / "s.csv", ids=IDS[:3])
        with pytest.raises(InputError, match="`ids` must differ"):
            write_supervision(sup, tmp_path / "s.csv", ids=("a",) * N)
        assert not list(tmp_path.iterdir())


class TestKinds:
    @pytest.mark.parametrize(
        ("header", "line", "cls"),
        [
            ("anchor,companion1,companion2", "0,1,2", Triplets),
            ("companion2,note,anchor,companion1", "2,x,0,1", Triplets),
            ("first,second,answer", "0,1,no", PairAnswers),
            ("first,second,confidence", "0,1,0.5", KINDS["similarity-confidence"]),
            ("first,second,difference", "0,1,-0.5", KINDS["confidence-difference"]),
            ("first,second,third,answer", "0,1,2,yes", TripletAnswers),
            ("point", "0", Unlabeled),
            ("point,label", "0,-1", Labels),
        ],
    )
    def test_by_columns(self, tmp_path, header, line, cls):
        sup = read_supervision(write(tmp_path / "s.csv", f"{header}\n{line}\n"))
        assert type(sup) is cls
        assert sup.rows.tolist() == [[0, 1, 2][: cls.width]]

    def test_shares(self, tmp_path):
        sup = read_supervision(write(tmp_path / "s.csv", "point,share\n3,0.2\n4,0.9\n"))
        assert sup.shares == (0.9, 0.2)
        text = problems_of(write(tmp_path / "s.csv", "point,share\n3,0.2\n4,0.2\n"))
        assert "must hold two different shares" in text

    def test_pairs_need_their_kind(self, tmp_path):
        path = write(tmp_path / "s.csv", "first,second\n0,1\n")
        assert "they fit: similar-pairs, dissimilar-pairs, compared-pairs. Say which" in problems_of(path).replace(
            "T", "t"
        )
        for cls in (SimilarPairs, ComparedPairs):
            assert read_supervision(path, kind=cls.kind) == cls([[0, 1]])

    @pytest.mark.parametrize(("text", "value"), [("yes", 1), ("No", -1), ("+1", 1), ("-1.0", -1), (" 1 ", 1)])
    def test_answers(self, tmp_path, text, value):
        path = write(tmp_path / "s.csv", f"first,second,answer\n0,1,{text}\n")
        assert read_supervision(path).values.tolist() == [value]

    @pytest.mark.parametrize(
        ("header", "options", "message"),
        [
            (
                "anchor,companion,companion2",
                {},
                r"A column 'companion1' is expected.*anchor, companion, companion2 \(did",
            ),
            ("a,b", {}, "The columns of one kind of supervision are expected. The columns are: a, b. Possible: anchor"),
            ("first,second", {"kind": "triplets"}, "A column 'anchor' is expected.*Needed for triplets"),
            ("first,second,confidence", {"kind": "similar-pairs"}, "similar-pairs has no column 'confidence'"),
            ("anchor,companion1,companion2,answer", {}, "has no column 'answer'.*Keep the rows answered yes.*--asked"),
            ("anchor,companion1,companion2,Answer", {}, "has no column 'Answer'.*Keep the rows answered yes.*--asked"),
            ("anchor,companion1,companion2, LABEL ", {}, "has no column 'LABEL'"),
            ("anchor,companion1,companion2,Role", {}, "has no column 'Role'.*Write 'role', or drop it"),
            ("role,anchor,companion1,companion2,Label", {}, "has no column 'Label'.*Write 'label', or drop it"),
            ("anchor,companion1,companion2,label", {}, "triplets has no column 'label'"),
            ("anchor,companion1,companion2,anchor", {}, "Columns must have different names. 'anchor' occurs 2 times"),
            ("first,second", {"kind": "similar-pair"}, "`kind` must be one of.*Did you mean 'similar-pairs'"),
            ("first,second", {"by": "id"}, "`by` must be one of: rows, ids"),
        ],
    )
    def test_refused(self, tmp_path, header, options, message):
        line = ",".join(str(i) for i in range(header.count(",") + 1))
        with pytest.raises(InputError, match=message):
            read_supervision(write(tmp_path / "s.csv", f"{header}\n{line}\n"), **options)

    def test_a_column_called_format(self, tmp_path):
        path = write(tmp_path / "s.jsonl", '{"format": "x", "anchor": 0, "companion1": 1, "companion2": 2}\n')
        assert read_supervision(path) == Triplets([[0, 1, 2]])

    def test_underscores_are_no_part_of_row_numbers(self, tmp_path):
        text = problems_of(write(tmp_path / "s.csv", "anchor,companion1,companion2\n0_5,1,2\n"))
        assert "Line 2, column 'anchor' is '0_5'" in text

    def test_columns_passed_over_are_known(self, tmp_path):
        path = write(tmp_path / "s.csv", "when,role,anchor,companion1,companion2,label,who\nx,,0,1,2,,me\n")
        sup = read_supervision(path)
        assert sup.rows.tolist() == [[0, 1, 2]]
        assert passed_over(path, sup) == ["when", "who"]


class TestPointsOfTables:
    TEXT = "role,anchor,companion1,companion2,label\n,p0,p1,p2,\ntuple, p3 ,p4,p5,\nunlabeled,p6,,,\nknown,p7,,,-1\n"

    def test_ids(self, tmp_path):
        expected = Triplets([[0, 1, 2], [3, 4, 5]], unlabeled=[6], known_rows=[7], known_labels=[-1], n_points=N)
        path = write(tmp_path / "s.csv", self.TEXT)
        assert read_supervision(path, points=POINTS) == expected
        assert read_supervision(path, ids=IDS) == expected

    def test_types_of_pandas_and_arrow(self, tmp_path):
        frame = pd.DataFrame({"role": ["tuple", "unlabeled"], "anchor": [0, 3], "companion1": [1, None]})
        frame["companion2"] = [2, None]  # whole numbers beside empty cells become floats
        frame.to_parquet(tmp_path / "s.parquet")
        frame.to_csv(tmp_path / "s.csv", index=False)
        frame.to_json(tmp_path / "s.jsonl", orient="records", lines=True)
        for name in ("s.parquet", "s.csv", "s.jsonl"):
            assert read_supervision(tmp_path / name) == Triplets([[0, 1, 2]], unlabeled=[3])

    def test_whole_numbers_as_ids(self, tmp_path):
        table = pa.table({"anchor": [70], "companion1": [71], "companion2": [72]})
        pq.write_table(table, tmp_path / "s.parquet")
        points = Points(np.zeros((3, 1)), ids=("72", "71", "70"))
        assert read_supervision(tmp_path / "s.parquet", points=points).rows.tolist() == [[2, 1, 0]]
        with pytest.raises(InputError, match=r"must lie within the pool of 3 points\. Row 0, column 'anchor' is 70"):
            read_supervision(tmp_path / "s.parquet", points=points, by="rows")

    def test_all_problems_at_once(self, tmp_path):
        text = problems_of(
            write(
                tmp_path / "s.csv",
                "role,anchor,companion1,companion2,label\n"
                "tuple,p1,p1,p2,\n"
                "tuple,p1,,q2,\n"
                "tuple,p1,p2\n"
                "tupel,p1,p2,p3,\n"
                "unlabeled,p1,p2,,\n"
                "unlabeled,,,,\n"
                "known,p1,,,0\n"
                "known,p2,,,1\n"
                "known,p2,,,-1\n",
            ),
            points=POINTS,
        )
        assert "has 9 problems" in text
        for words in (
            "Line 2 has p1, p1, p2",
            "Line 3, column 'companion1' is empty; line 7, column 'anchor' is empty",
            "Line 3, column 'companion2': 'q2' is none (did you mean 'p2'?)",
            "Line 4 has 3",
            "A role must be tuple, unlabeled, known. Line 5, column 'role' is 'tupel'",
            "must have one point, in its first column. Line 6, column 'companion1' is 'p2'",
            "Each label must be 1 or -1. Line 8, column 'label' is '0'",
            "A point must have one label. Line 10 gives another one",
        ):
            assert words in text, text

    def test_row_numbers(self, tmp_path):
        path = write(tmp_path / "s.csv", "first,second,confidence\n0,12,0.5\n-1,2,2\n1.5,x,nan\n3,4,\n")
        text = problems_of(path, n_points=N)
        assert "has 7 problems" in text
        for words in (
            "Row numbers must lie within the pool of 12 points. Line 2, column 'second' is '12'",
            "Line 3, column 'first' is '-1'; line 4, column 'first' is '1.5'; line 4, column 'second' is 'x'",
            "Each confidence must be a number in [0, 1]. Line 3, column 'confidence' is '2'; line 4, column "
            "'confidence' is 'nan'; line 5, column 'confidence' is empty",
        ):
            assert words in text, text

    def test_many_problems_are_counted(self, tmp_path):
        path = write(tmp_path / "s.csv", "point\n" + "x\n" * 1000)
        text = problems_of(path)
        assert "has 1,000 problems" in text
        assert "and 980 more" in text
        assert len(text) < 2000

    def test_row_numbers_where_ids_are_expected(self, tmp_path):
        path = write(tmp_path / "s.csv", "anchor,companion1,companion2\n0,1,2\n3,4,11\n")
        assert "If these are row numbers: by='rows', --by rows." in problems_of(path, points=POINTS)
        assert read_supervision(path, points=POINTS, by="rows").rows.tolist() == [[0, 1, 2], [3, 4, 11]]
        write(path, "anchor,companion1,companion2\n0,1,2\n3,4,12\n")
        assert "If these are row numbers" not in problems_of(path, points=POINTS)

    def test_empty_tables(self, tmp_path):
        with pytest.raises(FileFormatError, match="is empty"):
            read_supervision(write(tmp_path / "s.csv", ""))
        assert "At least one row is expected" in problems_of(write(tmp_path / "s.csv", "point\n"))

    def test_ids_without_points(self, tmp_path):
        path = write(tmp_path / "s.csv", self.TEXT)
        with pytest.raises(InputError, match=r"names points by ids, but none are known\. Pass the points"):
            read_supervision(path, by="ids")
        with pytest.raises(InputError, match="give `points` or `ids`, not both"):
            read_supervision(path, points=POINTS, ids=IDS)

    @pytest.mark.parametrize("suffix", WITH_HEADER)
    def test_another_pool(self, tmp_path, suffix):
        write_supervision(example(Triplets), tmp_path / f"s.{suffix}")
        with pytest.raises(InputError, match="made for a pool of 12 points, but X has 11 rows"):
            read_supervision(tmp_path / f"s.{suffix}", points=Points(np.zeros((11, 1))))

    @pytest.mark.parametrize("suffix", WITH_HEADER)
    def test_what_is_said_must_not_contradict_the_file(self, tmp_path, suffix):
        path = tmp_path / f"s.{suffix}"
        write_supervision(Triplets([[0, 1, 2]], world="definition1"), path)
        for name, value in (("kind", "labels"), ("world", "release")):
            with pytest.raises(InputError, match=f"says {name} '.*', but '{value}' was given. Leave it out"):
                read_supervision(path, **{name: value})
        added = read_supervision(path, n_asked=5, n_accepted=1, n_points=7, world="definition1")
        assert added == Triplets([[0, 1, 2]], world="definition1", n_asked=5, n_accepted=1, n_points=7)


class TestDamage:
    """A file with a header is read as it was written, or refused."""

    @pytest.fixture(params=["jsonl", "parquet"])
    def file(self, request, tmp_path):
        path = tmp_path / f"s.{request.param}"
        write_supervision(example(Triplets, world="definition1", **FULL), path)
        return path

    def test_every_truncation(self, file):
        whole = file.read_bytes()
        expected = read_supervision(file)
        for size in range(0, len(whole), 11):
            file.write_bytes(whole[:size])
            with pytest.raises((FileFormatError, InputError), match=rf"s\{file.suffix}'"):
                read_supervision(file)
        file.write_bytes(whole)
        assert read_supervision(file) == expected

    def test_changed_bytes_are_noticed_or_harmless(self, file):
        whole, rng = file.read_bytes(), np.random.default_rng(0)
        expected, noticed = read_supervision(file), 0
        for _ in range(300):
            damaged = bytearray(whole)
            damaged[rng.integers(len(whole))] ^= int(rng.integers(1, 256))
            file.write_bytes(damaged)
            try:
                assert read_supervision(file) == expected
            except (FileFormatError, InputError):
                noticed += 1
        assert noticed > 150

    def test_lost_lines(self, tmp_path):
        path = tmp_path / "s.jsonl"
        write_supervision(example(Triplets), path)
        lines = path.read_text().splitlines(keepends=True)
        for kept in (lines[:-1], [lines[0], *lines[2:]], [lines[0], *lines[:0:-1]], [*lines, lines[-1]]):
            path.write_text("".join(kept))
            with pytest.raises(FileFormatError, match="content that does not fit its checksum"):
                read_supervision(path)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"version": 2}, "has format version 2; this usimul reads version 1. Use a usimul release that"),
            ({"version": 0}, "has format version 0; this usimul reads version 1. No release has written"),
            ({"version": None}, "has format version None"),
            ({"version": True}, "has format version True"),
            ({"format": "other"}, "is not a usimul supervision file"),
            ({"kind": "quadruplets"}, "holds supervision of the unknown kind 'quadruplets'; known kinds: triplets"),
            ({"kind": ["triplets"]}, "unknown kind"),
            ({"kind": "labels"}, "'point' is expected"),
            ({"points": "names"}, "is damaged"),
            ({"columns": ["anchor"]}, "columns that its header does not name"),
            ({"n_points": "12"}, "values of the wrong type in its header"),
            ({"colour": "red"}, "unknown entries in its header: colour"),
            ({"n_points": 3}, "must lie within the pool of 3 points"),
        ],
    )
    @pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
    def test_foreign_headers(self, tmp_path, suffix, change, message):
        path = tmp_path / f"s.{suffix}"
        write_supervision(example(Triplets), path)
        rewrite(path, change)
        with pytest.raises((FileFormatError, InputError), match=message) as error:
            read_supervision(path)
        assert path.name in str(error.value)

    @pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
    def test_a_header_without_checksum_is_read(self, tmp_path, suffix):
        # Otherwise the cases above could pass because of the rewriting itself.
        path = tmp_path / f"s.{suffix}"
        write_supervision(example(Triplets), path)
        rewrite(path, {})
        assert read_supervision(path) == example(Triplets)

    def test_old_npz(self, tmp_path):
        path = tmp_path / "s.npz"
        example(Triplets).save(path)
        with np.load(path) as archive:
            content = dict(archive)
        header = json.loads(str(content["header"]))
        np.savez(path, **{**content, "header": np.array(json.dumps({**header, "version": 0}))})
        for read in (load_supervision, read_supervision):
            with pytest.raises(
                FileFormatError, match=r"s\.npz' has format version 0.*No release has written that version"
            ):
                read(path)

    def test_files_of_another_kind(self, tmp_path):
        np.save(tmp_path / "s.npy", np.zeros(3))
        (tmp_path / "s.parquet").write_text("anchor,companion1,companion2\n0,1,2\n")
        (tmp_path / "s.csv").write_bytes(b"PAR1\x00\xff\xfe")
        with pytest.raises(InputError, match=r"must end in \.npz, \.csv"):
            read_supervision(tmp_path / "s.npy")
        for name in ("s.parquet", "s.csv"):
            with pytest.raises((FileFormatError, InputError), match=name):
                read_supervision(tmp_path / name)
        with pytest.raises(InputError, match="there is no supervision file"):
            read_supervision(tmp_path / "gone.csv")


def rewrite(path, change):
    """Change the header of a file, and take out the checksum that would notice it."""
    if path.suffix == ".jsonl":
        first, rest = path.read_text().split("\n", 1)
        header = {**json.loads(first), **change}
        del header["checksum"]
        path.write_text(json.dumps(header) + "\n" + rest)
        return
    table = pq.read_table(path)
    header = {**json.loads(table.schema.metadata[b"usimul"]), **change}
    del header["checksum"]
    pq.write_table(table.replace_schema_metadata({b"usimul": json.dumps(header).encode()}), path)
