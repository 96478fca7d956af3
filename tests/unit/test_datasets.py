"""Data sets: every loader, the idx reader on good and bad bytes, finding and fetching files."""

import contextlib
import dataclasses
import errno
import functools
import gzip
import hashlib
import http.server
import json
import math
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import usimul.datasets as datasets_module
from usimul.datasets import (
    RECORDS,
    Dataset,
    DatasetNotFoundError,
    DownloadError,
    dataset_names,
    download_dataset,
    gaussian_bayes_accuracy,
    get_record,
    load_dataset,
    make_gaussians,
    resample_to_prior,
)
from usimul.datasets.base import stratified_split
from usimul.datasets.download import data_roots, find_files
from usimul.datasets.idx import content_sha256, read_idx
from usimul.datasets.mnist import FASHION_MNIST, MNIST
from usimul.datasets.records import DataFile
from usimul.validation import FileFormatError, InputError, InputTypeError, UsimulError


def real_files_are_here():
    try:
        return bool(find_files(MNIST) and find_files(FASHION_MNIST))
    except DatasetNotFoundError:
        return False


needs_data = pytest.mark.skipif(
    not real_files_are_here(), reason="set USIMUL_DATA to a folder with mnist/ and fashion_mnist/"
)


def with_files(record, contents, **changes):
    """The record with one edition, whose files have the given contents."""
    files = tuple(DataFile(n, hashlib.sha256(raw).hexdigest(), len(raw), gz=True) for n, raw in contents.items())
    edition = dataclasses.replace(record.editions[0], files=files, base_url="http://127.0.0.1:9/unused/", **changes)
    return dataclasses.replace(record, name="mini", editions=(edition,))


def toy_dataset(**changes):
    X, y = np.zeros((4, 6), dtype=np.float32), np.array([1, -1, 1, 1])
    fields = {
        "name": "toy",
        "X_train": X,
        "y_train": y,
        "X_test": X[:2],
        "y_test": y[:2],
        "source": "a source",
        "licence": "a licence",
        "citation": "a citation",
        "classes": "+1: a, -1: b",
    }
    return Dataset(**{**fields, **changes})


class TestDataset:
    def test_describe_names_everything(self):
        text = toy_dataset(image_shape=(1, 2, 3), bayes_accuracy=0.9).describe()
        for part in ("toy: 4 training and 2 test", "1x2x3", "+1: a", "0.750", "0.500", "0.9", "a source", "a licence"):
            assert part in text
        assert "a citation" in text

    def test_is_frozen(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            toy_dataset().name = "other"

    @pytest.mark.parametrize(
        ("changes", "error", "message"),
        [
            ({"X_train": np.zeros((4, 6))}, InputTypeError, "`X_train` must be a float32.*Got float64"),
            ({"X_test": np.zeros(6, dtype=np.float32)}, InputTypeError, r"`X_test`.*shape \(6,\)"),
            ({"X_test": [[1.0]]}, InputTypeError, "Got list"),
            ({"X_test": np.full((2, 6), np.nan, dtype=np.float32)}, InputError, "`X_test` must be finite. Row 0"),
            ({"X_test": np.zeros((2, 5), dtype=np.float32)}, InputError, "same number of features.* 6 and 5"),
            ({"y_train": np.array([1, -1])}, InputError, "one label per row of `X_train`, 4. Got 2"),
            ({"y_train": np.array([0, 1, 0, 1])}, InputError, r"`y_train` must hold both labels \+1 and -1"),
            ({"image_shape": (1, 5, 5)}, InputError, "number of features, 6"),
            ({"posterior_test": np.zeros(3)}, InputError, r"`posterior_test` must have shape \(2,\)"),
        ],
    )
    def test_parts_that_do_not_fit_are_refused(self, changes, error, message):
        with pytest.raises(error, match=message):
            toy_dataset(**changes)


class TestEmbedded:
    @pytest.mark.parametrize(("name", "n", "d"), [("digits", 1797, 64), ("breast_cancer", 569, 30)])
    def test_shapes_and_types(self, name, n, d):
        data = load_dataset(name)
        assert data.X_train.shape[0] + data.X_test.shape[0] == n
        assert data.X_train.shape[1] == d
        assert data.X_train.dtype == np.float32
        assert data.y_train.dtype == np.int64
        assert len(data.y_test) == pytest.approx(0.2 * n, abs=5)
        assert data.name == name

    def test_digits_match_scikit_learn(self):
        from sklearn.datasets import load_digits

        bunch = load_digits()
        expected = {(tuple(row), int(label % 2 == 0)) for row, label in zip(bunch.data, bunch.target, strict=True)}
        data = load_dataset("digits")
        X, y = np.vstack([data.X_train, data.X_test]) * 16, np.concatenate([data.y_train, data.y_test])
        assert {(tuple(row), int(label == 1)) for row, label in zip(X.astype(float), y, strict=True)} == expected
        assert data.X_train.min() == 0.0
        assert data.X_train.max() == 1.0
        assert data.image_shape == (1, 8, 8)

    def test_breast_cancer_is_standardised_on_the_training_part(self):
        data = load_dataset("breast_cancer")
        np.testing.assert_allclose(data.X_train.mean(axis=0), 0.0, atol=1e-5)
        np.testing.assert_allclose(data.X_train.std(axis=0), 1.0, atol=1e-5)
        assert np.abs(data.X_test.mean(axis=0)).max() > 1e-3
        # 212 malignant of 569
        assert int((data.y_train == 1).sum() + (data.y_test == 1).sum()) == 212

    def test_malignant_tumours_are_positive(self):
        data = load_dataset("breast_cancer")
        # Feature 0 is the mean radius; malignant nuclei are larger.
        assert data.X_train[data.y_train == 1, 0].mean() > 0.5 > data.X_train[data.y_train == -1, 0].mean()

    def test_seed_decides_the_split(self):
        first, again, other = (load_dataset("digits", random_state=seed) for seed in (0, 0, 1))
        np.testing.assert_array_equal(first.X_test, again.X_test)
        assert not np.array_equal(first.X_test, other.X_test)

    def test_stratified_split_is_a_partition_with_equal_shares(self):
        classes = np.repeat([0, 1, 2], [10, 40, 50])
        train, test = stratified_split(classes, 0.2, random_state=0)
        assert sorted([*train, *test]) == list(range(100))
        assert np.bincount(classes[test]).tolist() == [2, 8, 10]


class TestResampleToPrior:
    y = np.array([1] * 60 + [-1] * 40)

    @pytest.mark.parametrize("prior", [0.05, 0.1, 0.3, 0.4, 0.5, 0.6, 0.61, 0.9, 0.95])
    def test_share_and_size(self, prior):
        rows = resample_to_prior(self.y, prior, random_state=0)
        n_positive = int((self.y[rows] == 1).sum())
        assert abs(n_positive - rows.size * prior) <= 0.5 + 1e-9
        # Brute force over all pairs of class counts: no larger subsample rounds to this share.
        largest = max(
            p + q for p in range(61) for q in range(41) if p == math.floor((p + q) * prior + 0.5) and p + q > 0
        )
        assert rows.size == largest

    def test_rows_are_distinct_and_in_order(self):
        rows = resample_to_prior(self.y, 0.3, random_state=1)
        assert (np.diff(rows) > 0).all()
        assert rows.dtype == np.int64

    def test_the_own_share_keeps_everything(self):
        np.testing.assert_array_equal(resample_to_prior(self.y, 0.6, random_state=0), np.arange(100))

    def test_wanted_size(self):
        rows = resample_to_prior(self.y, 0.2, n=25, random_state=0)
        assert (rows.size, int((self.y[rows] == 1).sum())) == (25, 5)

    def test_draw_is_uniform_within_a_class(self):
        counts = np.zeros(100)
        for seed in range(400):
            counts[resample_to_prior(self.y, 0.4, n=50, random_state=seed)] += 1
        # 20 of 60 positives and 30 of 40 negatives; five standard errors of a binomial share.
        for part, share in ((counts[:60], 20 / 60), (counts[60:], 30 / 40)):
            assert np.abs(part / 400 - share).max() < 5 * math.sqrt(share * (1 - share) / 400)

    def test_seed(self):
        a, b, c = (resample_to_prior(self.y, 0.3, random_state=seed) for seed in (0, 0, 1))
        np.testing.assert_array_equal(a, b)
        assert not np.array_equal(a, c)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((y, 0.3, 90), "`n` must be at most 57 for a share of 0.3 out of 60 positives and 40 negatives. Got 90"),
            ((y, 0.01, 10), "would hold one class only"),
            ((y, 1.0), r"`prior` must lie in \(0, 1\)"),
            ((np.ones(5), 0.5), "must hold both labels"),
            ((y, 0.5, 1), "`n` must be at least 2"),
        ],
    )
    def test_impossible_wishes_are_refused(self, arguments, message):
        with pytest.raises(InputError, match=message):
            resample_to_prior(*arguments)


class TestGaussians:
    @pytest.mark.parametrize(("prior", "distance", "n_features"), [(0.5, 2.0, 2), (0.2, 1.0, 1), (0.7, 3.0, 5)])
    def test_posterior_is_the_density_ratio(self, prior, distance, n_features):
        from scipy.stats import multivariate_normal

        data = make_gaussians(300, 100, prior, distance=distance, n_features=n_features, random_state=0)
        mean = np.full(n_features, distance / 2 / math.sqrt(n_features))
        for X, posterior in ((data.X_train, data.posterior_train), (data.X_test, data.posterior_test)):
            positive = prior * multivariate_normal(mean, np.eye(n_features)).pdf(X)
            negative = (1 - prior) * multivariate_normal(-mean, np.eye(n_features)).pdf(X)
            np.testing.assert_allclose(posterior, positive / (positive + negative), rtol=1e-9)

    @pytest.mark.parametrize(("prior", "distance"), [(0.5, 2.0), (0.2, 1.0), (0.9, 0.5), (0.3, 3.0)])
    def test_bayes_accuracy_matches_monte_carlo(self, prior, distance):
        n = 40_000
        data = make_gaussians(2000, n, prior, distance=distance, random_state=1)
        hits = np.mean(np.where(data.posterior_test > 0.5, 1, -1) == data.y_test)
        error = math.sqrt(data.bayes_accuracy * (1 - data.bayes_accuracy) / n)
        assert abs(hits - data.bayes_accuracy) < 4 * error
        assert data.bayes_accuracy >= max(prior, 1 - prior) - 1e-12

    def test_posterior_is_calibrated_and_prior_is_met(self):
        data = make_gaussians(2000, 40_000, 0.3, distance=2.0, random_state=2)
        positive = (data.y_test == 1).astype(float)
        error = math.sqrt(0.3 * 0.7 / 40_000)
        assert abs(positive.mean() - 0.3) < 4 * error
        assert abs(data.posterior_test.mean() - 0.3) < 4 * error

    @pytest.mark.parametrize("sign", [1, -1])
    def test_means_are_the_stated_distance_apart(self, sign):
        data = make_gaussians(2000, 20_000, 0.5, distance=4.0, n_features=3, random_state=3)
        centre = data.X_test[data.y_test == sign].mean(axis=0)
        np.testing.assert_allclose(centre, sign * 2.0 / math.sqrt(3), atol=5 / math.sqrt(10_000))

    def test_known_closed_form(self):
        assert gaussian_bayes_accuracy(0.5, 2.0) == pytest.approx(0.841344746068543, abs=1e-12)
        assert gaussian_bayes_accuracy(0.3, 1e-3) == pytest.approx(0.7)
        assert gaussian_bayes_accuracy(0.3, 1.5) == pytest.approx(gaussian_bayes_accuracy(0.7, 1.5))

    def test_seed_and_name(self):
        a, b = (load_dataset("gaussians", n_train=30, n_test=30, prior=0.4, random_state=5) for _ in range(2))
        np.testing.assert_array_equal(a.X_train, b.X_train)
        assert a.prior != 0.0

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"prior": 0.0}, InputError, "`prior` must lie in"),
            ({"distance": 0.0}, InputError, "`distance` must lie in"),
            ({"n_features": 0}, InputError, "`n_features` must be at least 1"),
            ({"n_train": 1}, InputError, "`n_train` must be at least 2"),
            ({"n_test": "9"}, InputTypeError, "`n_test` must be an integer"),
            ({"n_test": 5, "prior": 1e-6}, InputError, "labels drawn with prior 1e-06 are equal"),
        ],
    )
    def test_bad_arguments_are_refused(self, options, error, message):
        with pytest.raises(error, match=message):
            make_gaussians(**{"n_train": 10, "n_test": 10, "random_state": 0, **options})


def idx_bytes(array, code):
    array = np.asarray(array)
    header = struct.pack(">BBBB", 0, 0, code, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


class TestIdx:
    image_bytes = bytes.fromhex("00000803 00000002 00000001 00000003") + bytes([0, 1, 2, 253, 254, 255])
    packed = gzip.compress(image_bytes, mtime=0)
    image_array = np.array([[[0, 1, 2]], [[253, 254, 255]]], dtype=np.uint8)

    @pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
    def test_miniature_byte_by_byte(self, pack, tmp_path):
        path = tmp_path / "any-name"
        path.write_bytes(pack(self.image_bytes))
        found = read_idx(path, n_dimensions=3, dtype=np.uint8, sha256=hashlib.sha256(self.image_bytes).hexdigest())
        np.testing.assert_array_equal(found, self.image_array)
        assert found.dtype == np.uint8
        found[0, 0, 0] = 9

    @pytest.mark.parametrize(
        ("code", "dtype"), [(0x08, "u1"), (0x09, "i1"), (0x0B, "i2"), (0x0C, "i4"), (0x0D, "f4"), (0x0E, "f8")]
    )
    def test_every_type_of_the_format(self, code, dtype, tmp_path):
        array = np.array([[1, 2, 3], [4, 5, 100]], dtype=dtype)
        (tmp_path / "a").write_bytes(idx_bytes(array, code))
        found = read_idx(tmp_path / "a")
        np.testing.assert_array_equal(found, array)
        assert found.dtype == np.dtype(dtype)
        assert found.dtype.isnative

    def test_no_rows(self, tmp_path):
        (tmp_path / "a").write_bytes(bytes.fromhex("00000803 00000000 0000001c 0000001c"))
        assert read_idx(tmp_path / "a").shape == (0, 28, 28)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "expected an idx file.*found bytes ''"),
            (b"\0\0", "expected an idx file.*found bytes '00 00'"),
            (b"\x01" + image_bytes[1:], "expected an idx file.*found bytes '01 00 08 03'"),
            (b"\0\0\x0a\x01" + bytes(8), "a type code out of 08, 09.*found bytes '00 00 0a 01'"),
            (b"\0\0\x08\0", "found bytes '00 00 08 00'"),
            (b"\x89PNG....", "expected an idx file"),
            (image_bytes[:11], "expected 12 bytes with the sizes of 3 dimensions, found 7"),
            (image_bytes[:-1], r"expected 6 bytes of values for shape \(2, 1, 3\) and type uint8, found only 5"),
            (image_bytes + b"\0", "expected 6 bytes of values.*found more"),
            # A header that claims 2**96 bytes must not reserve them.
            (bytes.fromhex("00000803") + b"\xff" * 12 + b"abc", "found only 3"),
            (packed[:-9], "expected a whole gzip file, found a damaged one"),
            (packed[:-8] + bytes(8), "expected a whole gzip file, found a damaged one.*CRC"),
            (packed + b"rest", "expected a whole gzip file, found a damaged one"),
            (packed[:10] + b"\xff" * 30, "expected a whole gzip file, found a damaged one"),
            (gzip.compress(image_bytes + b"\0", mtime=0), "found more"),
        ],
    )
    def test_damaged_files_are_refused(self, content, message, tmp_path):
        path = tmp_path / "broken-file"
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=message) as caught:
            read_idx(path)
        assert str(path) in str(caught.value)

    @pytest.mark.parametrize(
        ("wanted", "message"),
        [
            ({"n_dimensions": 1}, "expected 1 dimensions, found 3"),
            ({"dtype": np.int32}, "expected values of type int32, found uint8"),
            ({"sha256": "0" * 64}, "SHA-256 0000.*It is another file under this name, or damaged"),
        ],
    )
    def test_other_files_than_asked_for_are_refused(self, wanted, message, tmp_path):
        (tmp_path / "a").write_bytes(self.image_bytes)
        with pytest.raises(FileFormatError, match=message):
            read_idx(tmp_path / "a", **wanted)

    def test_missing_file_is_the_usual_error(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            read_idx(tmp_path / "nothing")

    def test_content_sha256_stops_after_the_limit(self, tmp_path):
        (tmp_path / "a").write_bytes(gzip.compress(bytes(10_000_000)))
        assert content_sha256(tmp_path / "a", limit=1000)[1] == 1001


@pytest.fixture
def no_folders(monkeypatch, tmp_path):
    """A machine without any data: no variable, an empty cache."""
    monkeypatch.delenv("USIMUL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def mini(monkeypatch):
    """A set in MNIST's format, small enough to make here, entered in the table; and its files' contents."""
    rng = np.random.default_rng(0)
    contents = {}
    for part, n in (("train", 6), ("t10k", 4)):
        contents[f"{part}-images-idx3-ubyte"] = idx_bytes(rng.integers(0, 256, (n, 2, 3), dtype=np.uint8), 8)
        contents[f"{part}-labels-idx1-ubyte"] = idx_bytes(np.arange(n, dtype=np.uint8), 8)
    monkeypatch.setitem(RECORDS, "mini", with_files(MNIST, contents))
    return contents


def write_packed(folder, contents):
    folder.mkdir(parents=True, exist_ok=True)
    for name, raw in contents.items():
        (folder / f"{name}.gz").write_bytes(gzip.compress(raw))
    return folder


class TestMnistFormat:
    def test_content(self, mini, no_folders):
        data = load_dataset("mini", folder=write_packed(no_folders / "files", mini))
        raw = np.frombuffer(mini["train-images-idx3-ubyte"][16:], dtype=np.uint8).reshape(6, 6)
        np.testing.assert_array_equal(data.X_train, raw.astype(np.float32) / np.float32(255))
        np.testing.assert_array_equal(data.y_train, [1, -1, 1, -1, 1, -1])
        assert data.image_shape == (1, 2, 3)
        assert data.X_test.shape == (4, 6)

    def test_wrong_file_under_a_right_name(self, mini, no_folders):
        folder = write_packed(no_folders / "files", mini)
        other = idx_bytes(np.zeros((4, 2, 3), dtype=np.uint8), 8)
        (folder / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(other))
        with pytest.raises(
            FileFormatError, match=r"t10k-images-idx3-ubyte\.gz: expected unpacked content with SHA-256"
        ):
            load_dataset("mini", folder=folder)

    def test_counts_of_images_and_labels_must_agree(self, mini, no_folders, monkeypatch):
        mini["t10k-labels-idx1-ubyte"] = idx_bytes(np.arange(3, dtype=np.uint8), 8)
        monkeypatch.setitem(RECORDS, "mini", with_files(MNIST, mini))
        with pytest.raises(FileFormatError, match="expected 4 labels, one for each image, found 3"):
            load_dataset("mini", folder=write_packed(no_folders / "files", mini))


class TestFinding:
    def test_order_variable_then_cache(self, mini, no_folders, monkeypatch):
        cached = write_packed(no_folders / "cache" / "usimul" / "mini", mini)
        assert find_files(RECORDS["mini"])[1]["train-images-idx3-ubyte"].parent == cached
        own = write_packed(no_folders / "own" / "mini", mini)
        monkeypatch.setenv("USIMUL_DATA", str(no_folders / "own"))
        assert find_files(RECORDS["mini"])[1]["train-images-idx3-ubyte"].parent == own
        (own / "t10k-labels-idx1-ubyte.gz").unlink()
        assert find_files(RECORDS["mini"])[1]["train-images-idx3-ubyte"].parent == cached

    def test_a_given_folder_is_the_only_one(self, mini, no_folders):
        write_packed(no_folders / "cache" / "usimul" / "mini", mini)
        with pytest.raises(DatasetNotFoundError):
            load_dataset("mini", folder=no_folders / "elsewhere")

    @pytest.mark.parametrize("inside", ["", "mini"])
    def test_a_given_folder_may_be_the_root_or_the_set(self, mini, no_folders, inside):
        write_packed(no_folders / "files" / inside, mini)
        assert load_dataset("mini", folder=str(no_folders / "files")).name == "mini"

    def test_plain_files_are_found_too(self, mini, no_folders):
        for name, raw in mini.items():
            (no_folders / name).write_bytes(raw)
        assert load_dataset("mini", folder=no_folders).name == "mini"

    def test_message_names_folders_what_is_missing_and_the_fix(self, mini, no_folders, monkeypatch):
        folder = write_packed(no_folders / "own" / "mini", mini)
        (folder / "t10k-labels-idx1-ubyte.gz").unlink()
        monkeypatch.setenv("USIMUL_DATA", str(no_folders / "own"))
        with pytest.raises(DatasetNotFoundError) as caught:
            load_dataset("mini")
        assert isinstance(caught.value, UsimulError)
        assert isinstance(caught.value, FileNotFoundError)
        message = str(caught.value)
        assert f"{folder} (official: missing t10k-labels-idx1-ubyte.gz)" in message
        assert f"{no_folders / 'cache' / 'usimul' / 'mini'} (official: no such folder)" in message
        for fix in ("usimul datasets get mini", 'load_dataset("mini", download=True)', "USIMUL_DATA"):
            assert fix in message

    def test_default_cache_is_in_the_home_folder(self, monkeypatch, tmp_path):
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setenv("USIMUL_DATA", "")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert data_roots() == [tmp_path / ".cache" / "usimul"]

    def test_folder_must_be_a_path(self):
        with pytest.raises(InputTypeError, match=r"`folder` must be a path\. Got 3 of type int"):
            data_roots(3)


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder; paths with a fault in them break in the named way.

    Under ``/plan/`` each request takes the next fault of ``server.plan``, and no fault once that is empty.
    """

    def log_message(self, *args):
        pass

    def do_GET(self):
        faults, name = self.path.strip("/").split("/")
        if faults == "plan":
            faults = self.server.plan.pop(0) if self.server.plan else "fine"
        faults = set(faults.split("+"))
        content = gzip.compress(self.server.contents[name.removesuffix(".gz")], mtime=0)
        self.server.asked.append(name)
        self.server.ranges.append((self.headers.get("Range"), self.headers.get("If-Range")))
        for fault, code in (("gone", 404), ("busy", 503)):
            if fault in faults:
                self.send_error(code)
                return
        if "other" in faults:
            content = gzip.compress(b"an error page")
        if "html" in faults:
            content = b"<html>please log in</html>"
        if "flood" in faults:
            content = bytes(10_000_000)
        tag = f'"{hashlib.md5(content).hexdigest()}"'
        start = 0
        asked = self.headers.get("Range")
        if asked and "norange" not in faults and ("noif" in faults or self.headers.get("If-Range") == tag):
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                self.send_error(416)
                return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if "notag" not in faults:
            self.send_header("Last-Modified" if "modified" in faults else "ETag", tag)
        if "nolength" not in faults:
            self.send_header("Content-Length", str(len(content) - start))
        if "page" in faults:
            self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        end = len(content)
        if faults & {"half", "nolength", "stall", "reset"}:
            end = start + (end - start) // 2
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(content[start:end])
            self.wfile.flush()
        if "stall" in faults:
            self.server.go_on.wait(60)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(content[end:])
        if "reset" in faults:
            # Closing with this option sends a reset instead of a proper end.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        self.close_connection = True


@pytest.fixture
def server(mini, monkeypatch):
    monkeypatch.setattr("usimul.datasets.transfer.PAUSE_SECONDS", 0.0)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.contents, running.asked, running.ranges, running.plan = mini, [], [], []
        running.go_on = threading.Event()
        running.address = f"http://127.0.0.1:{running.server_port}"
        thread = threading.Thread(target=functools.partial(running.serve_forever, poll_interval=0.01))
        thread.start()
        yield running
        running.go_on.set()
        running.shutdown()
        thread.join()


FIRST = "train-images-idx3-ubyte.gz"
PART, NOTE = f".{FIRST}.part", f".{FIRST}.part.json"

FETCH = """
import dataclasses, json, sys
import usimul.datasets as module
from usimul.datasets.records import DataFile
files, address = json.loads(sys.argv[1]), sys.argv[2]
edition = dataclasses.replace(module.MNIST.editions[0], files=tuple(DataFile(**f) for f in files), base_url=address)
module.RECORDS["mini"] = dataclasses.replace(module.MNIST, name="mini", editions=(edition,))
print(module.download_dataset("mini"))
"""


def fetching_process(address):
    """A second process that fetches the set into the same folder."""
    files = json.dumps([dataclasses.asdict(file) for file in RECORDS["mini"].editions[0].files])
    source = str(Path(datasets_module.__file__).parents[2])
    return subprocess.Popen(
        [sys.executable, "-c", FETCH, files, address],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
    )


def until(condition, process):
    """Wait for a second process; the test's own time limit ends what never comes."""
    while not condition():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)


class TestDownload:
    def test_nothing_is_fetched_unless_asked(self, server, no_folders):
        with pytest.raises(DatasetNotFoundError):
            load_dataset("mini", base_url=f"{server.address}/fine")
        assert server.asked == []

    def test_fetches_into_the_cache_once(self, server, no_folders):
        for _ in range(2):
            data = load_dataset("mini", download=True, base_url=f"{server.address}/fine/")
        assert data.X_train.shape == (6, 6)
        assert len(server.asked) == 4
        folder = no_folders / "cache" / "usimul" / "mini"
        assert sorted(p.name for p in folder.iterdir()) == sorted(f"{name}.gz" for name in server.contents)
        assert load_dataset("mini").X_train.shape == (6, 6)

    def test_fetches_only_what_is_missing_into_a_given_folder(self, server, no_folders):
        folder = write_packed(no_folders / "own" / "mini", server.contents)
        (folder / "train-labels-idx1-ubyte.gz").unlink()
        assert download_dataset("mini", folder=no_folders / "own", base_url=f"{server.address}/fine") == folder
        assert server.asked == ["train-labels-idx1-ubyte.gz"]

    def test_record_has_its_own_address(self, server, no_folders, monkeypatch):
        (edition,) = RECORDS["mini"].editions
        edition = dataclasses.replace(edition, base_url=f"{server.address}/fine/")
        monkeypatch.setitem(RECORDS, "mini", dataclasses.replace(RECORDS["mini"], editions=(edition,)))
        assert load_dataset("mini", download=True).name == "mini"

    def test_file_addresses_work(self, mini, no_folders):
        mirror = write_packed(no_folders / "mirror", mini)
        assert load_dataset("mini", download=True, base_url=mirror.as_uri()).name == "mini"
        with pytest.raises(DownloadError, match="No such file"):
            load_dataset("mini", download=True, folder=no_folders / "b", base_url=(no_folders / "none").as_uri())

    @pytest.mark.parametrize(
        ("fault", "message"),
        [
            ("half", r"broke off: expected \d+ bytes, received \d+\. Gave up after 4 attempts.*will be continued"),
            ("half+norange", r"broke off: expected \d+ bytes, received \d+\..*will be continued"),
            ("half+notag", r"broke off: expected \d+ bytes, received \d+\. Gave up after 4 attempts; try later\.$"),
            ("reset", "Cannot fetch .*reset.*Gave up after 4 attempts.*will be continued|broke off"),
            ("nolength", "is not the known file: expected a whole gzip file, found a damaged one"),
            ("other", r"not the known file: expected \d+ unpacked bytes with SHA-256 .*found 13 bytes with SHA-256 "),
            ("html", "not the known file"),
            ("flood", "delivers more than .* bytes, so it is not the file"),
            ("flood+nolength", "delivers more than .* bytes, so it is not the file"),
            ("gone", "answered 404"),
            ("busy", r"answered 503 .*Gave up after 4 attempts; try later\.$"),
        ],
    )
    def test_a_failed_transfer_leaves_only_the_part_to_continue(self, fault, message, server, no_folders):
        with pytest.raises(DownloadError, match=message) as caught:
            load_dataset("mini", download=True, base_url=f"{server.address}/{fault}")
        assert f"{server.address}/{fault}/{FIRST}" in str(caught.value)
        kept = {PART, NOTE} if "will be continued" in str(caught.value) else set()
        assert {p.name for p in (no_folders / "cache" / "usimul" / "mini").iterdir()} == kept
        with pytest.raises(DatasetNotFoundError):
            load_dataset("mini")
        # And the next, good attempt, from another address, is not disturbed.
        assert load_dataset("mini", download=True, base_url=f"{server.address}/fine").name == "mini"
        assert len(list((no_folders / "cache" / "usimul" / "mini").iterdir())) == 4

    @pytest.mark.parametrize("version", ["", "+modified"])
    def test_a_broken_transfer_is_continued(self, version, server, no_folders):
        whole = gzip.compress(server.contents[FIRST.removesuffix(".gz")], mtime=0)
        server.plan = [f"half{version}", *[f"busy{version}"] * 3]
        with pytest.raises(DownloadError, match="will be continued"):
            load_dataset("mini", download=True, base_url=f"{server.address}/plan")
        folder = no_folders / "cache" / "usimul" / "mini"
        assert (folder / PART).read_bytes() == whole[: len(whole) // 2]
        assert load_dataset("mini", download=True, base_url=f"{server.address}/plan").name == "mini"
        tag = f'"{hashlib.md5(whole).hexdigest()}"'
        assert server.ranges[:5] == [(None, None), *[(f"bytes={len(whole) // 2}-", tag)] * 4]
        assert (folder / FIRST).read_bytes() == whole
        assert len(list(folder.iterdir())) == 4

    def test_passing_faults_do_not_stop_a_transfer(self, server, no_folders, capsys):
        server.plan = ["busy", "half", "reset"]
        assert load_dataset("mini", download=True, base_url=f"{server.address}/plan").name == "mini"
        assert server.asked[:4] == [FIRST] * 4
        assert "answered 503 Service Unavailable. Trying again (2 of 4)." in capsys.readouterr().err

    # noif: a server that sends the rest of the new file although it was asked to send the whole one.
    @pytest.mark.parametrize("fault", ["fine", "norange", "noif"])
    @pytest.mark.parametrize("longer", [False, True])
    def test_a_file_that_changed_in_between_is_not_glued(self, fault, longer, server, no_folders, monkeypatch):
        new = dict(server.contents)
        server.plan = ["half", "gone"]
        with pytest.raises(DownloadError, match="404"):
            load_dataset("mini", download=True, base_url=f"{server.address}/plan")
        name = FIRST.removesuffix(".gz")
        new[name] = idx_bytes(np.random.default_rng(1).integers(0, 256, (6, 2, 5 if longer else 3), dtype=np.uint8), 8)
        new["t10k-images-idx3-ubyte"] = idx_bytes(np.zeros((4, 2, 5 if longer else 3), dtype=np.uint8), 8)
        monkeypatch.setitem(RECORDS, "mini", with_files(MNIST, new))
        server.contents, server.plan = new, [fault]
        assert load_dataset("mini", download=True, base_url=f"{server.address}/plan").name == "mini"
        packed = (no_folders / "cache" / "usimul" / "mini" / FIRST).read_bytes()
        assert gzip.decompress(packed) == new[name]
        assert server.ranges[2][0] is not None

    def test_a_server_without_range_support_starts_over(self, server, no_folders):
        server.plan = ["half+norange", "gone", "norange"]
        with pytest.raises(DownloadError, match="404"):
            load_dataset("mini", download=True, base_url=f"{server.address}/plan")
        assert load_dataset("mini", download=True, base_url=f"{server.address}/plan").name == "mini"
        assert server.ranges[2][0] is not None
        assert len(server.asked) == 6

    def test_a_damaged_part_is_fetched_anew(self, server, no_folders):
        server.plan = ["half", "gone"]
        with pytest.raises(DownloadError, match="404"):
            load_dataset("mini", download=True, base_url=f"{server.address}/plan")
        part = no_folders / "cache" / "usimul" / "mini" / PART
        part.write_bytes(bytes(part.stat().st_size))
        assert load_dataset("mini", download=True, base_url=f"{server.address}/plan").name == "mini"
        assert [asked is None for asked, _ in server.ranges[:4]] == [True, False, False, True]

    @pytest.mark.parametrize("note", ["", "{", "[1]", '{"url": 1}'])
    def test_a_part_without_a_sound_note_is_fetched_anew(self, note, server, no_folders):
        folder = no_folders / "cache" / "usimul" / "mini"
        folder.mkdir(parents=True)
        (folder / PART).write_bytes(b"who knows")
        (folder / NOTE).write_text(note)
        assert load_dataset("mini", download=True, base_url=f"{server.address}/fine").name == "mini"
        assert len(list(folder.iterdir())) == 4

    def test_an_interruption_leaves_the_part_which_needs_no_second_transfer(self, server, no_folders, monkeypatch):
        def interrupt(*args, **kwargs):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("usimul.datasets.transfer._verify", interrupt)
            with pytest.raises(KeyboardInterrupt):
                load_dataset("mini", download=True, base_url=f"{server.address}/fine")
        folder = no_folders / "cache" / "usimul" / "mini"
        assert {p.name for p in folder.iterdir()} == {PART, NOTE}
        assert load_dataset("mini", download=True, base_url=f"{server.address}/fine").name == "mini"
        assert server.asked.count(FIRST) == 1

    @pytest.mark.parametrize("gz", [True, False])
    def test_files_with_a_sum_of_the_packed_file_or_none(self, gz, server, no_folders, monkeypatch):
        packed = {name: gzip.compress(raw, mtime=0) for name, raw in server.contents.items()}
        for sums in (True, False):
            files = tuple(
                DataFile(n if gz else f"{n}.gz", gz=gz, packed_sha256=hashlib.sha256(raw).hexdigest() if sums else None)
                for n, raw in packed.items()
            )
            edition = dataclasses.replace(RECORDS["mini"].editions[0], files=files, read=lambda *_: None)
            monkeypatch.setitem(RECORDS, "mini", dataclasses.replace(RECORDS["mini"], editions=(edition,)))
            found = download_dataset("mini", folder=no_folders / str(sums), base_url=f"{server.address}/fine")
            assert {p.name: p.read_bytes() for p in found.iterdir()} == {f"{n}.gz": raw for n, raw in packed.items()}
            message = "expected SHA-256 .*, found .* with SHA-256" if sums else "delivers a web page"
            with pytest.raises(DownloadError, match=message):
                download_dataset("mini", folder=no_folders / "no", base_url=f"{server.address}/html+page")
            assert list((no_folders / "no" / "mini").iterdir()) == []

    def test_a_full_disk_is_noticed_before(self, server, no_folders, monkeypatch):
        usage = shutil._ntuple_diskusage(1000, 990, 10)
        monkeypatch.setattr("usimul.datasets.transfer.shutil.disk_usage", lambda folder: usage)
        folder, n_bytes = no_folders / "cache" / "usimul" / "mini", len(gzip.compress(server.contents[FIRST[:-3]]))
        with pytest.raises(
            DownloadError, match=rf"No room in {folder}: .* needs {n_bytes} more bytes .* 10 bytes free"
        ):
            load_dataset("mini", download=True, base_url=f"{server.address}/fine")
        assert list(folder.iterdir()) == []

    def test_a_disk_that_fills_up_on_the_way(self, server, no_folders, monkeypatch):
        def full(*args):
            raise OSError(errno.ENOSPC, "No space left on device")

        folder = no_folders / "cache" / "usimul" / "mini"
        with monkeypatch.context() as patch:
            patch.setattr("usimul.datasets.transfer.os.fsync", full)
            with pytest.raises(DownloadError, match=rf"No room in {folder}: .*pass a folder="):
                load_dataset("mini", download=True, base_url=f"{server.address}/fine")
        assert {p.name for p in folder.iterdir()} == {PART, NOTE}
        assert load_dataset("mini", download=True, base_url=f"{server.address}/fine").name == "mini"

    def test_a_killed_process_is_continued(self, server, no_folders):
        whole = gzip.compress(server.contents[FIRST.removesuffix(".gz")], mtime=0)
        server.plan = ["stall"]
        folder = no_folders / "cache" / "usimul" / "mini"
        process = fetching_process(f"{server.address}/plan")
        try:
            half = len(whole) // 2
            until(lambda: (folder / PART).is_file() and (folder / PART).stat().st_size == half, process)
        finally:
            process.kill()
            process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert (folder / PART).read_bytes() == whole[:half]
        with pytest.raises(DatasetNotFoundError):
            load_dataset("mini")
        assert load_dataset("mini", download=True, base_url=f"{server.address}/plan").name == "mini"
        assert server.ranges[1][0] == f"bytes={half}-"
        assert (folder / FIRST).read_bytes() == whole
        assert len(list(folder.iterdir())) == 4

    def test_of_two_processes_the_second_waits(self, server, no_folders, monkeypatch):
        server.plan = ["stall"]
        folder = no_folders / "cache" / "usimul" / "mini"
        said = []

        def say(text):
            said.append(text)
            server.go_on.set()

        monkeypatch.setattr("usimul.datasets.download.say", say)
        process = fetching_process(f"{server.address}/plan")
        try:
            until((folder / PART).is_file, process)
            assert load_dataset("mini", download=True, base_url=f"{server.address}/plan").name == "mini"
            assert process.communicate(timeout=60)[0].strip() == str(folder)
        finally:
            process.kill()
            process.communicate()
        assert said == [f"Another process fetches into {folder}; waiting for it."]
        # Each file crossed the line once, and no lock is left.
        assert sorted(server.asked) == sorted(f"{name}.gz" for name in server.contents)
        assert sorted(p.name for p in folder.iterdir()) == sorted(server.asked)

    def test_many_at_once(self, server, no_folders):
        address, results = f"{server.address}/fine", []

        def fetch():
            results.append(download_dataset("mini", base_url=address))

        threads = [threading.Thread(target=fetch) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(results) == 6
        assert len(server.asked) == 4
        assert load_dataset("mini").name == "mini"

    def test_without_locks_each_process_has_its_own_part(self, server, no_folders, monkeypatch):
        monkeypatch.setattr("fcntl.flock", lambda *args: (_ for _ in ()).throw(OSError(errno.ENOSYS, "no locks")))
        server.plan = ["half", "gone"]
        folder = no_folders / "cache" / "usimul" / "mini"
        with pytest.raises(DownloadError, match="404"):
            load_dataset("mini", download=True, base_url=f"{server.address}/plan")
        assert list(folder.iterdir()) == []
        assert load_dataset("mini", download=True, base_url=f"{server.address}/plan").name == "mini"
        assert len(list(folder.iterdir())) == 4

    def test_no_server(self, mini, no_folders):
        with http.server.HTTPServer(("127.0.0.1", 0), Handler) as closed:
            port = closed.server_port
        with pytest.raises(DownloadError, match=f"Cannot fetch http://127.0.0.1:{port}/train.*refused"):
            load_dataset("mini", download=True, base_url=f"http://127.0.0.1:{port}")

    def test_folder_that_cannot_be_made(self, mini, no_folders):
        (no_folders / "file").write_text("in the way")
        with pytest.raises(DownloadError, match=r"Cannot make the folder .*Pass a folder="):
            load_dataset("mini", download=True, folder=no_folders / "file")

    def test_other_kinds_of_address_are_refused(self, mini, no_folders):
        with pytest.raises(InputError, match=r"must start with http://, https://, or file://\. Got 'ftp://x'"):
            load_dataset("mini", download=True, base_url="ftp://x")

    def test_sets_without_files_have_nothing_to_fetch(self):
        assert download_dataset("breast_cancer") is None


class TestTable:
    @pytest.mark.parametrize("name", dataset_names())
    def test_records_are_complete(self, name):
        record = get_record(name)
        assert record.name == name
        for field in ("title", "summary", "source", "licence", "citation"):
            assert getattr(record, field)
        assert bool(record.make) != bool(record.editions)
        assert bool(record.editions) == bool(record.tasks)
        for task in record.tasks:
            assert "+1" in task.classes
            assert "-1" in task.classes
            assert task.origin
            assert not set(task.positive) & set(task.negative)
            assert set(task.positive) | set(task.negative) <= set(range(len(record.class_names)))
        for edition in record.editions:
            assert not edition.files or edition.can_be_fetched or edition.by_hand
            for file in edition.files:
                assert file.sha256 is None or len(file.sha256) == 64
                assert file.n_bytes is None or file.n_bytes > 0

    def test_names_are_unique(self):
        assert len(set(dataset_names())) == len(dataset_names()) >= 5

    @pytest.mark.parametrize(
        ("arguments", "options", "error", "message"),
        [
            (("mnits",), {}, InputError, "Did you mean 'mnist'"),
            ((3,), {}, InputTypeError, "`name` must be one of"),
            (("digits",), {"prior": 0.3}, InputError, "'digits' takes no further options. Got 'prior'"),
            (("gaussians",), {"distence": 3}, InputError, "`option` must be one of.*Did you mean 'distance'"),
            (("digits",), {"random_state": -1}, InputError, "`random_state` must be at least 0"),
        ],
    )
    def test_bad_arguments_are_refused(self, arguments, options, error, message):
        with pytest.raises(error, match=message):
            load_dataset(*arguments, **options)

    def test_importing_is_light(self):
        code = (
            "import sys, usimul.datasets;"
            "print({'torch', 'sklearn', 'scipy', 'tqdm', 'urllib.request'} & set(sys.modules))"
        )
        source = str(Path(datasets_module.__file__).parents[2])
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": source}
        )
        assert (done.returncode, done.stdout.strip()) == (0, "set()"), done.stderr


@needs_data
@pytest.mark.data
class TestRealFiles:
    # Class counts as published; data/README.md of the project lists them.
    counts: ClassVar = {
        "mnist": (
            [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
            [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
        ),
        "fashion_mnist": ([6000] * 10, [1000] * 10),
    }
    # The well-known MD5 sums of the unpacked files: an independent check of our SHA-256 sums.
    md5: ClassVar = {
        ("mnist", "train-images-idx3-ubyte"): "6bbc9ace898e44ae57da46a324031adb",
        ("mnist", "train-labels-idx1-ubyte"): "a25bea736e30d166cdddb491f175f624",
        ("mnist", "t10k-images-idx3-ubyte"): "2646ac647ad5339dbf082846283269ea",
        ("mnist", "t10k-labels-idx1-ubyte"): "27ae3e4e09519cfbb04c329615203637",
        ("fashion_mnist", "train-images-idx3-ubyte"): "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        ("fashion_mnist", "t10k-images-idx3-ubyte"): "8181f5470baa50b63fa0f6fddb340f0a",
    }

    @pytest.mark.parametrize("record", [MNIST, FASHION_MNIST], ids=lambda record: record.name)
    def test_files_have_the_recorded_sums_and_counts(self, record):
        edition, paths = find_files(record)
        for file in edition.files:
            assert content_sha256(paths[file.name], limit=file.n_bytes) == (file.sha256, file.n_bytes)
        for prefix, expected in zip(("train", "t10k"), self.counts[record.name], strict=True):
            labels = read_idx(paths[f"{prefix}-labels-idx1-ubyte"], n_dimensions=1, dtype=np.uint8)
            assert np.bincount(labels).tolist() == expected

    @pytest.mark.parametrize(("name", "file"), sorted(md5))
    def test_files_have_the_published_md5(self, name, file):
        path = find_files(RECORDS[name])[1][file]
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        assert hashlib.md5(raw).hexdigest() == self.md5[name, file]

    @pytest.mark.parametrize(("name", "share"), [("mnist", 29_492 / 60_000), ("fashion_mnist", 0.5)])
    def test_loaded_set(self, name, share):
        data = load_dataset(name)
        assert data.X_train.shape == (60_000, 784)
        assert data.X_test.shape == (10_000, 784)
        assert data.X_train.min() == 0.0
        assert data.X_train.max() == 1.0
        assert data.image_shape == (1, 28, 28)
        assert data.prior == pytest.approx(share, abs=1e-12)

    def test_one_set_is_not_taken_for_another(self):
        folder = find_files(MNIST)[1]["train-images-idx3-ubyte"].parent
        with pytest.raises(FileFormatError, match="SHA-256"):
            load_dataset("fashion_mnist", folder=folder)
