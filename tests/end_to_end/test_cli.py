"""The command line: round trips, bad input, exit codes, and what ``--help`` may import."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from usimul import export
from usimul.cli import COMMANDS, main
from usimul.datasets import make_gaussians
from usimul.sampling import sample_triplets
from usimul.supervision import load_supervision

HEAVY = ("torch", "sklearn", "scipy", "numpy")


def usimul(*args, code=0, **kwargs):
    result = CliRunner().invoke(main, [str(a) for a in args], **kwargs)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def refused(*args, match):
    """Exit code 2, one readable line, no traceback."""
    result = usimul(*args, code=2)
    lines = [line for line in result.stderr.splitlines() if not line.startswith("warning: ")]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    assert "Traceback" not in result.stderr
    assert re.search(match, lines[0]), lines[0]
    return result


def python(code, *args, **kwargs):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        **kwargs,
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Points, labels, supervision and a trained model on disk."""
    folder = tmp_path_factory.mktemp("files")
    data = make_gaussians(300, 200, prior=0.3, random_state=0)
    for part in ("X_train", "y_train", "X_test", "y_test"):
        np.save(folder / f"{part}.npy", getattr(data, part))
    sample_triplets(data.y_train, 200, n_unlabeled=100, prior=0.3, random_state=0).save(folder / "train.npz")
    sample_triplets(data.y_test, 200, n_unlabeled=100, prior=0.3, random_state=1).save(folder / "test.npz")
    usimul(*train(folder), "-o", folder / "model")
    return folder


def train(folder, points="X_train.npy", supervision="train.npz", prior=0.3, method="usimul-exact-abs"):
    given = ["train", folder / points, folder / supervision, "--method", method, "--model", "linear", "--epochs", 3]
    return given if prior is None else [*given, "--prior", prior]


# --- start-up -----------------------------------------------------------------------------------------------------

HELP = """
import sys
if {block}:
    class Blocker:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] in {heavy}:
                raise ImportError("blocked: " + name)
    sys.meta_path.insert(0, Blocker())
from usimul.cli import main
try:
    main(["--help"])
except SystemExit as stop:
    assert stop.code == 0
loaded = [name for name in {heavy} if name in sys.modules]
assert not loaded, loaded
"""


@pytest.mark.parametrize("block", [False, True])
def test_help_loads_no_numerical_library(block):
    found = python(HELP.format(block=block, heavy=HEAVY))
    assert found.returncode == 0, found.stderr
    for name in COMMANDS:
        assert name in found.stdout


def test_commands_without_training_work_without_torch(files, tmp_path):
    code = HELP.split("from usimul.cli")[0].format(block=True, heavy=("torch", "sklearn", "scipy"))
    code += "from usimul.cli import main\nmain(sys.argv[1:])"
    for args in (
        ["sample", files / "y_train.npy", "-o", tmp_path / "s.npz", "--n", 5],
        ["datasets", "list"],
        ["train", "--help"],
        ["--version"],
    ):
        found = python(code, *args)
        assert found.returncode == 0, found.stderr


def test_every_command_has_help():
    for name in COMMANDS:
        assert "Usage:" in usimul(name, "--help").output


def test_unknown_command_names_the_nearest():
    result = usimul("trian", code=2)
    assert "No such command 'trian'. Did you mean 'train'" in result.stderr


# --- the whole way ------------------------------------------------------------------------------------------------


def test_train_says_what_it_did(files, tmp_path):
    result = usimul(*train(files), "-o", tmp_path / "m")
    for words in ("usimul-exact-abs", "3 trained", "tuples it was trained on", "prior 0.3", "class names", "saved to"):
        assert words in result.stdout


def test_predict_csv_and_npy_agree_with_the_library(files, tmp_path):
    usimul("predict", files / "model", files / "X_test.npy", "-o", tmp_path / "p.csv", "--proba")
    usimul("predict", files / "model", files / "X_test.npy", "-o", tmp_path / "p.npy", "--proba")
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines[0] == "row,label,score,probability"
    table = np.loadtxt(lines[1:], delimiter=",")
    array = np.load(tmp_path / "p.npy")
    clf, X = export.load(files / "model"), np.load(files / "X_test.npy")
    scores = clf.decision_function(X)
    assert np.array_equal(array["score"], scores)
    assert np.array_equal(table[:, 2].astype(np.float32), scores.astype(np.float32))
    for labels in (array["label"], table[:, 1]):
        assert np.array_equal(labels, clf.predict(X))
    assert np.array_equal(array["probability"], clf.predict_proba(X)[:, 1])
    assert np.array_equal(array["row"], np.arange(200))


def test_predict_in_chunks_is_the_same(files, tmp_path, monkeypatch):
    usimul("predict", files / "model", files / "X_test.npy", "-o", tmp_path / "whole.csv")
    monkeypatch.setattr("usimul.points.base.CHUNK_VALUES", 14)
    usimul("predict", files / "model", files / "X_test.npy", "-o", tmp_path / "parts.csv")
    whole, parts = (np.loadtxt(tmp_path / f"{n}.csv", delimiter=",", skiprows=1) for n in ("whole", "parts"))
    assert np.array_equal(whole[:, :2], parts[:, :2])
    np.testing.assert_allclose(whole, parts, rtol=1e-5, atol=1e-6)


def test_evaluate(files):
    points = files / "X_test.npy"
    both = usimul(
        "evaluate", files / "model", points, "--supervision", files / "test.npz", "--labels", files / "y_test.npy"
    )
    for words in ("second-moment", "position-aware", "95% interval", "accuracy", "AUC", "class names"):
        assert words in both.stdout
    clf, y = export.load(files / "model"), np.load(files / "y_test.npy")
    assert f"accuracy           {clf.score(np.load(points), y):.4f}" in both.stdout
    without = usimul("evaluate", files / "model", points, "--supervision", files / "test.npz")
    assert "accuracy" not in without.stdout
    assert "Pass --supervision" in usimul("evaluate", files / "model", points, code=2).stderr


def test_report(files, tmp_path):
    given = ["report", files / "model", files / "X_test.npy", "--supervision", files / "test.npz"]
    page = tmp_path / "r.html"
    found = usimul(*given, "--labels", files / "y_test.npy", "-o", page)
    assert f"the whole report: {page}" in found.stdout
    text = page.read_text()
    assert "Measured on 200 labels" in text
    assert str(tmp_path) not in text
    refused(*given, "-o", page, match="exists already")
    refused(*given, "-o", tmp_path / "r.pdf", match=r"must end in \.html")
    refused(*given, "-o", tmp_path / "none" / "r.html", match="does not exist")
    refused(*given, "--prior", 1.5, "-o", tmp_path / "s.html", match="prior")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.html"]


def test_evaluate_compares_models_and_writes_json(files, tmp_path):
    given = ["evaluate", files / "model", files / "X_test.npy", "--agreement", files / "model"]
    found = usimul(*given, "--json", tmp_path / "e.json")
    assert "1.0000" in found.stdout
    content = json.loads((tmp_path / "e.json").read_text())
    assert content["agreement"][0]["share"] == 1.0
    assert content["calibration"]["kind"] == "none"
    refused(*given, "--json", tmp_path / "e.json", match="exists already")
    refused(*given, "--json", tmp_path / "e.txt", match=r"must end in \.json")
    refused(*given, "--agreement", tmp_path / "no", match="no model folder")


def test_calibrate_wants_one_source_and_a_new_folder(files, tmp_path):
    given = ["calibrate", files / "model", files / "X_test.npy"]
    both = ["--supervision", files / "test.npz", "--labels", files / "y_test.npy"]
    for sources in ([], both):
        assert "Pass either --supervision" in usimul(*given, *sources, "-o", tmp_path / "c", code=2).stderr
    refused(*given, *both[:2], "-o", files / "model", match="exists already")
    np.save(tmp_path / "zeros.npy", np.zeros(200, dtype=int))
    refused(*given, "--labels", tmp_path / "zeros.npy", "-o", tmp_path / "c", match="two classes of the classifier")
    assert not (tmp_path / "c").exists()


def test_evaluate_at_one_half(files, tmp_path):
    y = np.load(files / "y_train.npy")
    sample_triplets(y, 200, n_unlabeled=100, prior=0.5, random_state=0).save(tmp_path / "half.npz")
    given = train(files, prior=0.5, method="supervised")
    usimul("sample", files / "y_train.npy", "-o", tmp_path / "l.npz", "--n", 50, "--prior", 0.5, "--kind", "labels")
    given[2] = tmp_path / "l.npz"
    usimul(*given, "-o", tmp_path / "m")
    found = usimul("evaluate", tmp_path / "m", files / "X_train.npy", "--supervision", tmp_path / "half.npz")
    assert re.search(r"position-aware +not defined at prior 0.5\n", found.stdout)


def test_the_cause_is_told_where_nothing_is_defined(files, tmp_path):
    """At prior 0.5 too: similar pairs without unlabeled points cannot judge at any prior."""
    usimul("sample", files / "y_train.npy", "-o", tmp_path / "l.npz", "--n", 50, "--kind", "labels")
    usimul(
        "sample", files / "y_test.npy", "-o", tmp_path / "sp.npz", "--n", 50, "--kind", "similar-pairs", "--prior", 0.5
    )
    usimul(
        *train(files, supervision="train.npz", prior=None)[:2], tmp_path / "l.npz", *SUPERVISED, "-o", tmp_path / "m"
    )
    given = ["evaluate", tmp_path / "m", files / "X_test.npy", "--supervision", tmp_path / "sp.npz", "--prior", 0.5]
    found = usimul(*given).stdout
    assert "not defined: no unbiased risk is known for this SimilarPairs" in found
    assert "not defined at prior 0.5" not in found


SUPERVISED = ["--method", "supervised", "--model", "linear", "--epochs", 3]


def test_a_prior_that_nobody_stated_is_asked_for(files, tmp_path):
    usimul("sample", files / "y_train.npy", "-o", tmp_path / "l.npz", "--n", 200, "--kind", "labels")
    result = usimul("train", files / "X_train.npy", tmp_path / "l.npz", *SUPERVISED, "-o", tmp_path / "m")
    assert "(prior unknown)" in result.stdout
    given = ["evaluate", tmp_path / "m", files / "X_test.npy"]
    refused(*given, "--supervision", files / "test.npz", match="trained without a prior.*--prior on the command line")
    refused(*given, "--supervision", files / "test.npz", "--prior", 1.5, match=r"`prior` must lie in \(0, 1\)")
    judged = usimul(*given, "--supervision", files / "test.npz", "--prior", 0.3).stdout
    clf, X = export.load(tmp_path / "m"), np.load(files / "X_test.npy")
    risk = clf.weak_risk(X, load_supervision(files / "test.npz"), prior=0.3)
    assert f"second-moment      {risk.value:.4f} +- {risk.standard_error:.4f}" in judged
    assert "accuracy" in usimul(*given, "--labels", files / "y_test.npy").stdout


@pytest.mark.parametrize("prior", ["7", "nan", "-1", "0"])
def test_a_prior_that_is_not_needed_must_be_one(files, tmp_path, prior):
    usimul("sample", files / "y_train.npy", "-o", tmp_path / "l.npz", "--n", 50, "--kind", "labels")
    given = ["train", files / "X_train.npy", tmp_path / "l.npz", *SUPERVISED, "-o", tmp_path / "m", "--prior", prior]
    refused(*given, match=r"`prior` must lie in \(0, 1\)")
    assert not (tmp_path / "m").exists()


@pytest.mark.filterwarnings("default")
def test_evaluate_warns_when_the_answers_contradict_the_prior(files):
    given = ["evaluate", files / "model", files / "X_test.npy", "--supervision", files / "test.npz"]
    assert not usimul(*given).stderr
    found = usimul(*given, "--prior", 0.02)
    assert found.stderr.count("warning: `prior`=0.02 contradicts the supervision: accepted share") == 1
    assert "second-moment" in found.stdout


def test_held_out_risks_are_not_taken_for_estimates(files, tmp_path):
    words = "tuples are made of points that were trained on: judge on new points"
    assert words not in usimul(*train(files), "-o", tmp_path / "m").stdout
    assert words in usimul(*train(files), "--selection", "label-free", "-o", tmp_path / "s").stdout
    assert words in usimul(*train(files, method="auto"), "-o", tmp_path / "a").stdout


def test_names_that_a_biased_risk_decided(files, tmp_path):
    assert "fixed by the training risk" in usimul(*train(files), "-o", tmp_path / "unbiased").stdout
    found = usimul(*train(files, method="usimul-abs"), "-o", tmp_path / "biased").stdout
    assert "they MAY BE WRONG; one labeled point would tell" in found
    assert "fixed by the training risk" not in found


def test_evaluate_on_one_class_leaves_dashes(files, tmp_path):
    np.save(tmp_path / "ones.npy", np.ones(200, dtype=int))
    result = usimul("evaluate", files / "model", files / "X_test.npy", "--labels", tmp_path / "ones.npy")
    assert "AUC                -" in result.stdout


@pytest.mark.parametrize(("bias", "words"), [(1.0, "all points positive"), (-1.0, "all points negative")])
def test_degenerate_predictor_is_called_so(files, tmp_path, bias, words):
    clf = export.load(files / "model")
    layer = clf.module_.body
    layer.weight.data.zero_()
    layer.bias.data.fill_(bias)
    export.save(clf, tmp_path / "m")
    result = usimul("evaluate", tmp_path / "m", files / "X_test.npy", "--labels", files / "y_test.npy")
    assert words in result.stderr
    assert "carries no information" in result.stderr


def test_sample(files, tmp_path):
    np.save(tmp_path / "digits.npy", np.arange(100) % 10)
    given = [tmp_path / "digits.npy", "-o", tmp_path / "s.npz", "--n", 30]
    refused("sample", *given, match=r"must hold both labels.*--positive LABEL; the labels are: 0, 1, 2, .*9\.$")
    np.save(tmp_path / "y01.npy", np.repeat([0.0, 1.0], 5))
    floats = ["sample", tmp_path / "y01.npy", "-o", tmp_path / "f.npz", "--n", 3]
    refused(*floats, match="--positive LABEL; the labels are: 0.0, 1.0")
    refused(*floats, "--positive", 1, match="Got '1'; the labels are: 0.0, 1.0")
    usimul(*floats, "--positive", "1.0")
    usimul("sample", *given, "--positive", 0, "--positive", 2, "--unlabeled", 7, "--seed", 3)
    sup = load_supervision(tmp_path / "s.npz")
    assert (sup.n_tuples, sup.n_unlabeled, sup.n_points) == (30, 7, 100)
    y = np.where(np.isin(np.arange(100) % 10, [0, 2]), 1, -1)
    assert sup == sample_triplets(y, 30, n_unlabeled=7, random_state=3)
    refused("sample", *given, "--positive", 0, match="exists already")
    usimul("sample", *given, "--positive", 0, "--kind", "labels", "--overwrite")
    refused("sample", *given, "--positive", 11, "--overwrite", match="Got '11'; the labels are: 0, 1, 2, ")


def test_sample_draws_every_kind_that_labels_are_enough_for(files, tmp_path):
    from usimul.cli.sample import KINDS
    from usimul.sampling import draw, needs_posterior
    from usimul.supervision import Supervision

    kinds = Supervision.kinds()
    assert set(KINDS) == {name for name, kind in kinds.items() if kind.sampler and not needs_posterior(kind)}
    y = np.load(files / "y_train.npy")
    for kind in KINDS:
        usimul("sample", files / "y_train.npy", "-o", tmp_path / f"{kind}.npz", "--n", 20, "--kind", kind, "--seed", 3)
        assert load_supervision(tmp_path / f"{kind}.npz") == draw(kinds[kind], y, 20, random_state=3)
    given = ["sample", files / "y_train.npy", "-o", tmp_path / "new.npz", "--n", 20, "--kind"]
    refused(*given, "labels", "--unlabeled", 5, match="--unlabeled does not belong to --kind labels")
    refused(*given, "compared-pairs", "--world", "release", match="--world does not belong to --kind compared-pairs")
    assert not (tmp_path / "new.npz").exists()


def test_model_folder_says_what_it_was_trained_on(files, tmp_path):
    clf = export.load(files / "model")
    assert (clf.n_tuples_, clf.n_unlabeled_, clf.world_) == (200, 100, "definition1")
    card = (files / "model" / "README.md").read_text()
    asked = load_supervision(files / "train.npz").n_asked
    assert f"Trained on 200 tuples, kept out of {asked} that were asked about; and 100 unlabeled points. World" in card
    usimul(*train(files), "--selection", "label-free", "-o", tmp_path / "m")
    assert "held out to choose the epoch without labels" in (tmp_path / "m" / "README.md").read_text()
    description = tmp_path / "m" / "model.json"
    whole = description.read_text()
    for old, new in (
        ('"n_tuples_": 200', '"n_tuples_": 0'),
        ('"n_unlabeled_": 100', '"n_unlabeled_": -1'),
        ('"world_": "definition1"', '"world_": 1'),
    ):
        assert old in whole
        description.write_text(whole.replace(old, new))
        refused(
            "predict", tmp_path / "m", files / "X_test.npy", "-o", tmp_path / "p.csv", match="is damaged: .*train|world"
        )


def test_methods_and_datasets(tmp_path):
    from usimul.methods import list_methods

    table = usimul("methods").stdout
    assert all(method.name in table for method in list_methods())
    for method in list_methods():
        assert method.formula in usimul("methods", method.name).stdout
    for words in ("unbiased: the risk before its correction", "correct the parts of this risk, which biases it"):
        assert words in table
    for name, label in (("su-abs", "risk, uncorrected"), ("su", "risk")):
        page = usimul("methods", name).stdout
        assert f"{label:<22}(pS/D)" in page
        assert ("correction            abs" in page) == (name == "su-abs")
        assert ("uncorrected unbiased  its own data" in page) == (name == "su-abs")
    refused("methods", "usimul-ab", match="Did you mean 'usimul-abs'")
    assert "digits" in usimul("datasets").stdout
    usimul("datasets", "get", "gaussians", "--arrays", tmp_path / "arrays")
    assert {p.name for p in (tmp_path / "arrays").iterdir()} == {
        "X_train.npy",
        "y_train.npy",
        "X_test.npy",
        "y_test.npy",
    }
    refused("datasets", "get", "gaussian", match="Did you mean 'gaussians'")


def test_images_keep_their_shape(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([1, -1], 15)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "grey.npy", rng.normal(size=(30, 8, 8)))
    np.save(tmp_path / "colour.npy", rng.normal(size=(30, 8, 8, 3)))
    np.save(tmp_path / "flat.npy", rng.normal(size=(30, 64)))
    usimul("sample", tmp_path / "y.npy", "-o", tmp_path / "s.npz", "--n", 20, "--kind", "labels")
    for name, shape in (("grey", (1, 8, 8)), ("colour", (3, 8, 8)), ("flat", (1, 8, 8))):
        extra = ["--image-shape", "1,8,8"] if name == "flat" else []
        given = ["train", tmp_path / f"{name}.npy", tmp_path / "s.npz", "--method", "supervised", "--model", "cnn"]
        usimul(*given, *extra, "--epochs", 1, "-o", tmp_path / name)
        assert export.load(tmp_path / name).image_shape == shape
        usimul("predict", tmp_path / name, tmp_path / f"{name}.npy", "-o", tmp_path / f"{name}.csv")
    given = ["train", tmp_path / "grey.npy", tmp_path / "s.npz", "--method", "supervised", "--model", "cnn"]
    refused(
        *given, "--image-shape", "1,4,16", "-o", tmp_path / "n", match=r"\(1, 8, 8\). Got \(1, 4, 16\). Leave it out"
    )
    usimul(*given, "--image-shape", "1,8,8", "--epochs", 1, "-o", tmp_path / "same")
    refused(
        "train",
        tmp_path / "flat.npy",
        tmp_path / "s.npz",
        "--method",
        "supervised",
        "--model",
        "cnn",
        "-o",
        tmp_path / "n",
        match="image_shape",
    )


# --- bad input ----------------------------------------------------------------------------------------------------


def write(folder, name, array):
    np.save(folder / name, array)
    return folder / name


def bad_points():
    good = np.zeros((300, 2))
    holed, huge = good.copy(), good.copy()
    holed[7, 1], huge[3, 0] = np.nan, 1e60
    return {
        "nan": (holed, r"Row 7, column 1 is nan"),
        "too-large": (huge, r"fit into float32. Row 3, column 0 is 1e\+60"),
        "vector": (np.zeros(300), r"Got shape \(300,\)"),
        "empty": (np.zeros((0, 2)), r"Got shape \(0, 2\)"),
        "text": (np.array([["a", "b"]] * 300), "real numbers. Got dtype <U1"),
        "complex": (np.zeros((300, 2), dtype=complex), "Got dtype complex"),
        "too-few": (good[:10], "made for a pool of 300 points, but X has 10"),
    }


@pytest.mark.parametrize("name", list(bad_points()))
def test_bad_points(files, tmp_path, name):
    array, match = bad_points()[name]
    path = write(tmp_path, "bad.npy", array)
    given = ["train", path, files / "train.npz", "--prior", 0.3, "--method", "usimul-exact-abs", "--epochs", 1]
    refused(*given, "-o", tmp_path / "m", match=match)
    assert {p.name for p in tmp_path.iterdir()} == {"bad.npy"}


@pytest.mark.parametrize(
    ("args", "match"),
    [
        (["--prior", 0.5], "must differ from 0.5"),
        (["--prior", 1.5], r"must lie in \(0, 1\)"),
        (["--prior", 0.1], "contradicts the"),
        ([], "`prior`.* is required"),
        (["--prior", 0.3, "--method", "usimul-exakt"], "Did you mean 'usimul-exact'"),
        (["--prior", 0.3, "--model", "mpl"], "Did you mean 'mlp'"),
        (["--prior", 0.3, "--loss", "squared"], "Did you mean 'square'"),
        (["--prior", 0.3, "--epochs", 0], "`epochs` must be at least 1"),
        (["--prior", 0.3, "--lr", -1], "`lr` must lie in"),
        (["--prior", 0.3, "--seed", -1], "`random_state` must be at least 0"),
        (["--prior", 0.3, "--selection", "best"], "`selection` must be one of"),
        (["--prior", 0.3, "--option", "nothing=1"], "nothing"),
        (["--prior", 0.3, "--method", "supervised"], "learns from Labels. Got Triplets"),
    ],
)
def test_bad_settings(files, tmp_path, args, match):
    given = ["train", files / "X_train.npy", files / "train.npz", "-o", tmp_path / "m"]
    method = [] if "--method" in args else ["--method", "usimul-exact-abs"]
    refused(*given, *method, *args, match=match)
    assert not list(tmp_path.iterdir())


def test_bad_files(files, tmp_path):
    cut = tmp_path / "cut.npy"
    cut.write_bytes((files / "X_train.npy").read_bytes()[:500])
    whole = (files / "train.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "points.csv").write_text("1,2\n")
    (tmp_path / "points.txt").write_text("1,2\n")
    np.savez(tmp_path / "two.npz", a=np.zeros((300, 2)), b=np.zeros((300, 2)))
    np.save(tmp_path / "objects.npy", np.array([[{}]], dtype=object))
    for suffix in ("npy", "npz"):
        (tmp_path / f"nothing.{suffix}").touch()
        (tmp_path / f"text.{suffix}").write_text("1 2 3\n")
    before = {p.name for p in tmp_path.iterdir()}
    tail = [files / "train.npz", "--prior", 0.3, "-o", tmp_path / "m"]
    refused("train", cut, *tail, match="not a whole .npy file")
    refused("train", tmp_path / "objects.npy", *tail, match="not a whole .npy file of numbers.*Python objects")
    for suffix in ("npy", "npz"):
        refused("train", tmp_path / f"nothing.{suffix}", *tail, match=rf"not a whole .{suffix} file.*the file is empty")
        found = refused("train", tmp_path / f"text.{suffix}", *tail, match="of another format")
        assert "pickle" not in found.stderr
    refused("train", tmp_path / "points.csv", *tail, match="must name its columns in the first line.*numbers: 1, 2")
    refused("train", tmp_path / "points.txt", *tail, match="must be a .npy or .npz file, a table")
    refused("train", tmp_path / "two.npz", *tail, match="several arrays.*a, b.*--key")
    refused("train", tmp_path / "two.npz", *tail, "--key", "c", match="no array 'c'")
    refused("train", tmp_path / "cut.npz", *tail, match="not a whole .npz file")
    refused("train", files / "X_train.npy", tmp_path / "cut.npz", *tail[1:], match="not a whole supervision file")
    assert "does not exist" in usimul("train", tmp_path / "no.npy", *tail, code=2).stderr
    assert {p.name for p in tmp_path.iterdir()} == before


def test_bare_rows_of_triplets_are_no_supervision_file_yet(files, tmp_path):
    rows = np.array([[0, 1, 2], [3, 4, 5]])
    np.save(tmp_path / "rows.npy", rows)
    np.savez(tmp_path / "rows.npz", rows=rows)
    np.savetxt(tmp_path / "rows.csv", rows, fmt="%d", delimiter=",")
    advice = r".*usimul.Triplets\(rows, .*save\('file.npz'\)"
    for name, words in (("rows.npy", advice), ("rows.npz", advice), ("rows.csv", " must name its columns")):
        given = ["train", files / "X_train.npy", tmp_path / name, "--prior", 0.3, "-o", tmp_path / "m"]
        refused(*given, match=rf"{name}'{words}")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "cpu:x", "meta"])
def test_unusable_devices(files, tmp_path, device):
    refused(*train(files), "--device", device, "-o", tmp_path / "m", match=rf"`device` '{device}' cannot be used here")
    predict = ["predict", files / "model", files / "X_test.npy", "-o", tmp_path / "p.csv"]
    refused(*predict, "--device", device, match="cannot be used here")
    assert not list(tmp_path.iterdir())


def test_settings_that_fail_in_the_first_step_are_found_before(files, tmp_path):
    usimul("sample", files / "y_train.npy", "-o", tmp_path / "l.npz", "--n", 9, "--kind", "labels")
    given = ["train", files / "X_train.npy", tmp_path / "l.npz", "--method", "supervised", "--model", "mlp-bn"]
    refused(*given, "--batch-size", 1, "-o", tmp_path / "m", match="`batch_size`=1 leaves steps of one point")
    rare = ["sample", files / "y_train.npy", "-o", tmp_path / "r.npz", "--n", 9, "--kind", "dissimilar-pairs"]
    refused(*rare, "--prior", 1e-9, match="at prior 1e-09 a dissimilar-pair is observed once in")


def test_a_method_is_advised_only_if_it_fits(files, tmp_path):
    usimul("sample", files / "y_train.npy", "-o", tmp_path / "sp.npz", "--n", 50, "--kind", "similar-pairs")
    given = ["train", files / "X_train.npy", tmp_path / "sp.npz", "--prior", 0.3, "-o", tmp_path / "m"]
    found = refused(
        *given, "--method", "su", match="needs unlabeled points beside the tuples. Got none. Pass unlabeled="
    )
    assert "joint" not in found.stderr


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that nobody can write in")
def test_output_that_cannot_be_written_is_noticed_before_any_work(files, monkeypatch):
    def work(*given, **settings):
        raise AssertionError("work has begun")

    monkeypatch.setattr("usimul.estimators.WeakClassifier.fit", work)
    monkeypatch.setattr("usimul.cli.predict.read_classifier", work)
    monkeypatch.setattr("usimul.experiments.demo.run_demo", work)
    monkeypatch.setattr("usimul.sampling.sample_triplets", work)
    words = r"nothing can be written in the folder '/proc'.*Choose another folder, or make this one writable"
    refused(*train(files), "-o", "/proc/model", match=words)
    refused("sample", files / "y_train.npy", "--n", 5, "-o", "/proc/s.npz", match=words)
    refused("predict", files / "model", files / "X_test.npy", "-o", "/proc/p.csv", match=words)
    refused("demo", "--report", "/proc/page.html", match=words)


def test_a_file_is_no_model(files, tmp_path):
    given = ["predict", files / "train.npz", files / "X_test.npy", "-o", tmp_path / "p.csv"]
    refused(*given, match="train.npz' is a file; a model is a folder")


def test_existing_output_is_noticed_before_training(files, tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "mine").write_text("x")
    refused(*train(files), "--epochs", 10**9, "-o", tmp_path / "m", match="exists already")
    refused(*train(files), "--epochs", 10**9, "-o", tmp_path / "m", "--overwrite", match="other things")
    refused(*train(files), "--epochs", 10**9, "-o", tmp_path / "no" / "m", match="does not exist")


def test_bad_model_folders_and_features(files, tmp_path):
    shutil.copytree(files / "model", tmp_path / "model")
    (tmp_path / "model" / "weights.safetensors").write_bytes(b"")
    out = ["-o", tmp_path / "p.csv"]
    refused("predict", tmp_path / "model", files / "X_test.npy", *out, match="weights.safetensors' is truncated")
    refused("predict", tmp_path / "nowhere", files / "X_test.npy", *out, match="no model folder")
    shutil.copytree(files / "model", tmp_path / "huge")
    description = tmp_path / "huge" / "model.json"
    description.write_text(description.read_text().replace('"n_features_in_": 2', '"n_features_in_": 1000000000000'))
    refused("predict", tmp_path / "huge", files / "X_test.npy", *out, match="more than there are weights")
    description.unlink()
    refused("predict", tmp_path / "huge", files / "X_test.npy", *out, match="model.json' is missing: .* not a whole")
    wide = write(tmp_path, "wide.npy", np.zeros((4, 3)))
    refused("predict", files / "model", wide, *out, match="3 features each, but .* trained on 2")
    refused(
        "predict",
        files / "model",
        files / "X_test.npy",
        "-o",
        tmp_path / "p.txt",
        match="must end in .csv, .parquet, .pq or .npy",
    )
    assert not (tmp_path / "p.csv").exists()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        (np.arange(200) % 3, "two classes of the classifier, -1 and 1"),
        (np.ones(199, dtype=int), "one label for each point, 200. Got 199"),
        (np.ones((200, 2), dtype=int), "Got shape"),
        (np.array(["a"] * 200), "Got: 'a'"),
    ],
)
def test_bad_labels(files, tmp_path, labels, match):
    path = write(tmp_path, "y.npy", labels)
    refused("evaluate", files / "model", files / "X_test.npy", "--labels", path, match=match)


def test_traceback_on_request(files, tmp_path):
    given = ["predict", tmp_path / "nowhere", files / "X_test.npy", "-o", tmp_path / "p.csv"]
    assert "Traceback" in usimul("--traceback", *given, code=2).stderr
    assert "Traceback" in usimul(*given, code=2, env={"USIMUL_TRACEBACK": "1"}).stderr


# --- interruption -------------------------------------------------------------------------------------------------

INTERRUPT = """
import sys
from usimul.cli import main
from usimul.cli.progress import EpochBar
shown = EpochBar.__call__
def announce(self, name, number, n_epochs, epoch):
    if number == 3:
        print("third epoch", flush=True)
    shown(self, name, number, n_epochs, epoch)
EpochBar.__call__ = announce
main(sys.argv[1:])
"""


@pytest.mark.parametrize("discard", [False, True])
def test_ctrl_c_saves_what_was_trained(files, tmp_path, discard):
    given = [str(a) for a in [*train(files), "--epochs", 10**7, "-o", tmp_path / "m"]]
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPT, *given, *["--discard-on-interrupt"] * discard],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        assert process.stdout.readline() == "third epoch\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert "Traceback" not in stderr
    if discard:
        assert "nothing was saved" in stderr
        assert not list(tmp_path.iterdir())
        return
    assert "marked as interrupted" in stderr
    clf = export.load(tmp_path / "m")
    assert clf.interrupted_
    assert len(clf.history_["risk"]) >= 3
    assert "interrupted" in (tmp_path / "m" / "README.md").read_text()
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_ctrl_c_saves_the_best_candidate_so_far(files, tmp_path, monkeypatch):
    def stop(self, name, number, n_epochs, epoch):
        if name.startswith("joint-likelihood"):
            raise KeyboardInterrupt

    monkeypatch.setattr("usimul.cli.progress.EpochBar.__call__", stop)
    result = usimul(*train(files, method="auto"), "-o", tmp_path / "m", code=130)
    clf = export.load(tmp_path / "m")
    assert f"the best of the 3 tried, method {clf.method_}, model linear, was saved" in result.stderr
    assert clf.interrupted_
    assert [row["method"] for row in clf.auto_] == ["joint", "joint-plain", "joint-likelihood"]


def test_ctrl_c_before_anything_was_trained(files, tmp_path, monkeypatch):
    from usimul.estimators import WeakClassifier

    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(WeakClassifier, "fit", stop)
    result = usimul(*train(files), "-o", tmp_path / "m", code=130)
    assert "nothing was trained yet" in result.stderr
    assert not list(tmp_path.iterdir())


def test_ctrl_c_elsewhere(files, tmp_path, monkeypatch):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("usimul.prediction.scores", stop)
    usimul("predict", files / "model", files / "X_test.npy", "-o", tmp_path / "p.csv", code=130)
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("noisy")
    data = make_gaussians(300, 200, prior=0.4, random_state=0)
    np.save(folder / "points.npy", data.X_train)
    np.save(folder / "labels.npy", data.y_train)
    usimul(
        *("sample", folder / "labels.npy", "--n", 400, "--unlabeled", 200, "--prior", 0.4, "--wrong-yes", 0.1),
        *("--output", folder / "answers.npz"),
    )
    return folder


class TestWrongAnswers:
    """``--wrong-yes`` in every command that has it; what it does is tested in tests/unit/test_noise.py."""

    def train(self, noisy, output, *args, **kwargs):
        base = ("--prior", 0.4, "--model", "linear", "--epochs", 2, "--output", output)
        return usimul("train", noisy / "points.npy", noisy / "answers.npz", *base, *args, **kwargs)

    def test_share_is_drawn(self, noisy):
        sup, y = load_supervision(noisy / "answers.npz"), np.load(noisy / "labels.npy")
        wrong = np.mean([y[a] not in (y[b], y[c]) for a, b, c in sup.rows])
        assert 0.04 < wrong < 0.16  # 0.1, four standard errors

    def test_train_and_evaluate(self, noisy, tmp_path):
        shown = self.train(noisy, tmp_path / "model", "--wrong-yes", 0.1).output
        assert "wrong yes answers    0.1 of them, as stated; corrected for" in shown
        judge = ("evaluate", tmp_path / "model", noisy / "points.npy", "--supervision", noisy / "answers.npz")
        kept, same, more = (usimul(*judge, *how).output for how in ((), ("--wrong-yes", 0.1), ("--wrong-yes", 0.15)))
        assert kept == same != more

    def test_without_the_share_nothing_is_said_of_it(self, noisy, tmp_path):
        assert "wrong yes" not in self.train(noisy, tmp_path / "model", "--prior-check", "ignore").output

    @pytest.mark.parametrize(
        ("args", "match"),
        [
            (("--wrong-yes", 0.3), r"`wrong_yes` must be less than 0.24"),
            (("--wrong-yes", -1), r"`wrong_yes` must lie in \[0, 1\]. Got -1"),
            (("--wrong-yes", "nan"), r"`wrong_yes` must lie in \[0, 1\]. Got nan"),
            (("--wrong-yes", 0.1, "--method", "usimul"), "'usimul' has no correction for wrong yes answers"),
            (("--option", "wrong_yes=0.1"), "`wrong_yes` is no option of a method"),
        ],
    )
    def test_train_refuses(self, noisy, tmp_path, args, match):
        base = ("--prior", 0.4, "--model", "linear", "--epochs", 2, "--output", tmp_path / "model")
        refused("train", noisy / "points.npy", noisy / "answers.npz", *base, *args, match=match)
        assert not (tmp_path / "model").exists()

    @pytest.mark.parametrize(
        ("args", "match"),
        [
            (("--kind", "labels", "--wrong-yes", 0.1), "--wrong-yes does not belong to --kind labels"),
            (("--prior", 0.4, "--wrong-yes", 0.24), r"`wrong_yes` must be less than 0.24"),
            (("--world", "release", "--prior", 0.4, "--wrong-yes", 0.1), "no meaning in world 'release'"),
        ],
    )
    def test_sample_refuses(self, noisy, tmp_path, args, match):
        refused("sample", noisy / "labels.npy", "--n", 5, "--output", tmp_path / "new.npz", *args, match=match)

    def test_check_tells_disagreement(self, noisy, tmp_path):
        lines = ["first,second,answer"]
        for i in range(200):  # asked twice; every fifth pair gets two different answers
            said = ("yes", "no") if i % 2 else ("no", "yes")  # half of them yes, as prior 0.4 has it nearly
            lines += [f"{i},{i + 50},{said[0]}", f"{i},{i + 50},{said[i % 5 == 0]}"]
        (tmp_path / "twice.csv").write_text("\n".join(lines) + "\n")
        result = usimul("check", noisy / "points.npy", tmp_path / "twice.csv", "--prior", 0.4)
        assert "asked repeatedly     200 questions, 200 pairs of answers to compare" in result.output
        assert "disagreeing          40 pairs, a share of 0.200" in result.output
        assert "answers flipped      0.113   95% interval " in result.output  # (1 - sqrt(0.6))/2
        assert "warning: the same questions were answered differently too often" in result.stderr
        stated = usimul("check", noisy / "points.npy", tmp_path / "twice.csv", "--prior", 0.4, "--wrong-yes", 0.1)
        assert "warning" not in stated.stderr
        silent = usimul("check", noisy / "points.npy", noisy / "answers.npz")
        assert "asked repeatedly" not in silent.output

    def test_check_needs_the_prior_beside_the_share(self, noisy):
        result = usimul("check", noisy / "points.npy", "--wrong-yes", 0.1, code=2)
        assert "--wrong-yes needs --prior" in result.stderr
