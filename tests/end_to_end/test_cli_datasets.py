"""``usimul datasets`` and ``usimul sample`` with data sets: what is listed, checked, fetched, shown and drawn."""

import dataclasses
import gzip
import hashlib
import re

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from usimul.cli import main
from usimul.datasets import (
    RECORDS,
    DatasetNotFoundError,
    DatasetRecord,
    Edition,
    RawData,
    Task,
    get_record,
    load_dataset,
)
from usimul.datasets.download import find_files
from usimul.datasets.records import DataFile
from usimul.posterior import fit_posterior, rescale
from usimul.sampling import draw, sample_triplets
from usimul.supervision import Supervision, load_supervision

CLASSES = ("a very long name of a first class, jpqy", "b", "unused")
SHAPE = (3, 40, 20)


def usimul(*args, code=0):
    result = CliRunner().invoke(main, [str(a) for a in args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def refused(*args, match):
    result = usimul(*args, code=2)
    assert "Traceback" not in result.stderr
    assert re.search(match, result.stderr), result.stderr
    return result


def read_toy(edition, paths):
    """Images whose bytes are in one file, and whose classes, each for two points of one patient, are in another."""
    X = np.frombuffer(gzip.decompress(paths["X.bin"].read_bytes()), dtype=np.uint8).reshape(-1, 2400)
    classes = np.frombuffer(paths["classes.bin"].read_bytes(), dtype=np.uint8).astype(np.int64)
    return RawData(X, classes, groups=np.arange(len(X)) // 2, image_shape=SHAPE)


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """A set of colour images with patients, that can be fetched from a folder; a part of it is had by hand."""
    monkeypatch.setenv("USIMUL_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    X = np.random.default_rng(0).integers(0, 256, (60, 2400), dtype=np.uint8).tobytes()
    classes = np.repeat([0, 1, 2], [20, 30, 10]).astype(np.uint8).tobytes()
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "X.bin.gz").write_bytes(gzip.compress(X))
    (mirror / "classes.bin").write_bytes(classes)
    files = (
        DataFile("X.bin", hashlib.sha256(X).hexdigest(), len(X), gz=True),
        DataFile("classes.bin", hashlib.sha256(classes).hexdigest()),
    )
    whole = Edition("official", read_toy, files=files, base_url=mirror.as_uri())
    half = dataclasses.replace(
        whole,
        name="half",
        files=(DataFile("half.bin"), DataFile("photos", folder=True)),
        base_url="",
        by_hand="Ask the authors.",
        part="first half",
    )
    record = DatasetRecord(
        name="toy",
        title="Toy images",
        summary="noise in colour " * 8 + "(60 points)",
        source="a source",
        licence="a licence",
        citation="a citation",
        class_names=CLASSES,
        editions=(whole, half),
        tasks=(
            Task("first", (0,), (1, 2), "+1: a, -1: b and unused", "this test"),
            Task("two", (1,), (0,), "+1: b, -1: a; unused dropped", "this test as well"),
        ),
        note="made of noise",
    )
    monkeypatch.setitem(RECORDS, "toy", record)
    return record


def put_half(folder):
    (folder / "photos").mkdir(parents=True)
    (folder / "photos" / "one.jpg").write_bytes(bytes(1000))
    (folder / "half.bin").write_bytes(bytes(100))


# --- list ---------------------------------------------------------------------------------------------------------


def test_list_fits_a_terminal(toy):
    lines = usimul("datasets").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    for record in RECORDS.values():
        (row,) = [line for line in lines if line.startswith(f"{record.name} ")]
        assert all(task.name in " ".join(lines) for task in record.tasks)
        had = "fetched" if any(e.can_be_fetched for e in record.editions) else "by hand"
        assert (had if record.needs_files else "drawn" if record.make else "built in") in row
        assert " ".join(record.summary.split()) in " ".join(" ".join(lines).split())
    assert usimul("datasets", "list").stdout.splitlines() == lines


def listed(name="toy", *args):
    (row,) = [line for line in usimul("datasets", "list", *args).stdout.splitlines() if line.startswith(f"{name} ")]
    return row


def test_list_looks_at_names_only(toy, tmp_path):
    assert " missing " in listed()
    folder = tmp_path / "data" / "toy"
    put_half(folder)
    assert " part " in listed()
    (folder / "half.bin").unlink()
    assert " incomplete " in listed()
    (folder / "X.bin").write_bytes(b"not at all the file")
    (folder / "classes.bin").write_bytes(b"nor this one")
    assert " here " in listed()
    assert " missing " in listed("toy", "--folder", tmp_path / "elsewhere")


# --- status -------------------------------------------------------------------------------------------------------


def test_status_says_what_is_where(toy, tmp_path):
    assert "toy: missing\n" in usimul("datasets", "status").stdout
    assert "toy: missing\n  Fetch them with `usimul datasets get toy`" in usimul("datasets", "status", "toy").stdout
    assert "digits: needs no files" in usimul("datasets", "status", "digits").stdout
    put_half(tmp_path / "cache" / "usimul" / "toy")
    folder = tmp_path / "data" / "toy"
    folder.mkdir(parents=True)
    (folder / "classes.bin").write_bytes(bytes(60))
    (folder / ".X.bin.gz.part").write_bytes(bytes(123))
    text = usimul("datasets", "status", "toy").stdout
    assert f"  official in {folder}: 1 of 2 files, 60 bytes\n    missing: X.bin.gz\n" in text
    assert "    unfinished: .X.bin.gz.part, 123 bytes; `get` continues it\n" in text
    place = tmp_path / "cache" / "usimul" / "toy"
    assert f"  half (first half) in {place}: 2 files, 1,100 bytes, taken by default\n" in text
    refused("datasets", "status", "tyo", match="Did you mean 'toy'")


def test_status_verifies_sums(toy, tmp_path):
    usimul("datasets", "get", "toy")
    assert "undamaged" in usimul("datasets", "status", "toy", "--verify").stdout
    path = tmp_path / "data" / "toy" / "X.bin.gz"
    content = bytearray(gzip.decompress(path.read_bytes()))
    content[5] ^= 1
    path.write_bytes(gzip.compress(content))
    assert "damaged" not in usimul("datasets", "status", "toy").stdout
    result = usimul("datasets", "status", "--verify", code=1)
    found, known = hashlib.sha256(content).hexdigest(), toy.editions[0].files[0].sha256
    line = f"damaged: {path}: expected 144000 unpacked bytes with SHA-256 {known}, found 144000 bytes with SHA-256 "
    assert line + found in result.stdout
    assert "get them again" in result.stderr
    path.write_bytes(path.read_bytes()[:-20])
    assert "expected a whole gzip file" in usimul("datasets", "status", "toy", "--verify", code=1).stdout


def test_status_reads_what_has_no_sum(toy, monkeypatch):
    usimul("datasets", "get", "toy")
    whole = toy.editions[0]

    def read(edition, paths):
        from usimul.datasets.records import check_counts

        raw = read_toy(edition, paths)
        check_counts(paths["classes.bin"], raw.classes, (20, 30, 10 + len(edition.by_hand)))
        return raw

    for wrong in (False, True):
        files = tuple(dataclasses.replace(file, sha256=None, n_bytes=None) for file in whole.files)
        edition = dataclasses.replace(whole, files=files, read=read, by_hand="x" * wrong)
        monkeypatch.setitem(RECORDS, "toy", dataclasses.replace(toy, editions=(edition,)))
        result = usimul("datasets", "status", "toy", "--verify", code=int(wrong))
        assert ("expected the published class counts 20 30 11, found 20 30 10" in result.stdout) == wrong


# --- get ----------------------------------------------------------------------------------------------------------


def test_get_shows_the_terms_before_and_after(toy, tmp_path):
    result = usimul("datasets", "get", "toy", "--task", "two", "--edition", "official", "--arrays", tmp_path / "arrays")
    before, after = result.stdout.split("training and", 1)
    for words in ("a licence", "a citation"):
        assert words in before
        assert words in after
    data = load_dataset("toy", task="two")
    expected = {f"{name}_{part}": getattr(data, f"{name}_{part}") for name in ("X", "y") for part in ("train", "test")}
    for part in ("train", "test"):
        expected[f"classes_{part}"] = getattr(data, f"original_{part}")
        expected[f"groups_{part}"] = getattr(data, f"groups_{part}")
    assert {path.stem for path in (tmp_path / "arrays").iterdir()} == set(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(np.load(tmp_path / "arrays" / f"{name}.npy"), array)
    again = ["datasets", "get", "toy", "--arrays", tmp_path / "arrays"]
    refused(*again, match="exists already. Choose another name, or pass --overwrite")
    (tmp_path / "arrays" / "y_train.npy").write_bytes(b"old")
    usimul(*again, "--task", "two", "--overwrite")
    np.testing.assert_array_equal(np.load(tmp_path / "arrays" / "y_train.npy"), expected["y_train"])
    refused("datasets", "get", "toy", "--task", "tow", match="Did you mean 'two'")
    refused("datasets", "get", "toy", "--edition", "offical", match="Did you mean 'official'")
    refused("datasets", "get", "gaussians", "--task", "two", match="has no tasks")


def test_get_names_the_whole_set_where_a_part_was_found(toy, tmp_path, monkeypatch):
    half = dataclasses.replace(toy.editions[0], name="half", base_url="", by_hand="Ask.", part="first half")
    monkeypatch.setitem(RECORDS, "toy", dataclasses.replace(toy, editions=(*toy.editions[:1], half)))
    usimul("datasets", "get", "toy")
    assert "This is a part" not in usimul("datasets", "get", "toy").stdout
    files = tuple(dataclasses.replace(file, name=f"new-{file.name}") for file in toy.editions[0].files)
    whole = dataclasses.replace(toy.editions[0], files=files)
    monkeypatch.setitem(RECORDS, "toy", dataclasses.replace(toy, editions=(whole, half)))
    text = usimul("datasets", "get", "toy").stdout
    assert "Toy images first half" in text
    assert "This is a part of the set. The whole: `usimul datasets get toy --edition official`." in text


def test_get_says_how_to_get_by_hand(toy, tmp_path):
    result = refused("datasets", "get", "toy", "--edition", "half", match="'half' of data set 'toy' cannot be fetched")
    assert "Ask the authors." in result.stderr
    assert f"Expected in {tmp_path / 'data' / 'toy'}:\n  half.bin, photos/ (edition 'half')" in result.stderr
    assert "a licence" in result.stdout
    assert not (tmp_path / "data").exists()


# --- describe -----------------------------------------------------------------------------------------------------


def test_describe_counts_original_classes():
    text = usimul("datasets", "describe", "digits", "--seed", 3).stdout
    data = load_dataset("digits", random_state=3)
    for digit in range(10):
        counts = [int(np.sum(part == digit)) for part in (data.original_train, data.original_test)]
        side = "+1" if digit % 2 == 0 else "-1"
        assert re.search(rf"^{digit} +\{side} +{counts[0]} +{counts[1]}$", text, re.MULTILINE)
    record = get_record("digits")
    for words in (record.licence, record.citation, record.tasks[0].origin, data.measured_on, "share of +1: 0.496"):
        assert words in text
    assert "best possible accuracy" in usimul("datasets", "describe", "gaussians").stdout


def test_describe_shows_tasks_editions_and_dropped_classes(toy):
    refused("datasets", "describe", "toy", match="not found. Folders tried")
    usimul("datasets", "get", "toy")
    text = usimul("datasets", "describe", "toy", "--task", "two").stdout
    for words in (
        "unused",
        "dropped",
        "note: made of noise",
        "this test as well",
        "half (first half): Ask the authors.",
    ):
        assert words in text
    assert "dropped\n" not in usimul("datasets", "describe", "toy").stdout.split("tasks:")[0]


def picture_of(path):
    with Image.open(path) as image:
        assert (image.format, image.mode) == ("PNG", "RGB")
        return np.asarray(image)


def check_grid(pixels, data, side):
    """Every row shows images of one class, enlarged; nothing touches the border."""
    from usimul.cli.pictures import GAP, IMAGES, MARGIN

    channels, height, width = data.image_shape
    factor = side // max(height, width)
    for border in (pixels[:MARGIN], pixels[-MARGIN:], pixels[:, :MARGIN], pixels[:, -MARGIN:]):
        assert (border == 255).all()
    classes = np.unique(data.original_train)
    pitch = factor * height + GAP
    first = pixels.shape[0] - MARGIN - len(classes) * pitch + GAP
    left = pixels.shape[1] - MARGIN - IMAGES * (factor * width + GAP) + GAP
    for number, c in enumerate(classes):
        top = first + number * pitch
        tile = pixels[top : top + factor * height, left : left + factor * width]
        small = tile[::factor, ::factor]
        np.testing.assert_array_equal(np.repeat(np.repeat(small, factor, axis=0), factor, axis=1), tile)
        known = np.rint(data.X_train[data.original_train == c].reshape(-1, channels, height, width) * 255)
        known = np.broadcast_to(np.moveaxis(known, 1, 3), (len(known), height, width, 3))
        assert (known == small).all(axis=(1, 2, 3)).any()
        # Between names and images nothing is drawn, so no name reaches into an image.
        assert (pixels[top : top + factor * height, left - GAP : left] == 255).all()
        assert (pixels[top : top + factor * height, MARGIN : left - GAP] < 255).any()


def test_grid_of_digits(tmp_path):
    result = usimul("datasets", "describe", "digits", "--grid", tmp_path / "digits.png")
    assert f"picture: {tmp_path / 'digits.png'}" in result.stdout
    check_grid(picture_of(tmp_path / "digits.png"), load_dataset("digits"), side=64)
    refused("datasets", "describe", "digits", "--grid", tmp_path / "digits.png", match="exists already")
    usimul("datasets", "describe", "digits", "--grid", tmp_path / "digits.png", "--overwrite", "--seed", 1)


def test_grid_of_colour_images_with_long_names(toy, tmp_path):
    usimul("datasets", "get", "toy")
    usimul("datasets", "describe", "toy", "--grid", tmp_path / "toy.png")
    check_grid(picture_of(tmp_path / "toy.png"), load_dataset("toy"), side=80)


@pytest.mark.parametrize("name", ["breast_cancer", "gaussians"])
def test_no_grid_of_numbers(name, tmp_path):
    given = ["datasets", "describe", name, "--grid"]
    refused(*given, tmp_path / "a.png", match="is not made of images, so there is no picture of it. Leave --grid out")
    refused(*given, tmp_path / "a.jpg", match="must end in .png")
    assert not list(tmp_path.iterdir())


# --- sample -------------------------------------------------------------------------------------------------------


def test_sample_from_a_data_set(toy, tmp_path):
    usimul("datasets", "get", "toy")
    data = load_dataset("toy", task="two")
    for part in ("train", "test"):
        given = ["sample", "toy", "--task", "two", "--part", part, "--n", 20, "--unlabeled", 5, "--prior", 0.4]
        for world in ("definition1", "pair_plus_unlabeled"):
            out = tmp_path / f"{part}-{world}.npz"
            result = usimul(*given, "--world", world, "--seed", 2, "-o", out)
            y = getattr(data, f"y_{part}")
            expected = sample_triplets(y, 20, n_unlabeled=5, prior=0.4, world=world, random_state=2)
            assert load_supervision(out) == expected
            assert f"points: X_{part}.npy of `usimul datasets get toy --task two --arrays FOLDER`" in result.stdout
    given = ["-o", tmp_path / "n.npz", "--n", 5]
    refused("sample", "toy", *given, "--positive", 1, match="choose the classes of a data set with --task")
    refused("sample", "tyo", *given, match="neither a file of labels nor a data set.*Did you mean 'toy'")
    np.save(tmp_path / "y.npy", data.y_train)
    refused("sample", tmp_path / "y.npy", *given, "--task", "two", match="--task belongs to data sets")
    refused("sample", "toy", *given, "--posterior", "model", match="--posterior does not belong to --kind triplets")
    assert not (tmp_path / "n.npz").exists()


CONFIDENCES = ("similarity-confidence", "confidence-difference")


@pytest.mark.parametrize("kind", CONFIDENCES)
def test_sample_with_confidences(kind, tmp_path):
    data, cls = load_dataset("gaussians"), Supervision.kinds()[kind]
    np.save(tmp_path / "y.npy", data.y_train)
    np.save(tmp_path / "eta.npy", data.posterior_train)
    given = ["--n", 30, "--kind", kind, "--seed", 4, "--overwrite", "-o", tmp_path / "s.npz", "--posterior"]
    y, eta = data.y_train, data.posterior_train
    for source in ("gaussians", tmp_path / "y.npy"):
        usimul("sample", source, *given, tmp_path / "eta.npy")
        assert load_supervision(tmp_path / "s.npz") == draw(cls, y, 30, posterior=eta, random_state=4)
    usimul("sample", "gaussians", *given, "exact")
    assert load_supervision(tmp_path / "s.npz") == draw(cls, y, 30, posterior=eta, random_state=4)
    # The set is drawn with prior 1/2.
    usimul("sample", "gaussians", *given, "exact", "--prior", 0.3, "--part", "test")
    eta = rescale(data.posterior_test, 0.5, 0.3)
    expected = draw(cls, data.y_test, 30, posterior=eta, prior=0.3, random_state=4)
    assert load_supervision(tmp_path / "s.npz") == expected


def test_sample_with_a_fitted_posterior(tmp_path):
    data = load_dataset("digits")
    given = ["sample", "digits", "--kind", "confidence-difference", "--n", 30, "--prior", 0.4, "--part", "test"]
    usimul(*given, "--posterior", "model", "-o", tmp_path / "s.npz")
    eta = fit_posterior(data.X_test, data.y_test, prior=0.4, image_shape=data.image_shape, random_state=0)
    kind = Supervision.kinds()["confidence-difference"]
    expected = draw(kind, data.y_test, 30, posterior=eta, prior=0.4, random_state=0)
    assert load_supervision(tmp_path / "s.npz") == expected


def test_sample_refuses_posteriors_that_it_cannot_get(tmp_path):
    from usimul.cli.sample import CONFIDENCES as NAMED
    from usimul.sampling import needs_posterior

    assert set(NAMED) == {name for name, kind in Supervision.kinds().items() if kind.sampler and needs_posterior(kind)}
    np.save(tmp_path / "y.npy", [1, -1, 1])
    np.save(tmp_path / "short.npy", [0.5])
    np.save(tmp_path / "words.npy", ["a", "b", "c"])
    given = ["--n", 3, "--kind", "confidence-difference", "-o", tmp_path / "s.npz"]
    refused("sample", "digits", *given, match="pass --posterior FILE.npy")
    refused("sample", "digits", *given, "--posterior", "exact", match="'digits' is not known; pass --posterior model")
    for way in ("exact", "model"):
        refused("sample", tmp_path / "y.npy", *given, "--posterior", way, match=f"--posterior {way} needs a data set")
    for name, match in (("short", "each of 3 points"), ("words", "Got dtype <U1"), ("none", "No such file")):
        refused("sample", tmp_path / "y.npy", *given, "--posterior", tmp_path / f"{name}.npy", match=match)
    assert not (tmp_path / "s.npz").exists()


# --- real files ---------------------------------------------------------------------------------------------------


def real_files(name):
    try:
        return bool(find_files(get_record(name)))
    except DatasetNotFoundError:
        return False


needs_data = pytest.mark.skipif(
    not (real_files("mnist") and real_files("fashion_mnist")),
    reason="set USIMUL_DATA to a folder with mnist/ and fashion_mnist/",
)


@needs_data
@pytest.mark.data
class TestRealFiles:
    def test_status(self):
        text = usimul("datasets", "status", "mnist", "fashion_mnist", "--verify").stdout
        assert text.count("undamaged") >= 2
        assert " here " in listed("mnist")

    def test_describe_and_grid(self, tmp_path):
        text = usimul("datasets", "describe", "fashion_mnist", "--grid", tmp_path / "f.png").stdout
        assert re.search(r"^ankle boot +-1 +6,000 +1,000$", text, re.MULTILINE)
        check_grid(picture_of(tmp_path / "f.png"), load_dataset("fashion_mnist"), side=56)

    def test_sample(self, tmp_path):
        given = ["sample", "mnist", "--task", "even-odd", "--n", 10000, "--unlabeled", 30000, "--prior", 0.4]
        usimul(*given, "-o", tmp_path / "t.npz")
        found = load_supervision(tmp_path / "t.npz")
        assert (found.n_tuples, found.n_unlabeled, found.n_points) == (10_000, 30_000, 60_000)
        y = load_dataset("mnist").y_train
        # Of unlabeled points, five standard errors.
        assert abs(np.mean(y[found.unlabeled] == 1) - 0.4) < 5 * np.sqrt(0.24 / 30_000)
