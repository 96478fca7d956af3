"""`usimul init` and `usimul run`: the whole way of a project file, interrupted, resumed, and with bad input."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import usimul
from usimul.cli import main
from usimul.cli.project import TAKES
from usimul.cli.run import _fingerprint
from usimul.datasets import make_gaussians
from usimul.project import SECTIONS, read_project

SOURCE = str(Path(usimul.__file__).parents[1])

PROJECT = """
[points]
path = "points.npy"
[supervision]
path = "answers.npz"
[prior]
value = 0.3
[training]
model = "linear"
epochs = {epochs}
[judging]
held_out = {held_out}
"""


def write(folder, *, epochs=3, held_out=0.2, extra=""):
    """Points that each occur in one triplet, so that a split loses nothing."""
    data = make_gaussians(3000, 10, prior=0.3, random_state=0)
    np.save(folder / "points.npy", data.X_train)
    y, rows = data.y_train, np.arange(1800).reshape(600, 3)
    kept = rows[(y[rows[:, :1]] == y[rows[:, 1:]]).any(axis=1)]
    usimul.Triplets(kept, unlabeled=np.arange(3000), n_points=3000, n_asked=600, world="definition1").save(
        folder / "answers.npz"
    )
    (folder / "usimul.toml").write_text(PROJECT.format(epochs=epochs, held_out=held_out) + extra)


def write_again(folder, **changes):
    for name in ("points.npy", "answers.npz"):
        (folder / name).unlink()
    write(folder, **changes)


def call(*words):
    return CliRunner().invoke(main, list(words))


@pytest.fixture
def project(tmp_path, monkeypatch):
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_whole_way(project):
    result = call("run")
    assert result.exit_code == 0, result.output
    made = {path.name for path in (project / "run").iterdir()}
    assert made == {
        "evaluation.json",
        "held_out.npz",
        "learn.npz",
        "log.txt",
        "model",
        "predictions.csv",
        "report.html",
        "state.json",
    }
    learn, judge = (usimul.load(project / "run" / name) for name in ("learn.npz", "held_out.npz"))
    assert not set(learn.rows.ravel()) & set(judge.rows.ravel())
    assert not set(learn.unlabeled) & set(judge.unlabeled)
    assert not set(learn.rows.ravel()) & set(judge.unlabeled)
    found = json.loads((project / "run" / "evaluation.json").read_text())
    assert 0 <= found["errors"]["likelihood"]["value"] <= 1
    assert "seem to be those of the training" not in result.output
    assert len((project / "run" / "predictions.csv").read_text().splitlines()) == 3001


def test_a_second_call_does_nothing_again(project):
    assert call("run").exit_code == 0
    before = (project / "run" / "model" / "model.json").stat().st_mtime_ns
    again = call("run")
    assert again.exit_code == 0
    assert again.output.count("done before") == 5
    assert (project / "run" / "model" / "model.json").stat().st_mtime_ns == before


def test_what_is_gone_is_made_again(project):
    assert call("run").exit_code == 0
    (project / "run" / "predictions.csv").unlink()
    again = call("run")
    assert again.output.count("done before") == 4
    assert (project / "run" / "predictions.csv").exists()


@pytest.mark.parametrize("what", ["settings", "data"])
def test_other_settings_or_data_are_not_mixed(project, what):
    assert call("run").exit_code == 0
    if what == "settings":
        (project / "usimul.toml").write_text(PROJECT.format(epochs=4, held_out=0.2))
    else:
        np.save(project / "points.npy", np.load(project / "points.npy") + 1)
    refused = call("run")
    assert refused.exit_code == 2
    assert "other settings or data" in refused.output
    assert "--overwrite" in refused.output
    assert call("run", "--overwrite").exit_code == 0


def test_commands_read_the_project_and_options_override(project):
    assert call("run").exit_code == 0
    result = call("train", "--epochs", "2", "--output", "other")
    assert result.exit_code == 0, result.output
    assert "2 trained" in result.output
    judged = call("evaluate", "other")  # nothing says that `other` was not trained on these points
    assert judged.exit_code == 2
    assert "Missing argument 'POINTS'" in judged.output
    none = call("--no-project", "train", "--output", "third")
    assert none.exit_code == 2
    assert "Missing argument 'POINTS'" in none.output


def test_a_search_takes_the_settings_of_the_project(project):
    write_again(project, epochs=120)
    result = call("tune", "--grid", "lr=0.01,0.001", "--output", "search")
    assert result.exit_code == 0, result.output
    made = usimul.load(project / "search" / "model")
    assert (made.model, made.epochs) == ("linear", 120)
    other = call("tune", "--grid", "lr=0.01", "--set", "model=linear", "--set", "epochs=110", "-o", "other")
    assert other.exit_code == 0, other.output
    assert usimul.load(project / "other" / "model").epochs == 110
    wrong = call("tune", "--grid", "lr=0.01", "--set", "epoch=2", "--output", "third")
    assert wrong.exit_code == 2
    assert "'epochs'" in wrong.output


def test_a_held_out_share_that_leaves_too_little_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, held_out=0.02)
    result = call("run")
    assert result.exit_code == 0, result.output
    assert "too few are held out" in result.output
    assert "judging: left out" in result.output
    assert not (tmp_path / "run" / "evaluation.json").exists()


def test_counts_of_the_whole_do_not_meet_its_part(tmp_path, monkeypatch):
    """The project's ``asked`` counts questions of all answers; the part that is learned from has fewer."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    answers = usimul.load("answers.npz")
    replace(answers, n_asked=None, n_accepted=None).save("answers.npz", overwrite=True)
    text = (tmp_path / "usimul.toml").read_text()
    (tmp_path / "usimul.toml").write_text(text.replace('"answers.npz"', '"answers.npz"\nasked = 600'))
    result = call("run")
    assert result.exit_code == 0, result.output
    (tmp_path / "usimul.toml").write_text(text.replace('"answers.npz"', '"answers.npz"\nasked = 470'))
    wrong = call("run", "--overwrite")
    assert wrong.exit_code == 2
    assert "stopped at: check" in wrong.output


def test_what_was_held_out_before_judges_nothing_afterwards(project):
    assert call("run").exit_code == 0
    (project / "usimul.toml").write_text(PROJECT.format(epochs=3, held_out=0))
    result = call("run", "--overwrite")
    assert result.exit_code == 0, result.output
    left = {path.name for path in (project / "run").iterdir()}
    assert not left & {"held_out.npz", "learn.npz", "evaluation.json"}
    assert "Estimated without labels" not in result.output


def test_every_line_of_the_log_can_be_typed(tmp_path, monkeypatch):
    folder = tmp_path / "a folder's name"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write(folder)
    assert call("run").exit_code == 0
    lines = [line[2:] for line in (folder / "run" / "log.txt").read_text().splitlines() if line.startswith("$ ")]
    assert len(lines) == 5
    (folder / "usimul.toml").unlink()
    for line in lines:
        words = shlex.split(line)[1:]
        again = call(*words, *(["--overwrite"] if "check" not in words else []))
        assert again.exit_code == 0, (line, again.output)


def test_changed_images_are_other_data(tmp_path):
    image = Image.fromarray(np.zeros((4, 4), dtype=np.uint8))
    (tmp_path / "images").mkdir()
    image.save(tmp_path / "images" / "a.png")
    (tmp_path / "usimul.toml").write_text('[points]\npath = "images"')
    before = _fingerprint(read_project(tmp_path / "usimul.toml"))
    assert _fingerprint(read_project(tmp_path / "usimul.toml")) == before
    image.save(tmp_path / "images" / "b.png")
    assert _fingerprint(read_project(tmp_path / "usimul.toml")) != before


def test_a_contradiction_that_is_borne_does_not_stop_the_check(project):
    text = (project / "usimul.toml").read_text()
    text = text.replace("value = 0.3", "value = 0.1").replace("epochs = 3", 'epochs = 3\nprior_check = "ignore"')
    (project / "usimul.toml").write_text(text)
    assert call("run").exit_code == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"[points]": "[pionts]"}, "did you mean 'points'"),
        ({'path = "points.npy"': 'path = "nothing.npy"'}, "nothing.npy"),
        ({'path = "points.npy"': ""}, r'must have `path` in [points], such as path = "points.csv"'),
        ({"value = 0.3": "value = 0.05"}, "contradicts"),
        ({"value = 0.3": ""}, "either `value`, the share of positives, or `estimate`"),
        ({"value = 0.3": "value = 0.3\n[output]\npredictions = 'p.txt'"}, "must end in .csv"),
        ({'model = "linear"': 'model = "liner"'}, "liner"),
        ({"epochs = 3": "epochs = 0"}, "epochs"),
        ({"epochs = 3": 'epochs = 3\nmethod = "jiont"'}, "joint"),
        ({"held_out = 0.2": "held_out = 0.2\nlabels = 'x.csv'"}, "`points` is missing"),
        ({"[points]": "[points"}, "TOML"),
    ],
)
def test_bad_projects_stop_before_training(project, change, said):
    text = (project / "usimul.toml").read_text()
    for old, new in change.items():
        assert old in text
        text = text.replace(old, new)
    (project / "usimul.toml").write_text(text)
    result = call("run")
    assert result.exit_code == 2, result.output
    assert said in result.output
    assert "Traceback" not in result.output
    assert not (project / "run" / "model").exists()


def test_every_key_goes_to_a_parameter_that_the_command_has():
    for name, sections in TAKES.items():
        command = main.get_command(click.Context(main), name)
        assert command is not None
        parameters = {parameter.name for parameter in command.params}
        for section, keys in sections.items():
            assert set(keys) <= set(SECTIONS[section]), name
            assert set(keys.values()) <= parameters, name


def test_without_a_project_it_says_how_to_begin(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = call("run")
    assert result.exit_code == 2
    assert "usimul init" in result.output


def test_init_writes_what_was_said_and_replaces_nothing(project):
    refused = call("init", "points.npy", "answers.npz", "--prior", "0.3")
    assert refused.exit_code == 2
    assert "exists already" in refused.output
    made = call("init", "points.npy", "answers.npz", "--side", "minority", "--asked", "600", "-o", "new.toml")
    assert made.exit_code == 0, made.output
    found = read_project("new.toml")
    assert found.get("prior", "estimate") == "auto"
    assert found.get("supervision", "asked") == 600
    both = call("init", "points.npy", "--prior", "0.3", "--side", "minority", "-o", "third.toml")
    assert both.exit_code == 2
    assert "not both" in both.output


def test_init_says_what_is_still_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = call("init")
    assert result.exit_code == 0
    assert "[points] path; [supervision] path; [prior] value" in result.output
    assert "path" in call("run").output


@pytest.mark.slow
def test_an_estimated_prior_is_found_first(project):
    text = (project / "usimul.toml").read_text()
    (project / "usimul.toml").write_text(text.replace("value = 0.3", 'estimate = "acceptance"\nside = "minority"'))
    result = call("run")
    assert result.exit_code == 0, result.output
    found = json.loads((project / "run" / "prior.json").read_text())
    assert 0.15 < found["value"] < 0.45
    assert f"prior {found['value']:g}"[:9] in result.output


@pytest.mark.slow
def test_killed_and_called_again(tmp_path):
    write(tmp_path, epochs=1500)
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    command = [sys.executable, "-c", "from usimul.cli import main; main(prog_name='usimul')", "run"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if " train " in line:
                break
        time.sleep(0.5)
        process.send_signal(signal.SIGKILL)
    assert not (tmp_path / "run" / "model").exists()
    again = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "check: done before" in again.stdout
    assert (tmp_path / "run" / "report.html").exists()
