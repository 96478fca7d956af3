"""Table-like sets: Pendigits in both forms, and the partial-label sets."""

import dataclasses
import functools
import hashlib
import io
from functools import partial
from typing import ClassVar

import numpy as np
import pytest

from usimul.datasets import (
    RECORDS,
    DatasetNotFoundError,
    download_dataset,
    get_record,
    load_dataset,
    read_raw,
)
from usimul.datasets.base import stratified_split
from usimul.datasets.download import find_files
from usimul.datasets.matlab import read_mat
from usimul.datasets.partial_labels import read_partial_labels
from usimul.datasets.records import DataFile, Edition
from usimul.validation import FileFormatError

PARTIAL = ("lost", "msrcv2", "birdsong", "fgnet")


def real_files_are_here():
    try:
        return all(find_files(RECORDS[name]) for name in ("pendigits", *PARTIAL))
    except DatasetNotFoundError:
        return False


needs_data = pytest.mark.skipif(
    not real_files_are_here(), reason=f"set USIMUL_DATA to a folder with pendigits/, {'/, '.join(PARTIAL)}/"
)


def write_mat(path, fields, **options):
    """Write a MATLAB file, and return its SHA-256."""
    from scipy.io import savemat

    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, fields, **options)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sparse(array):
    from scipy.sparse import csc_matrix

    return csc_matrix(np.asarray(array, dtype=np.float64))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "set.mat"


class TestMat:
    fields: ClassVar = {"data": np.arange(6.0).reshape(3, 2), "target": np.array([[1, 0, 1], [0, 1, 0]])}
    shapes: ClassVar = {"data": (3, 2), "target": (2, 3)}

    @pytest.mark.parametrize("compressed", [False, True])
    @pytest.mark.parametrize("form", [np.asarray, sparse])
    def test_dense_and_sparse_fields(self, form, compressed, path):
        digest = write_mat(
            path, {**self.fields, "target": form(self.fields["target"]), "more": 3}, do_compression=compressed
        )
        found = read_mat(path, self.shapes, digest)
        assert set(found) == {"data", "target"}
        for name, array in self.fields.items():
            assert type(found[name]) is np.ndarray
            np.testing.assert_array_equal(found[name], array)

    def test_bytes_of_the_format(self, path):
        """One field, put together by hand from the published layout of version 5."""

        def element(kind, raw):
            return kind.to_bytes(4, "little") + len(raw).to_bytes(4, "little") + raw + bytes(-len(raw) % 8)

        header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
        numbers = np.array([1.0, 2.0, 3.0, 4.0], dtype="<f8").tobytes()  # column by column
        inside = (
            element(6, bytes([6, 0, 0, 0, 0, 0, 0, 0]))
            + element(5, np.array([2, 2], dtype="<i4").tobytes())
            + element(1, b"data")
            + element(9, numbers)
        )
        path.write_bytes(header + element(14, inside))
        np.testing.assert_array_equal(read_mat(path, {"data": (2, 2)})["data"], [[1, 3], [2, 4]])

    @pytest.mark.parametrize("compressed", [False, True])
    def test_every_truncation_is_refused(self, compressed, path):
        digest = write_mat(path, self.fields, do_compression=compressed)
        whole = path.read_bytes()
        for length in range(len(whole)):
            path.write_bytes(whole[:length])
            with pytest.raises(FileFormatError) as caught:
                read_mat(path, self.shapes, digest)
            assert str(path) in str(caught.value)
            assert "fetch it again" in str(caught.value)

    @pytest.mark.parametrize(
        "content", [b"", b"<html>please log in</html>", bytes(1000), b"Rar!\x1a\x07\x00" + bytes(300)]
    )
    def test_other_files_are_refused(self, content, path):
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=rf"set\.mat: expected a MATLAB file.*{len(content):,} bytes"):
            read_mat(path, self.shapes)

    def test_all_that_is_wrong_is_said_at_once(self, path):
        write_mat(path, {"data": np.zeros((3, 3)), "label": np.array(["a", "b"])})
        with pytest.raises(FileFormatError) as caught:
            read_mat(path, {"data": (3, 2), "target": (2, 3), "label": (2, 1)})
        message = str(caught.value)
        assert str(path) in message
        assert "expected `data` of shape (3, 2), found (3, 3)" in message
        assert "expected a field `target`, found none" in message
        assert "expected numbers in `label`, found <U1" in message

    def test_huge_sparse_matrices_are_not_unpacked(self, path):
        from scipy.sparse import csc_matrix

        write_mat(path, {"data": csc_matrix((1 << 30, 1 << 10))})
        with pytest.raises(FileFormatError, match=r"expected `data` of shape \(3, 2\)"):
            read_mat(path, {"data": (3, 2)})

    def test_indices_outside_a_sparse_matrix_are_refused(self, path):
        matrix = sparse([[1, 0, 0], [0, 1, 0]])
        matrix.indices[0] = 77
        write_mat(path, {"data": matrix})
        with pytest.raises(FileFormatError, match="cannot be read as one"):
            read_mat(path, {"data": (2, 3)})

    def test_other_content_has_another_sum(self, path):
        write_mat(path, self.fields)
        with pytest.raises(FileFormatError, match=r"expected SHA-256 0000.*It is another file under this name"):
            read_mat(path, self.shapes, "0" * 64)

    def test_missing_file_is_the_usual_error(self, path):
        with pytest.raises(FileNotFoundError):
            read_mat(path, self.shapes)


# --- partial labels -----------------------------------------------------------------------------------------------

TRUE = np.array([2, 0, 1, 0, 3, 1, 2, 3, 0, 2])
MINI_X = np.random.default_rng(0).normal(50, 10, (10, 3))


def one_hot(classes, n_classes):
    return np.eye(n_classes)[classes].T


def mini_fields(form=sparse):
    target = one_hot(TRUE, 4)
    return {"data": MINI_X, "target": form(target), "partial_target": form(np.maximum(target, one_hot(TRUE - 1, 4)))}


@pytest.fixture
def mini(monkeypatch, tmp_path):
    """Yahoo! News with 10 points, 3 features, and 4 classes; a function that writes its file."""
    record = RECORDS["yahoo_news"]
    read = partial(read_partial_labels, n_points=10, n_features=3, n_classes=4)
    edition = dataclasses.replace(record.editions[0], read=read)
    task = dataclasses.replace(record.tasks[0], positive=(0, 2), negative=(1, 3))
    monkeypatch.setitem(RECORDS, "yahoo_news", dataclasses.replace(record, editions=(edition,), tasks=(task,)))

    def write(fields=None, **changes):
        write_mat(tmp_path / "Yahoo! News.mat", {**(fields or mini_fields()), **changes})
        return tmp_path

    return write


class TestPartialLabels:
    @pytest.mark.parametrize("form", [sparse, np.asarray, lambda a: np.asarray(a, dtype=np.uint8)])
    def test_miniature(self, form, mini):
        folder = mini(mini_fields(form))
        edition, raw = read_raw("yahoo_news", folder=folder)
        np.testing.assert_array_equal(raw.X, MINI_X)
        np.testing.assert_array_equal(raw.classes, TRUE)
        assert (edition.name, raw.classes.dtype, raw.n_train, raw.standardise) == ("official", np.int64, None, True)
        data = load_dataset("yahoo_news", folder=folder)
        assert (data.X_train.dtype, data.measured_on) == (np.float32, "Yahoo! News, 8 / 2")
        np.testing.assert_array_equal(data.y_train == 1, data.original_train % 2 == 0)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"target": [(1, 3), (2, 7)]}, r"exactly one true class, found otherwise in rows 3, 7 \(2 in all"),
            ({"target": [(0, 1)], "value": 0}, r"exactly one true class, found otherwise in rows 1 \(1 in all"),
            ({"target": [(0, 1)], "value": 2}, r"only 0 and 1 in `target`, found otherwise in rows 1 "),
            ({"target": [(0, 1)], "value": np.nan}, r"only 0 and 1 in `target`, found otherwise in rows 1 "),
            ({"partial_target": [(0, 1), (3, 4)], "value": 0}, r"the true class among the candidates.* rows 1, 4 \(2"),
            ({"partial_target": [(2, 9)], "value": 0.5}, r"only 0 and 1 in `partial_target`.* rows 9 "),
            ({"data": [(2, 0), (5, 1)], "value": np.inf}, r"finite numbers in `data`, found otherwise in rows 2, 5 "),
        ],
    )
    def test_content_that_does_not_fit_is_refused(self, change, message, mini):
        change = dict(change)
        value = change.pop("value", 1)
        ((name, cells),) = change.items()
        fields = {field: np.array(array) for field, array in mini_fields(np.asarray).items()}
        for cell in cells:
            fields[name][cell] = value
        folder = mini(fields)
        with pytest.raises(FileFormatError, match=message) as caught:
            load_dataset("yahoo_news", folder=folder)
        assert str(folder / "Yahoo! News.mat") in str(caught.value)

    def test_all_problems_are_reported_at_once(self, mini):
        fields = {field: np.array(array) for field, array in mini_fields(np.asarray).items()}
        fields["data"][6, 2] = np.nan
        fields["target"][:, 3] = 1
        fields["partial_target"][:, 5:] = 0
        with pytest.raises(FileFormatError) as caught:
            load_dataset("yahoo_news", folder=mini(fields))
        for part in ("in rows 6 (1 in all", "in rows 3 (1 in all", "in rows 3, 5, 6, 7, 8, 9 (6 in all"):
            assert part in str(caught.value)

    def test_many_rows_are_cut_short(self, mini):
        with pytest.raises(FileFormatError, match=r"rows 0, 1, 2, 3, 4, 5, 6, 7, \.\.\. \(10 in all"):
            load_dataset("yahoo_news", folder=mini(target=np.zeros((4, 10))))

    def test_wrong_orientation_is_refused(self, mini):
        with pytest.raises(FileFormatError, match=r"expected `target` of shape \(4, 10\), found \(10, 4\)"):
            load_dataset("yahoo_news", folder=mini(target=one_hot(TRUE, 4).T))

    def test_missing_field_is_refused(self, mini):
        fields = mini_fields()
        del fields["partial_target"]
        with pytest.raises(FileFormatError, match="expected a field `partial_target`, found none"):
            load_dataset("yahoo_news", folder=mini(fields))

    def test_yahoo_news_in_its_full_size(self, tmp_path):
        rng = np.random.default_rng(0)
        n, n_classes = 22_991, 219
        classes = rng.integers(n_classes, size=n)
        target = sparse(one_hot(classes, n_classes))
        other = sparse(one_hot(rng.integers(n_classes, size=n), n_classes))
        X = np.repeat(rng.normal(size=(n, 1)), 163, axis=1)
        fields = {"data": X, "target": target, "partial_target": target.maximum(other)}
        write_mat(tmp_path / "yahoo_news" / "Yahoo! News.mat", fields, do_compression=True)
        data = load_dataset("yahoo_news", folder=tmp_path)
        assert (len(data.y_train) + len(data.y_test), data.n_features) == (n, 163)
        assert data.prior == pytest.approx(np.mean(classes % 2 == 0), abs=1e-3)

    @pytest.mark.parametrize("name", [*PARTIAL, "yahoo_news"])
    def test_the_files_must_be_got_by_hand(self, name, tmp_path):
        record = get_record(name)
        assert "labels come from the true targets" in record.note
        assert "does not say how it made two classes" in record.tasks[0].origin
        with pytest.raises(DatasetNotFoundError) as caught:
            load_dataset(name, folder=tmp_path)
        stem = record.editions[0].files[0].name.removesuffix(".mat").replace(" ", "%20")
        for part in (f"http://palm.seu.edu.cn/zhangml/files/{stem}.rar", "cannot unpack .rar", "`folder`"):
            assert part in str(caught.value)

    def test_default_tasks(self):
        assert [get_record(name).task(None).name for name in (*PARTIAL, "yahoo_news")] == ["first-half"] * 4 + [
            "parity"
        ]


# --- Pendigits ----------------------------------------------------------------------------------------------------

# The first two rows of pendigits.tra and of pendigits.tes, byte by byte.
LINES = {
    "pendigits.tra": b" 47,100, 27, 81, 57, 37, 26,  0,  0, 23, 56, 53,100, 90, 40, 98, 8\n"
    b"  0, 89, 27,100, 42, 75, 29, 45, 15, 15, 37,  0, 69,  2,100,  6, 2\n",
    "pendigits.tes": b" 88, 92,  2, 99, 16, 66, 94, 37, 70,  0,  0, 24, 42, 65,100,100, 8\n"
    b" 80,100, 18, 98, 60, 66,100, 29, 42,  0,  0, 23, 42, 61, 56, 98, 8\n",
}
ROWS = np.array([[int(cell) for cell in line.split(b",")] for raw in LINES.values() for line in raw.splitlines()])


def counts_of(digits):
    return tuple(int(np.sum(np.asarray(digits) == digit)) for digit in range(10))


@pytest.fixture
def mini_pendigits(monkeypatch):
    counts = {"pendigits.tra": counts_of([8, 2]), "pendigits.tes": counts_of([8, 8])}
    monkeypatch.setattr("usimul.datasets.pendigits.COUNTS", counts)
    record = RECORDS["pendigits"]
    official, confdiff = record.editions
    confdiff = dataclasses.replace(confdiff, files=(DataFile("pendigits.mat"),))
    monkeypatch.setitem(RECORDS, "pendigits", dataclasses.replace(record, editions=(official, confdiff)))


def write_text(folder, contents):
    folder.mkdir(parents=True, exist_ok=True)
    for name, raw in contents.items():
        (folder / name).write_bytes(raw)
    return folder


def official_bytes(X, digits):
    """Rows in the layout of the UCI files."""
    out = io.BytesIO()
    for row, digit in zip(X.tolist(), digits.tolist(), strict=True):
        out.write((",".join(f"{value:3d}" for value in row) + f", {digit}\n").encode())
    return out.getvalue()


@pytest.mark.usefixtures("mini_pendigits")
class TestPendigits:
    def mat_fields(self):
        label = np.zeros((4, 10), dtype=np.uint8)
        label[np.arange(4), [7, 1, 7, 7]] = 1
        return {"data": ROWS[:, :16].astype(np.uint8), "label": label}

    @pytest.mark.parametrize("change", [lambda raw: raw, lambda raw: raw.replace(b"\n", b"\r\n"), lambda raw: raw[:-1]])
    def test_official_text(self, change, tmp_path):
        folder = write_text(tmp_path, {name: change(raw) for name, raw in LINES.items()})
        edition, raw = read_raw("pendigits", folder=folder)
        np.testing.assert_array_equal(raw.X, ROWS[:, :16])
        assert raw.X[0].tolist() == [47, 100, 27, 81, 57, 37, 26, 0, 0, 23, 56, 53, 100, 90, 40, 98]
        assert (edition.name, raw.classes.tolist(), raw.n_train) == ("official", [8, 2, 8, 8], None)

    def test_the_rows_are_written_as_they_were_read(self):
        assert official_bytes(ROWS[:2, :16], ROWS[:2, 16]) == LINES["pendigits.tra"]

    def test_both_editions_are_the_same_data(self, tmp_path):
        write_text(tmp_path, LINES)
        write_mat(tmp_path / "pendigits.mat", self.mat_fields())
        _, text = read_raw("pendigits", folder=tmp_path, edition="official")
        _, mat = read_raw("pendigits", folder=tmp_path, edition="confdiff")
        assert_same(text, mat)

    @pytest.mark.parametrize(
        ("lines", "message"),
        [
            (b"1,2,3\n", "line 1: expected 17 columns, found 3"),
            (b"<html>please log in</html>\n", "line 1: expected 17 columns, found 1"),
            (LINES["pendigits.tra"][:100], "line 2: expected 17 columns, found 9"),
            (LINES["pendigits.tra"].replace(b" 8\n", b" 8, 3\n"), "line 1: expected 17 columns, found 18"),
            (LINES["pendigits.tra"].replace(b" 75", b"101"), "line 2, column 6: expected.*from 0 to 100, found '101'"),
            (LINES["pendigits.tra"].replace(b" 75", b" -1"), "line 2, column 6: expected.*found '-1'"),
            (LINES["pendigits.tra"].replace(b" 75", b"0.5"), "line 2, column 6: expected.*found '0.5'"),
            (LINES["pendigits.tra"].replace(b" 75", b"1_0"), "line 2, column 6: expected.*found '1_0'"),
            (LINES["pendigits.tra"].replace(b" 75", b"9" * 9999), "line 2, column 6: expected.*found '9{20}'"),
            (LINES["pendigits.tra"].replace(b" 75", b"   "), "line 2, column 6: expected.*found ''"),
            (LINES["pendigits.tra"].replace(b" 75", b"\xffab"), "line 2, column 6: expected.*found"),
            (LINES["pendigits.tra"].replace(b" 2\n", b"10\n"), "line 2, column 17: expected.*from 0 to 9, found '10'"),
            (LINES["pendigits.tra"].replace(b" 2\n", b"two\n"), "line 2, column 17: expected.*found 'two'"),
            (LINES["pendigits.tra"][:68], "expected 2 rows, found 1"),
            (LINES["pendigits.tra"] * 2, "expected 2 rows, found 4"),
            (b"", "expected 2 rows, found 0"),
            (
                LINES["pendigits.tes"],
                "expected the published class counts 0 0 1 0 0 0 0 0 1 0, found 0 0 0 0 0 0 0 0 2",
            ),
        ],
    )
    def test_bad_text_is_refused(self, lines, message, tmp_path):
        write_text(tmp_path, {**LINES, "pendigits.tra": lines})
        with pytest.raises(FileFormatError, match=message) as caught:
            load_dataset("pendigits", folder=tmp_path)
        assert str(tmp_path / "pendigits.tra") in str(caught.value)
        assert "fetch it again" in str(caught.value)

    def test_all_bad_lines_are_counted(self, tmp_path):
        write_text(tmp_path, {**LINES, "pendigits.tes": b"x\n" * 30})
        with pytest.raises(FileFormatError, match=r"line 8: .*(?s:.)*and 22 more"):
            load_dataset("pendigits", folder=tmp_path)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"label": np.ones((4, 10))}, "a single 1 and nine 0 in `label`, found otherwise in rows 0, 1, 2, 3"),
            ({"data": np.full((4, 16), 100.5)}, "whole numbers from 0 to 100 in `data`, found otherwise in rows 0, 1"),
            ({"data": np.full((4, 16), 101)}, "whole numbers from 0 to 100 in `data`"),
            ({"data": np.zeros((3, 16))}, r"expected `data` of shape \(4, 16\), found \(3, 16\)"),
            ({"label": np.eye(10)[[6, 1, 7, 7]]}, "expected the published class counts"),
            ({"label": np.eye(10)[[7, 7, 1, 7]]}, "expected the published class counts"),
        ],
    )
    def test_a_bad_mat_file_is_refused(self, change, message, tmp_path):
        write_mat(tmp_path / "pendigits.mat", {**self.mat_fields(), **change})
        with pytest.raises(FileFormatError, match=message) as caught:
            load_dataset("pendigits", folder=tmp_path)
        assert str(tmp_path / "pendigits.mat") in str(caught.value)

    def test_the_text_files_are_fetched(self, tmp_path):
        mirror = write_text(tmp_path / "mirror", LINES)
        folder = download_dataset("pendigits", folder=tmp_path / "own", base_url=mirror.as_uri())
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == LINES
        assert len(read_raw("pendigits", folder=tmp_path / "own")[1].X) == 4

    def test_junk_without_a_checksum_is_not_kept(self, tmp_path):
        mirror = write_text(tmp_path / "mirror", {**LINES, "pendigits.tra": b"busy, come back later"})
        own = tmp_path / "own"
        given = {"folder": own, "base_url": mirror.as_uri()}
        for fetch in (download_dataset, functools.partial(read_raw, download=True)):
            with pytest.raises(
                FileFormatError, match=r"is not the set, and was deleted: .*pendigits\.tra, .*Try again"
            ):
                fetch("pendigits", **given)
            assert not list(own.rglob("pendigits.t*"))
        write_text(mirror, LINES)
        assert len(read_raw("pendigits", download=True, **given)[1].X) == 4

    def test_files_of_ones_own_are_never_deleted(self, tmp_path):
        mirror = write_text(tmp_path / "mirror", LINES)
        own = write_text(tmp_path / "pendigits", {"pendigits.tra": b"my notes"})
        with pytest.raises(FileFormatError, match=r"(?s)pendigits\.tra.*delete it and fetch it again") as error:
            load_dataset("pendigits", folder=tmp_path, download=True, base_url=mirror.as_uri())
        assert "was deleted" not in str(error.value)
        assert (own / "pendigits.tra").read_bytes() == b"my notes"


def assert_same(first, second):
    """Every field of two contents, types included."""
    for field in dataclasses.fields(first):
        a, b = getattr(first, field.name), getattr(second, field.name)
        if isinstance(a, np.ndarray):
            assert (a.dtype, a.flags.c_contiguous) == (b.dtype, b.flags.c_contiguous)
            np.testing.assert_array_equal(a, b)
        else:
            assert a == b, field.name


def test_split_rounded_up():
    labels = np.repeat([0, 1, 2], [10, 11, 14])
    for round_up, expected in ((False, [2, 2, 3]), (True, [2, 3, 3])):
        train, test = stratified_split(labels, 0.2, 0, round_up)
        assert np.bincount(labels[test]).tolist() == expected
        assert sorted([*train, *test]) == list(range(35))


# --- the real files -----------------------------------------------------------------------------------------------


@needs_data
@pytest.mark.data
class TestRealTables:
    # Points, features, and class counts as published; the mean number of candidates of the partial-label sets.
    counts: ClassVar = {
        "lost": (1122, 108, "204 198 142 103 88 103 76 33 61 25 26 18 25 20 0 0", 2.23),
        "msrcv2": (1758, 48, "175 255 182 63 3 39 187 27 32 77 76 48 32 46 34 61 37 31 160 24 31 87 51", 3.16),
        "birdsong": (4998, 38, "602 810 501 494 82 277 32 345 139 120 190 1280 126", 2.18),
        "fgnet": (1002, 262, None, 7.48),
    }
    shares: ClassVar = {
        ("lost", "first-half"): 544 / 1122,
        ("msrcv2", "first-half"): 904 / 1758,
        ("birdsong", "first-half"): 2489 / 4998,
        ("fgnet", "first-half"): 513 / 1002,
        ("lost", "parity"): 0.554,
        ("msrcv2", "parity"): 0.569,
        ("birdsong", "parity"): 0.335,
    }

    @pytest.mark.parametrize("name", PARTIAL)
    def test_partial_label_content(self, name):
        n, d, counts, n_candidates = self.counts[name]
        edition, raw = read_raw(name)
        assert raw.X.shape == (n, d)
        if counts is not None:
            assert np.bincount(raw.classes, minlength=len(counts.split())).tolist() == [int(c) for c in counts.split()]
        (file,) = edition.files
        content = find_files(RECORDS[name])[1][file.name].read_bytes()
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (file.sha256, file.n_bytes)
        from scipy.io import loadmat

        fields = loadmat(io.BytesIO(content))
        assert fields["partial_target"].sum() / n == pytest.approx(n_candidates, abs=0.005)
        # By a plain loop over points, as an independent reading of the true class.
        target = fields["target"].toarray() if hasattr(fields["target"], "toarray") else fields["target"]
        assert [int(np.flatnonzero(target[:, i])[0]) for i in range(n)] == raw.classes.tolist()

    @pytest.mark.parametrize(("name", "task"), sorted(shares))
    def test_shares_of_the_tasks(self, name, task):
        data = load_dataset(name, task=task)
        y = np.concatenate([data.y_train, data.y_test])
        share = self.shares[name, task]
        assert np.mean(y == 1) == pytest.approx(share, abs=1e-12 if task == "first-half" else 5e-4)
        assert len(y) == self.counts[name][0]

    @pytest.mark.parametrize("name", PARTIAL)
    def test_first_half_is_nearest_to_one_half(self, name):
        record = get_record(name)
        counts = np.bincount(read_raw(name)[1].classes, minlength=len(record.class_names))
        nearest = int(np.argmin(np.abs(np.cumsum(counts) / counts.sum() - 0.5))) + 1
        assert record.task("first-half").positive == tuple(range(nearest))
        for task in record.tasks:
            assert sorted([*task.positive, *task.negative]) == list(range(len(record.class_names)))

    @pytest.mark.parametrize("name", ["pendigits", *PARTIAL])
    def test_training_features_are_standardised(self, name):
        data = load_dataset(name)
        np.testing.assert_allclose(data.X_train.mean(axis=0, dtype=np.float64), 0.0, atol=1e-4)
        np.testing.assert_allclose(data.X_train.std(axis=0, dtype=np.float64), 1.0, atol=1e-4)
        assert np.abs(data.X_test.mean(axis=0)).max() > 1e-3

    def test_pendigits(self):
        data = load_dataset("pendigits")
        assert (len(data.y_train), len(data.y_test), data.n_features) == (8793, 2199, 16)  # the paper's counts
        assert data.measured_on == "Pendigits, 8,793 / 2,199"
        y, digits = (
            np.concatenate(pair) for pair in ((data.y_train, data.y_test), (data.original_train, data.original_test))
        )
        np.testing.assert_array_equal(y == 1, digits % 2 == 1)
        assert np.mean(y == 1) == pytest.approx(0.496, abs=5e-4)
        edition, raw = read_raw("pendigits", edition="confdiff")
        assert (raw.X.min(), raw.X.max(), raw.X.shape) == (0, 100, (10_992, 16))
        content = find_files(RECORDS["pendigits"], edition="confdiff")[1]["pendigits.mat"].read_bytes()
        (file,) = edition.files
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (file.sha256, file.n_bytes)
        # The first rows of both UCI files, at their places.
        np.testing.assert_array_equal(raw.X[[0, 1, 7494, 7495]], ROWS[:, :16])
        np.testing.assert_array_equal(raw.classes[[0, 1, 7494, 7495]], ROWS[:, 16])

    def test_both_editions_of_pendigits_are_identical(self, tmp_path):
        _, mat = read_raw("pendigits", edition="confdiff")
        parts = {"pendigits.tra": slice(0, 7494), "pendigits.tes": slice(7494, None)}
        written = {name: official_bytes(mat.X[rows], mat.classes[rows]) for name, rows in parts.items()}
        assert [len(raw) for raw in written.values()] == [7494 * 67, 3498 * 67]
        found, text = read_raw("pendigits", folder=write_text(tmp_path, written))
        assert found.name == "official"
        assert_same(text, mat)

    @pytest.mark.parametrize("name", PARTIAL)
    def test_a_changed_file_is_refused(self, name, tmp_path):
        (file,) = RECORDS[name].editions[0].files
        content = bytearray(find_files(RECORDS[name])[1][file.name].read_bytes())
        content[20] ^= 1  # in the header's text, which means nothing: only the sum can tell
        (tmp_path / file.name).write_bytes(content)
        with pytest.raises(FileFormatError, match=rf"{file.name}: expected SHA-256"):
            load_dataset(name, folder=tmp_path)
        (tmp_path / file.name).write_bytes(content[: len(content) // 2])
        with pytest.raises(FileFormatError, match=f"{file.name}: expected a MATLAB file"):
            load_dataset(name, folder=tmp_path)


def test_records_read_one_file_each():
    for name in (*PARTIAL, "yahoo_news"):
        (edition,) = get_record(name).editions
        assert isinstance(edition, Edition)
        assert not edition.can_be_fetched
        assert len(edition.files) == 1
