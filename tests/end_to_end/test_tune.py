"""``usimul tune`` as a stranger would use it."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from usimul import export
from usimul.cli import main
from usimul.datasets import make_gaussians
from usimul.sampling import sample_triplets

GRID = ("--grid", "method=joint-likelihood", "--grid", "model=linear", "--grid", "epochs=30")


def usimul(*args, code=0):
    result = CliRunner().invoke(main, [str(a) for a in args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    data = make_gaussians(4000, 10, prior=0.3, random_state=0)
    np.save(folder / "X.npy", data.X_train)
    sample_triplets(data.y_train, 600, n_unlabeled=600, prior=0.3, random_state=0).save(folder / "t.npz")
    return ("tune", folder / "X.npy", folder / "t.npz", "--prior", 0.3)


def test_rows_and_the_chosen_model(given, tmp_path):
    command = (*given, *GRID, "--grid", "lr=1e-6,0.1", "-o", tmp_path / "s")
    found = usimul(*command).stdout
    assert "label-free error on points held out, rule least" in found
    assert re.search(r"^\* lr=0.1 ", found, re.MULTILINE)
    assert "all: method=joint-likelihood, model=linear, epochs=30" in found
    assert all(len(line) <= 100 for line in found.splitlines() if "saved to" not in line)
    rows = [json.loads(line) for line in (tmp_path / "s" / "rows.jsonl").read_text().splitlines()]
    assert [row["settings"]["lr"] for row in rows] == [1e-6, 0.1]
    assert export.load(tmp_path / "s" / "model").get_params()["lr"] == 0.1
    assert "holds a finished search" in usimul(*command, code=2).stderr
    (tmp_path / "s" / "rows.jsonl").write_text(json.dumps({"key": "another search"}) + "\n")
    usimul(*command, "--overwrite")
    assert len((tmp_path / "s" / "rows.jsonl").read_text().splitlines()) == 2


def test_an_unfinished_search_goes_on(given, tmp_path, monkeypatch):
    from usimul.cli import train

    command = (*given, *GRID, "--grid", "lr=0.05,0.1", "-o", tmp_path / "s")
    with monkeypatch.context() as patch:
        patch.setattr(train, "_fit", lambda *args: True)  # the user ends the last training
        assert "The same command trains it again" in usimul(*command, code=130).stderr
    before = (tmp_path / "s" / "rows.jsonl").read_text()
    usimul(*command)
    assert (tmp_path / "s" / "rows.jsonl").read_text() == before
    assert (tmp_path / "s" / "model").is_dir()


def test_a_search_that_starts_anew_keeps_its_rows_when_interrupted(given, tmp_path, monkeypatch):
    from usimul import tuning

    command = (*given, *GRID, "--grid", "lr=0.05,0.1", "-o", tmp_path / "s")
    usimul(*command)
    judge, calls = tuning._judge, []

    def stop(*args):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return judge(*args)

    with monkeypatch.context() as patch:
        patch.setattr(tuning, "_judge", stop)
        said = usimul(*command, "--overwrite", code=130).stderr
    assert "1 rows are in" in said
    assert "The same command without --overwrite continues it." in said
    before = (tmp_path / "s" / "rows.jsonl").read_text()
    usimul(*command)
    after = (tmp_path / "s" / "rows.jsonl").read_text()
    assert after.startswith(before)
    assert len(after.splitlines()) == 2
    assert (tmp_path / "s" / "model").is_dir()


def test_wrong_answers_are_stated_for_all_candidates(given, tmp_path):
    usimul(*given, *GRID, "--wrong-yes", 0.02, "-o", tmp_path / "s")
    assert export.load(tmp_path / "s" / "model").wrong_yes_ == 0.02


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--grid", "lr"), "not of the form KEY=VALUE"),
        (("--grid", "lr=1,,2"), "not of the form KEY=VALUE"),
        (("--grid", "lr=1", "--grid", "lr=2"), "'lr' is given twice"),
        (("--grid", "lr=fast"), "candidate lr=fast: `lr` must be a number"),
        (("--grid", "lrr=0.1"), "'lrr' is no parameter"),
        (("--grid", "method=joint,su"), "candidate method=su: "),
        (("--grid", "wrong_yes=0.0,0.6"), "candidate wrong_yes=0.6: `wrong_yes` must be less than 0.21"),
        (("--grid", "epochs=3", "--wrong-yes", "0.6"), "`wrong_yes` must be less than 0.21"),
        (("--grid", "epochs=3", "--draws", "0"), "`n_draws`"),
        (("--grid", "epochs=3", "--folds", "1"), "`n_splits`"),
        (("--grid", "epochs=3", "--folds", "3", "--fraction", "0.2"), "not both"),
        (("--grid", "epochs=3", "--fraction", "1.5"), "`fraction`"),
        (("--grid", "epochs=3", "--rule", "best"), "`rule` must be one of"),
        (("--grid", "epochs=3", "--criterion", "accuracy"), "`criterion` must be one of"),
        (("--grid", "epochs=3", "--device", "moon"), "`device` 'moon'"),
        ((), "Missing option '--grid'"),
    ],
)
def test_bad_input_costs_nothing_and_leaves_no_folder(given, tmp_path, options, words):
    result = usimul(*given, *options, "-o", tmp_path / "s", code=2)
    assert words in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "s").exists()


def test_folders_of_others_are_left_alone(given, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for extra in ((), ("--overwrite",)):
        assert (
            "holds other things than a search (notes.txt)"
            in usimul(*given, *GRID, "-o", tmp_path, *extra, code=2).stderr
        )
    assert "is a file; name a folder" in usimul(*given, *GRID, "-o", tmp_path / "notes.txt", code=2).stderr
    assert (tmp_path / "notes.txt").read_text() == "mine"
