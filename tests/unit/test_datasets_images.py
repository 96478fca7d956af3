"""Image sets: real files against published counts, and a miniature of every published format, whole and damaged."""

import dataclasses
import gzip
import hashlib
import io
import lzma
import os
import pickle
import struct
import tarfile
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from usimul.datasets import RECORDS, DatasetNotFoundError, DownloadError, download_dataset, load_dataset, read_raw
from usimul.datasets.checksums import check_file
from usimul.datasets.download import find_files
from usimul.datasets.folders import list_images, read_images
from usimul.datasets.packed import decode_pixels, encode_pixels, flatten_images, load_packed
from usimul.datasets.records import DataFile
from usimul.datasets.unpickle import load_plain_pickle
from usimul.validation import FileFormatError


def needs(name, edition):
    """Skip without the real files of an edition."""
    try:
        find_files(RECORDS[name], edition=edition)
        missing = False
    except DatasetNotFoundError:
        missing = True
    reason = f"set USIMUL_DATA to a folder with the files of {name}, edition {edition}"
    return (pytest.mark.data, pytest.mark.skipif(missing, reason=reason))


def sha256(raw):
    return hashlib.sha256(raw).hexdigest()


@pytest.fixture
def enter(monkeypatch, tmp_path):
    """Put a record with one edition into the table, with the sums of the files that lie in tmp_path/mini."""

    def put(record, edition, **changes):
        chosen = next(e for e in record.editions if e.name == edition)
        files = []
        for file in chosen.files:
            path = tmp_path / "mini" / file.published_name
            raw = path.read_bytes() if path.is_file() else b""
            sums = {"sha256": sha256(raw)} if file.sha256 and not file.gz else {}
            sums |= {"packed_sha256": sha256(raw)} if file.packed_sha256 else {}
            sums |= {"md5": hashlib.md5(raw).hexdigest()} if file.md5 else {}
            files.append(DataFile(file.name, gz=file.gz, folder=file.folder, **sums))
        chosen = dataclasses.replace(chosen, files=tuple(files), **changes)
        monkeypatch.setitem(RECORDS, "mini", dataclasses.replace(record, name="mini", editions=(chosen,)))
        return tmp_path

    (tmp_path / "mini").mkdir()
    return put


def load(root, **options):
    return load_dataset("mini", folder=root, **options)


def raw_of(root):
    return read_raw("mini", folder=root)[1]


def random_images(n, channels, height, width, seed=0):
    """Bytes ``(n, channels, height, width)`` without any symmetry that could hide a swapped axis."""
    return np.random.default_rng(seed).integers(0, 256, (n, channels, height, width), dtype=np.uint8)


# --- residuals and archives ---------------------------------------------------------------------------------------


def plain_decode(delta):
    """One value at a time, from the description of the format."""
    n, _, height, width = delta.shape
    x = np.zeros((n, height, width, 3), dtype=np.uint8)
    for image in range(n):
        planes = [[[0] * width for _ in range(height)] for _ in range(3)]
        for k in range(3):
            for i in range(height):
                for j in range(width):
                    a = planes[k][i][j - 1] if j else 0
                    b = planes[k][i - 1][j] if i else 0
                    c = planes[k][i - 1][j - 1] if i and j else 0
                    planes[k][i][j] = (int(delta[image, k, i, j]) + sorted((a, b, a + b - c))[1]) % 256
        for i in range(height):
            for j in range(width):
                g, rg, bg = (planes[k][i][j] for k in range(3))
                x[image, i, j] = ((rg + g - 128) % 256, g, (bg + g - 128) % 256)
    return x


def archive(path, *, pack=bytes, **fields):
    """Write an archive; sha256_x is right unless given."""
    x = fields.get("x")
    if x is None and "delta" in fields and "sha256_x" not in fields:
        x = plain_decode(fields["delta"])
    if "sha256_x" not in fields and x is not None:
        fields["sha256_x"] = sha256(np.ascontiguousarray(x).tobytes())
    fields = {k: v for k, v in fields.items() if v is not None}
    stream = io.BytesIO()
    np.savez_compressed(stream, **fields)
    path.write_bytes(pack(stream.getvalue()))
    return path


class TestPacked:
    delta = random_images(3, 3, 4, 5)

    def test_decoding_matches_plain_loops(self, monkeypatch):
        monkeypatch.setattr("usimul.datasets.packed._BLOCK", 2)
        np.testing.assert_array_equal(decode_pixels(self.delta), plain_decode(self.delta))

    def test_encoding_is_the_inverse(self):
        images = plain_decode(self.delta)
        np.testing.assert_array_equal(encode_pixels(images), self.delta)

    @pytest.mark.parametrize("pack", [bytes, lzma.compress], ids=["plain", "xz"])
    @pytest.mark.parametrize("form", ["x", "delta"])
    def test_every_form_of_archive(self, pack, form, tmp_path):
        images = plain_decode(self.delta)
        stored = {"x": images} if form == "x" else {"delta": self.delta}
        path = archive(tmp_path / "any-name", pack=pack, y=np.array([4, 5, 6]), **stored)
        fields = load_packed(path, "y")
        np.testing.assert_array_equal(fields["x"], images)
        assert fields["y"].tolist() == [4, 5, 6]

    def test_rows_have_channels_first(self):
        images = plain_decode(self.delta)
        assert [images[1, i, j, k] for k in range(3) for i in range(4) for j in range(5)] == flatten_images(images)[
            1
        ].tolist()

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"sha256_x": "0" * 64}, "expected pixels with SHA-256 0000.*The file is damaged"),
            ({"sha256_x": None, "x": None}, r"sha256_x, y; x, sha256_x not found among y"),
            ({"y": None}, "y not found among x, sha256_x"),
            ({"y": np.zeros(2)}, r"expected 3 values of `y`, one for each image, found shape \(2,\)"),
            ({"x": np.zeros((3, 4, 5, 3))}, "expected `x` as uint8 of shape .* found float64"),
            ({"x": np.zeros((3, 4), dtype=np.uint8)}, r"found uint8 \(3, 4\)"),
            ({"x": None, "delta": np.zeros((3, 1, 4, 5), dtype=np.uint8), "sha256_x": "0"}, r"`delta`.*\(3, 1, 4, 5\)"),
        ],
    )
    def test_other_content_is_refused(self, fields, message, tmp_path):
        path = archive(tmp_path / "a.npz", **{"x": plain_decode(self.delta), "y": np.zeros(3), **fields})
        with pytest.raises(FileFormatError, match=message) as caught:
            load_packed(path, "y")
        assert str(path) in str(caught.value)

    @pytest.mark.parametrize("damage", ["cut", "cut xz", "flipped", "empty", "no zip", "objects", "other member"])
    def test_damaged_files_are_refused(self, damage, tmp_path):
        whole = archive(tmp_path / "whole", x=random_images(20, 4, 5, 3), y=np.arange(20)).read_bytes()
        if damage == "objects":
            marker = tmp_path / "marker"
            objects = np.array([Evil(f"touch {marker}")], dtype=object)
            raw = archive(tmp_path / "a", x=random_images(1, 4, 5, 3), y=objects).read_bytes()
        elif damage == "other member":
            import zipfile

            with zipfile.ZipFile(tmp_path / "a", "w") as made:
                made.writestr("x.npy", b"no array")
            raw = (tmp_path / "a").read_bytes()
        else:
            raw = {
                "cut": whole[: len(whole) // 2],
                "cut xz": lzma.compress(whole)[:-20],
                "flipped": whole[:200] + bytes([whole[200] ^ 255]) + whole[201:],
                "empty": b"",
                "no zip": b"<html>please log in</html>",
            }[damage]
        path = tmp_path / "broken.npz"
        path.write_bytes(raw)
        with pytest.raises(FileFormatError, match=r"expected a whole \.npz file.*Get it again") as caught:
            load_packed(path, "y")
        assert str(path) in str(caught.value)
        assert not (tmp_path / "marker").exists()


class TestCheckFile:
    raw = b"content"

    @pytest.mark.parametrize(
        ("name", "file", "checked"),
        [
            ("a", DataFile("a", sha256="0" * 64), True),
            ("a", DataFile("a", md5="0" * 32), True),
            ("a", DataFile("a", packed_sha256="0" * 64), True),
            ("a", DataFile("a"), False),
            ("a.gz", DataFile("a", gz=True, packed_sha256="0" * 64), True),
            ("a", DataFile("a", gz=True, packed_sha256="0" * 64), False),
            ("a.gz", DataFile("a", gz=True, sha256="0" * 64), False),
        ],
    )
    def test_which_sum_is_compared(self, name, file, checked, tmp_path):
        path = tmp_path / name
        path.write_bytes(self.raw)
        if not checked:
            check_file(path, file)
            return
        with pytest.raises(
            FileFormatError, match=r"expected a file with (SHA-256|MD5) 0+, found 7 bytes with"
        ) as caught:
            check_file(path, file)
        assert str(path) in str(caught.value)

    def test_right_sums_pass(self, tmp_path):
        (tmp_path / "a").write_bytes(self.raw)
        check_file(tmp_path / "a", DataFile("a", sha256(self.raw)))
        check_file(tmp_path / "a", DataFile("a", md5=hashlib.md5(self.raw).hexdigest()))


# --- pickles ------------------------------------------------------------------------------------------------------


class Evil:
    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


class Python2Pickler(pickle._Pickler):
    """Writes text and bytes as Python 2 wrote its strings, like the published files."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)

    def save_string(self, value):
        raw = value.encode("latin1") if isinstance(value, str) else value
        short = struct.pack("<BB", ord("U"), len(raw)) if len(raw) < 256 else b"T" + struct.pack("<i", len(raw))
        self.write(short + raw)
        self.memoize(value)

    dispatch[str] = save_string
    dispatch[bytes] = save_string


def python2_pickle(value):
    stream = io.BytesIO()
    Python2Pickler(stream, protocol=2).dump(value)
    # The name of the module when the files were made.
    return stream.getvalue().replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")


class TestUnpickle:
    array = np.arange(12, dtype=np.uint8).reshape(3, 4)

    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize(
        "dump", [python2_pickle, lambda v: pickle.dumps(v, 2), lambda v: pickle.dumps(v, 4)], ids=["py2", "2", "4"]
    )
    def test_plain_content(self, dump, order):
        value = {b"data": np.array(self.array, order=order), b"labels": [3, 250, 70_000], b"batch_label": b"one"}
        found = load_plain_pickle(dump(value), "a file")
        np.testing.assert_array_equal(found["data"], self.array)
        assert found["data"].dtype == np.uint8
        assert (found["labels"], found["batch_label"]) == ([3, 250, 70_000], b"one")

    def test_python_2_pickle_is_one(self):
        raw = python2_pickle({b"data": self.array})
        assert raw.startswith(b"\x80\x02}q\x00U\x04data")
        assert b"numpy.core.multiarray" in raw
        assert b"_codecs" not in raw

    @pytest.mark.parametrize(
        ("raw", "name"),
        [
            (b"cposix\nsystem\n(S'exit 1'\ntR.", "posix.system"),
            (b"c__builtin__\neval\n(S'1'\ntR.", "__builtin__.eval"),
            (b"cbuiltins\neval\n(S'1'\ntR.", "builtins.eval"),
            (b"\x80\x04\x8c\x08builtins\x8c\x04exec\x93.", "builtins.exec"),
            (b"cnumpy\nload\n.", "numpy.load"),
            (b"cnumpy\nndarray.tofile\n.", "numpy.ndarray.tofile"),
            (b"cusimul.datasets.unpickle\nnp.load\n.", "usimul.datasets.unpickle.np.load"),
            (b"(ios\nsystem\n.", "os.system"),
        ],
    )
    def test_foreign_names_are_refused_by_name(self, raw, name):
        with pytest.raises(FileFormatError, match=f"a file: .*asks for {name}. Unpickling it could run foreign code"):
            load_plain_pickle(raw, "a file")

    def test_nothing_runs(self, tmp_path):
        marker = tmp_path / "marker"
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(FileFormatError, match=r"asks for posix\.system"):
                load_plain_pickle(pickle.dumps({b"data": Evil(f"touch {marker}")}, protocol), "a file")
        assert not marker.exists()

    @pytest.mark.parametrize(
        "raw",
        [
            b"",
            b"no pickle at all",
            pickle.dumps({b"data": array}, 2)[:-10],
            pickle.dumps([1, 2], 2),
            pickle.dumps({b"data": np.zeros(3)}, 2),
            pickle.dumps({b"data": np.array([{}], dtype=object)}, 2),
            pickle.dumps({b"data": array}, 2).replace(b"K\x03K\x04\x86", b"K\x03K\x05\x86"),
            # Another codec than the one that pickles use.
            b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R.",
            # State for a stand-in itself, which would change what later pickles meet.
            b"\x80\x02cnumpy\nndarray\nN}X\x05\x00\x00\x00statesK\x01s\x86b.",
            b"\x80\x02c_codecs\nencode\nN}X\x01\x00\x00\x00aK\x01s\x86b.",
            b"\x80\x02Pid\n.",
        ],
    )
    def test_damaged_and_other_pickles_are_refused(self, raw):
        with pytest.raises(FileFormatError, match="a file: expected a whole pickle"):
            load_plain_pickle(raw, "a file")
        np.testing.assert_array_equal(load_plain_pickle(pickle.dumps({"a": self.array}, 2), "")["a"], self.array)


# --- Kuzushiji-MNIST ----------------------------------------------------------------------------------------------


def write_idx(path, array):
    header = struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    raw = header + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


class TestKmnist:
    record = RECORDS["kmnist"]
    images = random_images(20, 1, 2, 3)[:, 0]
    labels = np.array([1, 0, 1, 0, 1, 0, 0, 1, 1, 0] * 2, dtype=np.uint8)

    @pytest.fixture
    def root(self, enter, tmp_path):
        for prefix in ("train", "t10k"):
            write_idx(tmp_path / "mini" / f"{prefix}-images-idx3-ubyte.gz", self.images)
            write_idx(tmp_path / "mini" / f"{prefix}-labels-idx1-ubyte.gz", self.labels)
        return enter(self.record, "official")

    def test_official(self, root):
        data = load(root)
        np.testing.assert_array_equal(data.X_train, self.images.reshape(20, 6).astype(np.float32) / np.float32(255))
        assert (data.image_shape, data.measured_on) == ((1, 2, 3), "Kuzushiji-MNIST, 20 / 20")

    def test_packed_sums_are_compared(self, root):
        write_idx(root / "mini" / "train-images-idx3-ubyte.gz", self.images[::-1])
        with pytest.raises(FileFormatError, match=r"train-images-idx3-ubyte\.gz: expected a file with SHA-256"):
            load(root)

    def test_unpacked_files_are_read_without_a_sum(self, root):
        for path in sorted((root / "mini").iterdir()):
            path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
            path.unlink()
        assert load(root).X_train.shape == (20, 6)

    def test_damaged_file(self, enter, root):
        path = root / "mini" / "t10k-labels-idx1-ubyte.gz"
        path.write_bytes(path.read_bytes()[:-5])
        enter(self.record, "official")
        with pytest.raises(FileFormatError, match=r"t10k-labels-idx1-ubyte\.gz: expected a whole gzip file"):
            load(root)

    def test_test_part_takes_the_first_four_fifths_of_each_class(self, enter, root):
        enter(self.record, "test-part")
        raw = raw_of(root)
        train, test, seen = [], [], {0: 0, 1: 0}
        for row, label in enumerate(self.labels.tolist()):
            (train if seen[label] < 8 else test).append(row)
            seen[label] += 1
        assert raw.n_train == len(train) == 16
        np.testing.assert_array_equal(raw.X, self.images.reshape(20, 6)[train + test])
        np.testing.assert_array_equal(raw.classes, self.labels[train + test])


# --- CIFAR-10 -----------------------------------------------------------------------------------------------------

BATCHES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")


def cifar_batch(seed, n=4):
    labels = np.random.default_rng(seed).permutation(10)[:n].tolist()
    labels[:2] = [3, 9]  # both sides of the task in every batch
    return {
        b"batch_label": b"some batch",
        b"labels": labels,
        b"data": random_images(n, 3, 32, 32, seed).reshape(n, -1),
        b"filenames": [b"a.png"] * n,
    }


def add(made, name, raw=b"", **header):
    member = tarfile.TarInfo(name)
    member.size = len(raw)
    for key, value in header.items():
        setattr(member, key, value)
    made.addfile(member, io.BytesIO(raw))


class TestCifar10:
    record = RECORDS["cifar10"]
    batches: ClassVar = {name: cifar_batch(seed) for seed, name in enumerate(BATCHES)}
    pickles: ClassVar = {name: python2_pickle(batch) for name, batch in batches.items()}

    def write_tar(self, root, pickles, extra=()):
        with tarfile.open(root / "mini" / "cifar-10-python.tar.gz", "w:gz") as made:
            add(made, "cifar-10-batches-py", type=tarfile.DIRTYPE)
            for name, raw, header in extra:
                add(made, name, raw, **header)
            # Not in order, as in the published archive.
            for name in sorted(pickles, reverse=True):
                add(made, f"cifar-10-batches-py/{name}", pickles[name])
            add(made, "cifar-10-batches-py/batches.meta", b"not read")

    def write_folder(self, root, pickles):
        (root / "mini" / "cifar-10-batches-py").mkdir(exist_ok=True)
        for name, raw in pickles.items():
            (root / "mini" / "cifar-10-batches-py" / name).write_bytes(raw)

    def check(self, raw):
        np.testing.assert_array_equal(raw.X, np.concatenate([self.batches[name][b"data"] for name in BATCHES]))
        assert raw.classes.tolist() == [k for name in BATCHES for k in self.batches[name][b"labels"]]
        assert (raw.n_train, raw.image_shape) == (20, (3, 32, 32))

    def test_tar(self, enter, tmp_path):
        self.write_tar(tmp_path, self.pickles)
        self.check(raw_of(enter(self.record, "official")))

    def test_folder(self, enter, tmp_path):
        self.write_folder(tmp_path, self.pickles)
        self.check(raw_of(enter(self.record, "official-folder")))

    def test_packed_part(self, enter, tmp_path):
        names = [*BATCHES[:3], "test_batch"]
        for name in names:
            images = self.batches[name][b"data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
            labels = np.array(self.batches[name][b"labels"], dtype=np.uint8)
            archive(
                tmp_path / "mini" / f"{name}.npz.xz",
                pack=lzma.compress,
                delta=encode_pixels(images),
                y=labels,
                sha256_x=sha256(np.ascontiguousarray(images).tobytes()),
            )
        root = enter(self.record, "packed-part")
        np.testing.assert_array_equal(raw_of(root).X, np.concatenate([self.batches[name][b"data"] for name in names]))
        assert load(root).measured_on == "CIFAR-10 batches 1 to 3 and test batch, 12 / 4"
        (root / "mini" / "data_batch_2.npz.xz").write_bytes(b"another file")
        with pytest.raises(FileFormatError, match=r"data_batch_2\.npz\.xz: expected a file with SHA-256"):
            load(root)

    def test_paths_and_links_in_a_tar_do_no_harm(self, enter, tmp_path):
        extra = [
            ("../x", b"outside", {}),
            ("/nowhere/usimul-absolute-x", b"outside", {}),
            ("cifar-10-batches-py/link", b"", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}),
            ("../cifar-10-batches-py/data_batch_1", b"outside", {}),
        ]
        self.write_tar(tmp_path, self.pickles, extra)
        before = sorted(tmp_path.rglob("*")) + sorted(tmp_path.parent.glob("x"))
        self.check(raw_of(enter(self.record, "official")))
        assert sorted(tmp_path.rglob("*")) + sorted(tmp_path.parent.glob("x")) == before
        assert not Path("/nowhere/usimul-absolute-x").exists()

    @pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
    def test_a_link_in_the_place_of_a_batch_is_refused(self, kind, enter, tmp_path):
        pickles = {name: raw for name, raw in self.pickles.items() if name != "data_batch_2"}
        link = ("cifar-10-batches-py/data_batch_2", b"", {"type": kind, "linkname": "cifar-10-batches-py/data_batch_1"})
        self.write_tar(tmp_path, pickles, [link])
        with pytest.raises(
            FileFormatError, match=r"expected cifar-10-batches-py/data_batch_2 as a plain file"
        ) as caught:
            load(enter(self.record, "official"))
        assert "cifar-10-python.tar.gz" in str(caught.value)

    def test_wrong_sum(self, enter, tmp_path):
        self.write_tar(tmp_path, self.pickles)
        root = enter(self.record, "official")
        self.write_tar(tmp_path, {**self.pickles, "data_batch_1": self.pickles["data_batch_2"]})
        with pytest.raises(FileFormatError, match=r"cifar-10-python\.tar\.gz: expected a file with SHA-256"):
            load(root)

    def test_wrong_md5_in_the_folder(self, enter, tmp_path):
        self.write_folder(tmp_path, self.pickles)
        root = enter(self.record, "official-folder")
        self.write_folder(tmp_path, {"data_batch_4": self.pickles["data_batch_1"]})
        with pytest.raises(FileFormatError, match=r"cifar-10-batches-py/data_batch_4: expected a file with MD5"):
            load(root)

    def test_truncated_tar(self, enter, tmp_path):
        self.write_tar(tmp_path, self.pickles)
        path = tmp_path / "mini" / "cifar-10-python.tar.gz"
        whole = path.read_bytes()
        root = enter(self.record, "official")
        for cut in (len(whole) // 2, len(whole) - 1, 100, 0):
            path.write_bytes(whole[:cut])
            with pytest.raises(FileFormatError, match=r"cifar-10-python\.tar\.gz: expected a file with SHA-256"):
                load(root)
        # And with nothing to compare it with.
        for cut in (len(whole) // 2, 100, 0):
            path.write_bytes(whole[:cut])
            with pytest.raises(FileFormatError, match=r"cifar-10-python\.tar\.gz: expected a whole \.tar\.gz file"):
                load(enter(self.record, "official"))

    def test_missing_batches_are_named(self, enter, tmp_path):
        self.write_tar(tmp_path, {name: self.pickles[name] for name in BATCHES[:4]})
        with pytest.raises(FileFormatError, match="data_batch_5, test_batch not found"):
            load(enter(self.record, "official"))

    @pytest.mark.parametrize("edition", ["official", "official-folder"])
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({b"data": np.zeros((4, 784), dtype=np.uint8)}, r"expected a batch of CIFAR-10.*found the entries"),
            (
                {b"labels": None, b"fine_labels": [1] * 4},
                "expected a batch .*found the entries .*fine_labels.*another set",
            ),
            ({b"labels": [1, 2, 3]}, "expected 4 labels from 0 to 9, found 3"),
            ({b"labels": [1, 2, 3, 10]}, "expected 4 labels from 0 to 9"),
            ({b"labels": [1, 2, 3, b"4"]}, "expected 4 labels from 0 to 9"),
        ],
    )
    def test_other_batches_are_refused(self, edition, change, message, enter, tmp_path):
        batch = {k: v for k, v in {**self.batches["data_batch_3"], **change}.items() if v is not None}
        pickles = {**self.pickles, "data_batch_3": python2_pickle(batch)}
        (self.write_tar if edition == "official" else self.write_folder)(tmp_path, pickles)
        with pytest.raises(FileFormatError, match=f"data_batch_3: {message}"):
            load(enter(self.record, edition))

    @pytest.mark.parametrize("edition", ["official", "official-folder"])
    def test_a_malicious_batch_runs_nothing(self, edition, enter, tmp_path):
        marker = tmp_path / "marker"
        evil = pickle.dumps({**self.batches["data_batch_3"], b"labels": Evil(f"touch {marker}")}, 2)
        pickles = {**self.pickles, "data_batch_3": evil}
        (self.write_tar if edition == "official" else self.write_folder)(tmp_path, pickles)
        with pytest.raises(FileFormatError, match=r"data_batch_3: .*asks for posix\.system"):
            load(enter(self.record, edition))
        assert not marker.exists()

    def test_download_compares_the_packed_file(self, enter, tmp_path, monkeypatch):
        self.write_tar(tmp_path, self.pickles)
        enter(self.record, "official", base_url=(tmp_path / "mini").as_uri())
        folder = download_dataset("mini", folder=tmp_path / "cache")
        self.check(raw_of(folder))
        other = tmp_path / "other"
        other.mkdir()
        (other / "cifar-10-python.tar.gz").write_bytes(gzip.compress(b"another file"))
        with pytest.raises(DownloadError, match="not the known file"):
            download_dataset("mini", folder=tmp_path / "cache2", base_url=other.as_uri())

    def test_editions_in_the_order_whole_first(self):
        assert [edition.name for edition in self.record.editions] == ["official", "official-folder", "packed-part"]


# --- SVHN ---------------------------------------------------------------------------------------------------------


class TestSvhn:
    record = RECORDS["svhn"]
    sizes: ClassVar = {"train_32x32.mat": 6, "test_32x32.mat": 4}

    def fields(self, n, **changes):
        # (row, column, channel, image), and 10 for the digit 0, as published.
        X = random_images(n, 3, 32, 32, n).transpose(2, 3, 1, 0)
        y = np.array([[10], [1], [9], [2], [3], [10]][:n], dtype=np.uint8)
        return {k: v for k, v in {"X": X, "y": y, **changes}.items() if v is not None}

    def write(self, root, compress=True, **changes):
        for name, n in self.sizes.items():
            fields = self.fields(n, **(changes if name.startswith("test") else {}))
            savemat(root / "mini" / name, fields, do_compression=compress)

    @pytest.mark.parametrize("compress", [True, False])
    def test_official(self, compress, enter, tmp_path):
        self.write(tmp_path, compress)
        raw = raw_of(enter(self.record, "official"))
        assert (raw.n_train, raw.image_shape) == (6, (3, 32, 32))
        assert raw.classes.tolist() == [0, 1, 9, 2, 3, 0, 0, 1, 9, 2]
        for first, n in ((0, 6), (6, 4)):
            X = self.fields(n)["X"]
            for i in range(n):
                expected = [X[row, column, k, i] for k in range(3) for row in range(32) for column in range(32)]
                assert raw.X[first + i].tolist() == expected

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"y": None}, r"test_32x32\.mat: expected the cropped digits.*found X uint8 \(32, 32, 3, 4\)\."),
            ({"X": None}, r"test_32x32\.mat: .*found y uint8 \(4, 1\)"),
            ({"X": None, "y": None, "z": 1}, r"test_32x32\.mat: .*found neither"),
            ({"X": np.zeros((32, 32, 3, 4))}, "found X float64"),
            ({"X": np.zeros((28, 28, 1, 4), dtype=np.uint8)}, r"found X uint8 \(28, 28, 1, 4\)"),
            ({"y": np.ones((3, 1), dtype=np.uint8)}, r"y uint8 \(3, 1\)"),
            ({"y": np.array([[0], [1], [2], [3]], dtype=np.uint8)}, "expected labels from 1 to 10, found 0 to 3"),
            ({"X": np.array([{"a": 1}], dtype=object)}, "found X object"),
        ],
    )
    def test_other_content_is_refused(self, changes, message, enter, tmp_path):
        self.write(tmp_path, **changes)
        with pytest.raises(FileFormatError, match=message):
            load(enter(self.record, "official"))

    @pytest.mark.parametrize("damage", ["half", "few", "empty", "html", "version 7.3"])
    def test_damaged_files_are_refused(self, damage, enter, tmp_path):
        self.write(tmp_path)
        path = tmp_path / "mini" / "train_32x32.mat"
        whole = path.read_bytes()
        hdf5 = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(400)
        path.write_bytes(
            {
                "half": whole[: len(whole) // 2],
                "few": whole[:130],
                "empty": b"",
                "html": b"<html>gone</html>" * 20,
                "version 7.3": hdf5,
            }[damage]
        )
        with pytest.raises(FileFormatError, match=r"train_32x32\.mat: expected"):
            load(enter(self.record, "official"))

    def test_wrong_sum(self, enter, tmp_path):
        self.write(tmp_path)
        root = enter(self.record, "official")
        self.write(tmp_path, y=np.ones((4, 1), dtype=np.uint8))
        with pytest.raises(FileFormatError, match=r"test_32x32\.mat: expected a file with SHA-256"):
            load(root)


# --- folders of images --------------------------------------------------------------------------------------------

COLOURS = ((220, 30, 30), (30, 200, 40), (30, 40, 210), (240, 240, 240))


def four_corners(size, colours=COLOURS):
    """Red, green; blue, white: any swap of axes or channels shows."""
    width, height = size
    image = Image.new("RGB", size)
    for k, colour in enumerate(colours):
        image.paste(
            colour, (k % 2 * width // 2, k // 2 * height // 2, (k % 2 + 1) * width // 2, (k // 2 + 1) * height // 2)
        )
    return image


def check_corners(row, colours=COLOURS):
    image = row.reshape(3, 64, 64)
    for k, colour in enumerate(colours):
        found = image[:, 16 + 32 * (k // 2), 16 + 32 * (k % 2)]
        assert np.abs(found.astype(int) - colour).max() <= 6


class TestFolders:
    @pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.JPEG"])
    def test_orientation_and_channels(self, name, tmp_path):
        four_corners((224, 224)).save(tmp_path / name, quality=95, subsampling=0)
        check_corners(read_images(list_images(tmp_path))[0])

    def test_crop_takes_the_central_square(self, tmp_path):
        framed = Image.new("RGB", (600, 450), (0, 0, 0))
        framed.paste(four_corners((450, 450)), (75, 0))
        framed.save(tmp_path / "a.png")
        row = read_images([tmp_path / "a.png"], crop=True)[0]
        check_corners(row)
        assert row.reshape(3, 64, 64)[:, 20, 1].tolist() == list(COLOURS[0])
        squeezed = read_images([tmp_path / "a.png"])[0].reshape(3, 64, 64)
        assert squeezed[:, 20, 1].tolist() == [0, 0, 0]

    def test_constant_images_of_every_mode_keep_their_value(self, tmp_path):
        modes = {"grey": Image.new("L", (80, 70), 77), "rgba": Image.new("RGBA", (80, 70), (77, 77, 77, 9))}
        modes["palette"] = Image.new("RGB", (80, 70), (77, 77, 77)).quantize(4)
        modes["sixteen"] = Image.fromarray(np.full((70, 80), 77 * 256 + 200, dtype=np.uint16))
        for name, image in modes.items():
            image.save(tmp_path / f"{name}.png")
        for channels in (1, 3):
            assert (read_images(list_images(tmp_path), channels=channels) == 77).all()

    def test_grey_has_one_channel(self, tmp_path):
        ramp = np.tile(np.arange(64, dtype=np.uint8), (64, 1))
        Image.fromarray(ramp).save(tmp_path / "a.pgm")
        np.testing.assert_array_equal(read_images([tmp_path / "a.pgm"], channels=1)[0], ramp.ravel())

    def test_all_corrupt_images_are_named_at_once(self, tmp_path):
        for name in ("good1", "cut", "good2", "text", "empty"):
            four_corners((100, 100)).save(tmp_path / f"{name}.jpg")
        cut = (tmp_path / "cut.jpg").read_bytes()
        (tmp_path / "cut.jpg").write_bytes(cut[: len(cut) // 2])
        (tmp_path / "text.jpg").write_text("not an image")
        (tmp_path / "empty.jpg").write_bytes(b"")
        with pytest.raises(FileFormatError, match="Expected 5 images, found 3 that cannot be read") as caught:
            read_images(list_images(tmp_path))
        for name in ("cut", "text", "empty"):
            assert str(tmp_path / f"{name}.jpg") in str(caught.value)
        assert "good" not in str(caught.value)

    def test_a_long_list_of_corrupt_images_is_shortened(self, tmp_path):
        for i in range(30):
            (tmp_path / f"{i:02d}.png").write_bytes(b"")
        with pytest.raises(FileFormatError, match=r"found 30 that cannot(.|\n)*\n  and 10 more") as caught:
            read_images(list_images(tmp_path))
        assert str(caught.value).count(".png") >= 20

    def test_damaged_png(self, tmp_path):
        Image.fromarray(random_images(1, 60, 60, 3)[0]).save(tmp_path / "a.png")
        raw = bytearray((tmp_path / "a.png").read_bytes())
        raw[len(raw) // 2] ^= 255
        (tmp_path / "a.png").write_bytes(raw)
        with pytest.raises(FileFormatError, match=r"a\.png"):
            read_images(list_images(tmp_path))

    def test_list_is_sorted_and_without_hidden_and_other_files(self, tmp_path):
        for name in ("b.png", "a.jpg", "._a.jpg", "notes.txt", ".DS_Store"):
            (tmp_path / name).write_bytes(b"")
        (tmp_path / "below").mkdir()
        assert [path.name for path in list_images(tmp_path)] == ["a.jpg", "b.png"]

    def test_empty_folder(self, tmp_path):
        with pytest.raises(FileFormatError, match=r"expected image files \(\.jpg.*found none") as caught:
            list_images(tmp_path)
        assert str(tmp_path) in str(caught.value)


class TestMsld:
    record = RECORDS["msld"]
    names: ClassVar = {
        "Monkey Pox": ("M01_01", "M01_02", "M02_01", "M03_01", "M03_02", *(f"M{k}_01" for k in range(11, 16))),
        "Others": ("NM01_01", "NM02_01", "NM02_02", *(f"NM{k}_01" for k in range(10, 18))),
    }

    @pytest.fixture(params=["Original Images", "Original Images/Original Images"])
    def root(self, request, enter, tmp_path, monkeypatch):
        monkeypatch.setattr("usimul.datasets.msld.COUNTS", (11, 10))
        self.folder = tmp_path / "mini" / request.param
        for folder, names in self.names.items():
            (self.folder / folder).mkdir(parents=True)
            for name in names:
                four_corners((224, 224)).save(self.folder / folder / f"{name}.jpg", quality=95, subsampling=0)
        return enter(self.record, "official")

    def test_official(self, root):
        raw = raw_of(root)
        assert raw.classes.tolist() == [0] * 11 + [1] * 10
        patients = [name.split("_")[0] for name in (*self.names["Others"], *self.names["Monkey Pox"])]
        assert raw.groups.tolist() == [sorted(set(patients)).index(patient) for patient in patients]
        check_corners(raw.X[0])
        for seed in range(5):
            data = load(root, random_state=seed)
            assert not set(data.groups_train) & set(data.groups_test)

    def test_names_without_a_patient_are_refused(self, root):
        path = self.folder / "Others" / "NM01_01.jpg"
        path.rename(path.with_name("image (1).jpg"))
        with pytest.raises(FileFormatError, match=r"image \(1\)\.jpg: expected a name such as M01_01\.jpg"):
            load(root)

    def test_other_counts_are_refused(self, root):
        (self.folder / "Others" / "NM10_01.jpg").unlink()
        with pytest.raises(FileFormatError, match="expected the published class counts 11 10, found 10 10"):
            load(root)

    def test_missing_folder(self, root):
        (self.folder / "Others").rename(self.folder / "Chickenpox")
        with pytest.raises(FileFormatError, match="Others: expected a folder of images"):
            load(root)

    def test_corrupt_images_are_named(self, root):
        for name in ("Others/NM02_01.jpg", "Monkey Pox/M02_01.jpg"):
            (self.folder / name).write_bytes(b"\xff\xd8\xff")
        with pytest.raises(FileFormatError, match=r"found 2 that cannot be read(.|\n)*NM02_01\.jpg(.|\n)*/M02_01\.jpg"):
            load(root)


class TestHam10000:
    record = RECORDS["ham10000"]
    lines: ClassVar = (
        ("HAM_2", "ISIC_0000005", "mel"),
        ("HAM_1", "ISIC_0000004", "nv"),
        ("HAM_1", "ISIC_0000001", "nv"),
        ("HAM_3", "ISIC_0000002", "akiec"),
        ("HAM_4", "ISIC_0000003", "df"),
        ("HAM_5", "ISIC_0000006", "bcc"),
        ("HAM_6", "ISIC_0000007", "bkl"),
        ("HAM_7", "ISIC_0000008", "vasc"),
    )

    def write_metadata(self, root, lines, header="lesion_id,image_id,dx,dx_type,age,sex,localization"):
        text = "\n".join([header, *(f"{','.join(line)},histo,80.0,male,scalp" for line in lines)]) + "\n"
        (root / "mini" / "HAM10000_metadata.csv").write_text(text)

    @pytest.fixture
    def root(self, enter, tmp_path, monkeypatch):
        monkeypatch.setattr("usimul.datasets.ham10000.COUNTS", (1, 1, 1, 1, 1, 2, 1))
        self.write_metadata(tmp_path, self.lines)
        self.folders = [tmp_path / "mini" / f"HAM10000_images_part_{k}" for k in (1, 2)]
        for folder in self.folders:
            folder.mkdir()
        for _, image, _ in self.lines:
            shade = int(image[-1]) * 20
            made = Image.new("RGB", (600, 450), (shade, shade, shade))
            made.save(self.folders[int(image[-1]) % 2] / f"{image}.jpg", quality=95)
        return enter(self.record, "official")

    def test_official(self, root):
        raw = raw_of(root)
        # One image of lesion HAM_1, the first by name; the rest by image.
        assert np.round(raw.X.mean(axis=1) / 20).astype(int).tolist() == [1, 2, 3, 5, 6, 7, 8]
        names = [RECORDS["ham10000"].class_names[k] for k in raw.classes]
        assert names == [
            "melanocytic nevus",
            "actinic keratosis or Bowen's disease",
            "dermatofibroma",
            "melanoma",
            "basal cell carcinoma",
            "benign keratosis",
            "vascular lesion",
        ]
        assert raw.groups.tolist() == [0, 2, 3, 1, 4, 5, 6]
        assert load(root).image_shape == (3, 64, 64)

    def test_missing_images_are_named(self, root):
        for image in ("ISIC_0000002", "ISIC_0000005"):
            next(f / f"{image}.jpg" for f in self.folders if (f / f"{image}.jpg").is_file()).unlink()
        with pytest.raises(FileFormatError, match=r"2 not found: ISIC_0000002\.jpg, ISIC_0000005\.jpg\."):
            load(root)

    def test_corrupt_images_are_named(self, root):
        (self.folders[1] / "ISIC_0000005.jpg").write_bytes(b"no image")
        with pytest.raises(FileFormatError, match=r"Expected 7 images, found 1 .*\n.*ISIC_0000005\.jpg"):
            load(root)

    def test_unknown_diagnosis(self, root):
        self.write_metadata(root, [*self.lines[:3], ("HAM_9", "ISIC_9", "scc"), *self.lines[4:]])
        with pytest.raises(FileFormatError, match=r"HAM10000_metadata\.csv: line 5: expected a diagnosis.*found 'scc'"):
            load(root)

    def test_missing_columns(self, root):
        self.write_metadata(root, self.lines, header="lesion,image_id,dx")
        with pytest.raises(
            FileFormatError, match=r"HAM10000_metadata\.csv: expected the columns .* found lesion, image"
        ):
            load(root)

    def test_truncated_metadata(self, root):
        path = root / "mini" / "HAM10000_metadata.csv"
        whole = path.read_text()
        path.write_text(whole[: whole.index("ISIC_0000006")])
        with pytest.raises(FileFormatError, match=r"HAM10000_metadata\.csv: line 7: expected a diagnosis.*found None"):
            load(root)
        path.write_text(whole[: whole.index("HAM_5")])
        with pytest.raises(FileFormatError, match=r"HAM10000_metadata\.csv: expected the published class counts"):
            load(root)


class TestMias:
    record = RECORDS["mias"]
    # The form of the published list: text first, several lines for one film, a line without a place.
    info = (
        "THE MINI-MIAS DATABASE\r\n\r\nmdb059 and mdb212 have no place\r\nREFNUM BG CLASS SEVERITY X Y RADIUS\r\n"
        "mdb001 G CIRC B 535 425 197\r\nmdb002 D NORM \r\nmdb003 F CIRC B 477 133 30\r\nmdb003 F SPIC M 500 168 26\r\n"
        "mdb004 F CALC B\r\nmdb005 G NORM\r\nmdb006 G MISC M 1 2 *NOTE 3*\r\nmdb007 G NORM\r\nmdb008 G NORM\r\n"
    )

    @pytest.fixture
    def root(self, enter, tmp_path, monkeypatch):
        monkeypatch.setattr("usimul.datasets.mias.COUNTS", (4, 2, 2))
        self.folder = tmp_path / "mini" / "all-mias"
        self.folder.mkdir()
        (self.folder / "Info.txt").write_text(self.info, newline="")
        for film in range(1, 9):
            Image.new("L", (1024, 1024), film * 20).save(self.folder / f"mdb{film:03d}.pgm")
        return enter(self.record, "official")

    def test_official(self, root):
        raw = raw_of(root)
        assert raw.classes.tolist() == [1, 0, 2, 1, 0, 2, 0, 0]
        assert raw.groups.tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
        assert raw.image_shape == (1, 64, 64)
        assert [set(row.tolist()) for row in raw.X] == [{film * 20} for film in range(1, 9)]
        data = load(root)
        assert not set(data.groups_train) & set(data.groups_test)

    def test_missing_and_damaged_films_are_named(self, root):
        (self.folder / "mdb002.pgm").unlink()
        (self.folder / "mdb005.pgm").write_bytes((self.folder / "mdb005.pgm").read_bytes()[:5000])
        with pytest.raises(FileFormatError, match=r"found 2 that cannot be read:\n.*mdb002\.pgm.*\n.*mdb005\.pgm"):
            load(root)

    def test_truncated_list(self, root):
        (self.folder / "Info.txt").write_text(self.info[:-40])
        with pytest.raises(FileFormatError, match=r"Info\.txt: expected the published class counts 4 2 2"):
            load(root)

    def test_no_list(self, root):
        (self.folder / "Info.txt").unlink()
        with pytest.raises(FileFormatError, match=r"Info\.txt: expected the list of films"):
            load(root)


class TestDdsm:
    record = RECORDS["ddsm"]

    @pytest.fixture
    def root(self, enter, tmp_path):
        for side in ("positive", "negative"):
            (tmp_path / "mini" / side).mkdir()
            for patient in range(6):
                for view in ("left_CC.png", "right_MLO.jpg"):
                    name = f"{side[0]}{patient}_{view}"
                    Image.new("L", (90, 140), 200 if side == "positive" else 20).save(tmp_path / "mini" / side / name)
        return enter(self.record, "folder")

    def test_folder(self, root):
        for seed in range(5):
            data = load(root, random_state=seed)
            assert data.image_shape == (3, 64, 64)
            np.testing.assert_array_equal(data.X_train.mean(axis=1) > 0.5, data.y_train == 1)
            assert not set(data.groups_train) & set(data.groups_test)
            assert len(set(data.groups_train)) + len(set(data.groups_test)) == 12
        assert data.measured_on == "DDSM own selection, 20 / 4"

    def test_a_patient_on_both_sides_stays_together(self, root):
        for path in sorted((root / "mini" / "positive").iterdir()):
            path.rename(path.with_name("n" + path.name[1:]))
        for seed in range(5):
            data = load(root, random_state=seed)
            assert not set(data.groups_train) & set(data.groups_test)

    @pytest.mark.parametrize("prefix", ["", "Mass-Training_"])
    def test_names_of_cbis(self, root, prefix):
        for side in ("positive", "negative"):
            for path in sorted((root / "mini" / side).iterdir()):
                path.rename(path.with_name(f"{prefix}P_0000{path.name[1:]}"))
        data = load(root)
        assert len(set(data.groups_train)) + len(set(data.groups_test)) == 6
        assert not set(data.groups_train) & set(data.groups_test)

    def test_one_patient(self, root):
        for side in ("positive", "negative"):
            for path in sorted((root / "mini" / side).iterdir()):
                path.rename(path.with_name(f"ddsm_{path.name}"))
        with pytest.raises(FileFormatError, match=r"several patients, found 24 of 'ddsm' alone. A file's name starts"):
            load(root)

    def test_empty_folder(self, root):
        for path in (root / "mini" / "negative").iterdir():
            path.unlink()
        with pytest.raises(FileFormatError, match="negative: expected image files"):
            load(root)

    def test_where_to_get_it(self, tmp_path):
        with pytest.raises(DatasetNotFoundError, match=r"cancerimagingarchive\.net/collection/cbis-ddsm"):
            load_dataset("ddsm", folder=tmp_path)
        with pytest.raises(DownloadError, match="cannot be fetched by this program"):
            load_dataset("ddsm", folder=tmp_path, download=True)


# --- real files ---------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Expected:
    """What data/README.md of the project says of a set."""

    name: str
    edition: str
    image_shape: tuple
    counts: list
    share: float
    measured_on: str
    sizes: tuple | None = None


REAL = [
    Expected(
        *("kmnist", "test-part", (1, 28, 28), [1000] * 10, 0.5),
        measured_on="Kuzushiji-MNIST test part, 8,000 / 2,000",
        sizes=(8000, 2000),
    ),
    Expected(
        *("svhn", "packed-part", (3, 32, 32), [339, 988, 775, 561, 496, 450, 381, 376, 316, 318], 0.461),
        measured_on="SVHN test part, 4,000 / 1,000",
        sizes=(4000, 1000),
    ),
    Expected(*("msld", "packed", (3, 64, 64), [126, 102], 0.447), measured_on="MSLD, 182 / 46"),
    Expected(
        *("ham10000", "packed-part", (3, 64, 64), [188, 269, 122, 18, 492, 886, 25], 0.475),
        measured_on="HAM10000 part of 2,000 lesions, 1,600 / 400",
    ),
    Expected(*("mias", "packed", (1, 64, 64), [207, 63, 52], 0.357), measured_on="mini-MIAS, 256 / 66"),
    Expected(
        *("mias", "packed-patches", (1, 64, 64), [621, 258, 196], 0.422), measured_on="mini-MIAS patches, 860 / 215"
    ),
]


class TestRealFiles:
    @pytest.mark.parametrize(
        "expected", [pytest.param(e, id=f"{e.name}-{e.edition}", marks=needs(e.name, e.edition)) for e in REAL]
    )
    def test_loaded_set(self, expected):
        edition, raw = read_raw(expected.name, edition=expected.edition)
        n, d = sum(expected.counts), int(np.prod(expected.image_shape))
        assert (raw.X.shape, raw.X.dtype, raw.image_shape) == ((n, d), np.uint8, expected.image_shape)
        assert np.bincount(raw.classes).tolist() == expected.counts
        record = RECORDS[expected.name]
        data = record.build(edition, raw, record.task(None), 0)
        assert data.measured_on == expected.measured_on
        assert float(np.mean(np.concatenate([data.y_train, data.y_test]) == 1)) == pytest.approx(
            expected.share, abs=6e-4
        )
        assert (data.X_train.dtype, data.X_train.min()) == (np.float32, 0.0)
        # No mammogram patch is quite white.
        assert 0.94 < data.X_train.max() <= 1.0
        if expected.sizes is not None:
            assert (len(data.y_train), len(data.y_test)) == expected.sizes
            assert data.groups_train is None
            return
        assert len(data.y_train) + len(data.y_test) == n
        assert len(data.y_test) / n == pytest.approx(0.2, abs=0.01)
        for seed in range(10):
            data = record.build(edition, raw, record.task(None), seed)
            assert not set(data.groups_train) & set(data.groups_test)

    @pytest.mark.slow
    @pytest.mark.parametrize("_", [pytest.param(0, id="packed-part", marks=needs("cifar10", "packed-part"))])
    def test_cifar10(self, _):
        edition, raw = read_raw("cifar10", edition="packed-part")
        counts = [np.bincount(raw.classes[i : i + 10_000]).tolist() for i in range(0, 40_000, 10_000)]
        assert counts == [
            [1005, 974, 1032, 1016, 999, 937, 1030, 1001, 1025, 981],
            [984, 1007, 1010, 995, 1010, 988, 1008, 1026, 987, 985],
            [994, 1042, 965, 997, 990, 1029, 978, 1015, 961, 1029],
            [1000] * 10,
        ]
        # Well-known values of the published batches: the first labels and the first pixel.
        assert raw.classes[:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
        assert raw.classes[30_000:30_005].tolist() == [3, 8, 8, 0, 6]
        assert raw.X[0].reshape(3, 32, 32)[:, 0, 0].tolist() == [59, 62, 63]
        data = RECORDS["cifar10"].build(edition, raw, RECORDS["cifar10"].task(None), 0)
        assert data.measured_on == "CIFAR-10 batches 1 to 3 and test batch, 30,000 / 10,000"
        assert data.X_train.shape == (30_000, 3072)
        assert data.prior == pytest.approx(0.6, abs=2e-3)
        assert float(np.mean(data.y_test == 1)) == 0.6

    @pytest.mark.parametrize("_", [pytest.param(0, id="test-part", marks=needs("kmnist", "test-part"))])
    def test_kmnist_files_have_the_published_md5(self, _):
        folder = find_files(RECORDS["kmnist"], edition="test-part")[1]["t10k-labels-idx1-ubyte"].parent
        md5 = {
            "t10k-images-idx3-ubyte.gz": "5c965bf0a639b31b8f53240b1b52f4d7",
            "t10k-labels-idx1-ubyte.gz": "7320c461ea6c1c855c0b718fb2a4b134",
            "train-labels-idx1-ubyte.gz": "e144d726b3acfaa3e44228e80efcd344",
        }
        files = {file.published_name: file for file in RECORDS["kmnist"].editions[0].files}
        for name, known in md5.items():
            packed = (folder / name).read_bytes()
            assert hashlib.md5(packed).hexdigest() == known
            assert sha256(packed) == files[name].packed_sha256
            assert (sha256(gzip.decompress(packed)), len(gzip.decompress(packed))) == (
                files[name].sha256,
                files[name].n_bytes,
            )

    @pytest.mark.parametrize("_", [pytest.param(0, id="packed-part", marks=needs("svhn", "packed-part"))])
    def test_no_house_is_on_both_sides_of_svhn(self, _):
        path = find_files(RECORDS["svhn"], edition="packed-part")[1]["test_first5000.npz.xz"]
        houses = load_packed(path, "house_number")["house_number"]
        assert not set(houses[:4000].tolist()) & set(houses[4000:].tolist())

    @pytest.mark.parametrize(
        ("name", "edition", "task", "share"),
        [
            pytest.param("kmnist", "test-part", "release", 3 / 5, marks=needs("kmnist", "test-part")),
            pytest.param(
                *(
                    "svhn",
                    "packed-part",
                    "release",
                    (339 + 775 + 496 + 381) / (339 + 775 + 496 + 381 + 988 + 561 + 450),
                ),
                marks=needs("svhn", "packed-part"),
            ),
        ],
    )
    def test_release_tasks(self, name, edition, task, share):
        data = load_dataset(name, edition=edition, task=task)
        assert float(np.mean(np.concatenate([data.y_train, data.y_test]) == 1)) == pytest.approx(share, abs=1e-12)


@pytest.mark.slow
class TestTraining:
    """A few steps of every image network on real images: nothing overflows, every shape fits."""

    @pytest.mark.parametrize(
        ("name", "edition", "model"),
        [
            pytest.param("cifar10", "packed-part", "resnet34", marks=needs("cifar10", "packed-part")),
            pytest.param("svhn", "packed-part", "resnet34", marks=needs("svhn", "packed-part")),
            pytest.param("msld", "packed", "cnn", marks=needs("msld", "packed")),
            pytest.param("ham10000", "packed-part", "cnn", marks=needs("ham10000", "packed-part")),
        ],
    )
    def test_a_few_steps(self, name, edition, model):
        from usimul import WeakClassifier

        record = RECORDS[name]
        found, paths = find_files(record, edition=edition)
        if name == "cifar10":
            # Decoding all four batches takes long; one for each part is enough here.
            found = dataclasses.replace(found, files=(found.files[0], found.files[-1]))
        data = record.build(found, found.read(found, paths), record.task(None), 0)
        rows = np.random.default_rng(0).permutation(len(data.y_train))[:64]
        classifier = WeakClassifier(
            "joint-plain",
            model=model,
            image_shape=data.image_shape,
            epochs=1,
            batch_size=16,
            random_state=0,
        )
        classifier.fit(data.X_train[rows], data.y_train[rows])
        assert np.isfinite(classifier.history_["risk"]).all()
        scores = classifier.decision_function(data.X_test[:32])
        assert scores.shape == (32,)
        assert np.isfinite(scores).all()
        assert np.ptp(scores) > 0
