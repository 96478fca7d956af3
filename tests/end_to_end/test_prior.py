"""`usimul prior`: from files to an estimate, and every problem told."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from usimul.cli import main
from usimul.datasets import make_gaussians
from usimul.sampling import sample_triplets
from usimul.supervision import SimilarPairs, Triplets

FAST = ["--model", "linear", "--epochs", 5, "--bins", 5]


def usimul(*args, code=0):
    result = CliRunner().invoke(main, [str(a) for a in args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prior")
    data = make_gaussians(800, 10, prior=0.25, distance=4.0, random_state=0)
    np.save(folder / "points.npy", data.X_train)
    np.save(folder / "short.npy", data.X_train[:20])
    np.save(folder / "y.npy", data.y_train[:80])
    np.save(folder / "zero_one.npy", (data.y_train[:80] > 0).astype(int))
    pd.DataFrame({"label": ["yes", "no"]}).to_csv(folder / "words.csv", index=False)
    sup = sample_triplets(data.y_train, 1000, n_unlabeled=800, prior=0.25, random_state=0)
    sup.save(folder / "triplets.npz")
    sup.take(slice(None)).save(folder / "uncounted.npz")
    pd.DataFrame(sup.rows, columns=["anchor", "companion1", "companion2"]).to_csv(folder / "rows.csv", index=False)
    ids = pd.DataFrame([["a", "b", "c"]] * 800, columns=["anchor", "companion1", "companion2"])
    ids.to_csv(folder / "ids.csv", index=False)
    Triplets([[0, 1, 2]] * 600, n_asked=1000).save(folder / "impossible.npz")
    Triplets([[0, 1, 2]] * 752, n_asked=1000).save(folder / "half.npz")
    SimilarPairs([[0, 1]] * 700, n_asked=1000).save(folder / "pairs.npz")
    return folder


def test_counts_alone(own, tmp_path):
    out = usimul("prior", own / "triplets.npz", "--side", "minority", "--json", tmp_path / "p.json").output
    assert "method               acceptance" in out
    assert max(map(len, out.splitlines()[:-1])) <= 100  # the last names a file
    found = json.loads((tmp_path / "p.json").read_text())
    assert found["interval"][0] < 0.25 < found["interval"][1]
    assert found["sensitivity"] == []
    again = usimul("prior", own / "rows.csv", "--asked", 1235, "--side", "majority").output
    assert "prior                0.7" in again


def test_with_points(own):
    out = usimul("prior", own / "points.npy", own / "triplets.npz", "--side", "minority", *FAST).output
    assert "method               acceptance + likelihood" in out
    assert out.startswith("prior                0.2")


def test_labels_alone(own):
    assert "method               labels" in usimul("prior", "--labels", own / "y.npy").output


def test_pairs(own):
    assert "0.1838" in usimul("prior", own / "pairs.npz", "--side", "minority").output  # (1 - sqrt(2 * 0.7 - 1)) / 2


def test_without_a_side_both_are_shown(own, tmp_path):
    result = usimul("prior", own / "triplets.npz", "--json", tmp_path / "p.json", code=2)
    assert "positives rarer" in result.output
    assert "positives commoner" in result.output
    assert "Pass --side" in result.output
    assert json.loads((tmp_path / "p.json").read_text())["value"] is None


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_plot(own, tmp_path, suffix):
    pytest.importorskip("matplotlib")
    model = ["prior", own / "points.npy", own / "triplets.npz", "--side", "minority", "--method", "acceptance"]
    plot = tmp_path / f"s.{suffix}"
    out = usimul(*model, *FAST, "--plot", plot, "--assume", 0.2, "--assume", 0.3).output
    assert "  0.2000 " in out
    assert "  0.3000 " in out
    first = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert plot.read_bytes().startswith(first)
    assert "exists already" in usimul(*model, "--plot", plot, code=2).output


def test_retrain_and_a_saved_classifier(own, tmp_path):
    points, triplets = own / "points.npy", own / "triplets.npz"
    usimul("train", points, triplets, "--prior", 0.25, "--model", "linear", "--epochs", 3, "-o", tmp_path / "model")
    base = ["prior", points, triplets, "--side", "minority", "--method", "acceptance", *FAST, "--assume", 0.25]
    assert "one classifier" in usimul(*base, "--classifier", tmp_path / "model").output
    assert "trained again" in usimul(*base, "--retrain").output


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "Name SUPERVISION"),
        (["points.npy", "triplets.npz", "y.npy"], "at most two files"),
        (["uncounted.npz", "--side", "minority"], "--asked"),
        (["impossible.npz", "--side", "minority"], "no prior gives"),
        (["half.npz", "--side", "minority"], "cannot be told from 1/2"),
        (["triplets.npz", "--side", "rare"], "`side` must be one of: minority, majority"),
        (["triplets.npz", "--method", "likelihood"], "POINTS on the command line"),
        (["triplets.npz", "--method", "guess"], "`method` must be one of"),
        (["--labels", "zero_one.npy"], "must hold labels 1 (positive) and -1, and nothing else. Got: 0, 1."),
        (["--labels", "words.csv"], "Got: no, yes."),
        (["triplets.npz", "--level", "95"], "`level`"),
        (["triplets.npz", "--plot", "x.png"], "need POINTS"),
        (["points.npy", "triplets.npz", "--plot", "x.gif"], "must end in .png, .svg or .pdf"),
        (["points.npy", "triplets.npz", "--json", "x.txt"], "must end in .json"),
        (["points.npy", "triplets.npz", "--assume", "2"], "`--assume` must lie in (0, 1)"),
        (["points.npy", "pairs.npz", "--sensitivity"], "judged by triplets"),
        (["points.npy", "triplets.npz", "--retrain", "--classifier", "m"], "leave --classifier out"),
        (["short.npy", "triplets.npz"], "pool of 800 points, but X has 20"),
        (["points.npy"], "not a supervision file"),
        (["ids.csv", "--asked", "1000"], "row"),
        (["rows.csv", "--asked", "500"], "cannot be less than"),
    ],
)
def test_bad_input(own, args, words):
    result = usimul("prior", *(own / a if (own / a).is_file() else a for a in args), code=2)
    assert words in result.output
    assert "Traceback" not in result.output


def test_plot_without_matplotlib(own, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    out = usimul("prior", own / "points.npy", own / "triplets.npz", "--plot", tmp_path / "x.png", code=2).output
    assert "usimul[plots]" in out
