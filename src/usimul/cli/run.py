"""``usimul run``: the whole way that a project file describes, in one folder."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from usimul.cli.project import HELD_OUT, NAME, PRIOR_FILE, about_of, reading_of

if TYPE_CHECKING:
    from usimul.project import Project

FEW = 30  # tuples: fewer leave a standard error of a tenth or more


@dataclass(frozen=True)
class Step:
    """One command of the way, and what it leaves."""

    title: str
    arguments: tuple[str, ...]
    leaves: Path | None = None


@click.command(epilog="After an interruption the same command goes on where it was.")
@click.option("--overwrite", is_flag=True, help="Do all steps again, replacing what an earlier run left.")
def command(overwrite: bool) -> None:
    """Do the whole way that usimul.toml describes: check, prior, training, judging, predictions, report.

    The folder [output] folder gets a model, an estimate of the prior if one was asked for, predictions, a report, and
    a log. Each step is a command that can be called alone; the log shows it.
    """
    from usimul.validation import InputError

    project: Project | None = click.get_current_context().obj
    if project is None:
        raise InputError(f"`usimul run` needs a project file, {NAME}, in this folder. `usimul init` writes one.")
    for section in ("points", "supervision"):
        project.need(section, "path")
    folder = project.folder
    state = _State(folder / "state.json", _fingerprint(project))
    if overwrite:
        state.forget()
    state.check()
    folder.mkdir(parents=True, exist_ok=True)
    with _log(folder / "log.txt") as log:
        for step in _steps(project, folder):
            _do(project, step, state, log)
        click.echo(f"\ndone                 {folder}")


def _do(project: Project, step: Step, state: _State, log: IO[str]) -> None:
    """Call the command of a step, unless an earlier call has ended well."""
    from usimul.cli import main

    shown = "usimul " + " ".join(step.arguments)
    if state.done(step):
        click.echo(f"\n== {step.title}: done before")
        return
    click.echo(f"\n== {step.title}\n$ {shown}")
    arguments = ["--project", str(project.path), *step.arguments]
    if step.leaves is not None and step.leaves.exists():
        arguments.append("--overwrite")  # of a step that did not end
    code = main.main(args=arguments, prog_name="usimul", standalone_mode=False)
    if code:
        click.echo(f"\nstopped at: {step.title}. Mend what is said above and call `usimul run` again.", err=True)
        click.get_current_context().exit(int(code))
    state.note(step)


def _steps(project: Project, folder: Path) -> Iterator[Step]:
    """Yield the steps one by one, because later ones depend on what earlier ones left."""
    points, supervision = project.need("points", "path"), project.need("supervision", "path")
    yield Step("check", ("check", str(points), str(supervision)))
    if project.get("prior", "estimate") is not None:
        prior = folder / PRIOR_FILE
        yield Step("prior", ("prior", str(points), str(supervision), "--json", str(prior)), prior)
    learn, judge = _split(project, folder)
    model = folder / "model"
    parted = () if judge is None else ("--unlabeled", "file")  # the parts name their unlabeled points
    yield Step("training", ("train", str(points), str(learn), *parted, "--output", str(model)), model)
    about = _judging(project, judge)
    where = str(project.get("judging", "points", points))
    if about:
        found = folder / "evaluation.json"
        yield Step("judging", ("evaluate", str(model), where, *about, "--json", str(found)), found)
    else:
        click.echo("\n== judging: left out, because nothing that was not trained on is there to judge by")
    predictions = folder / project.get("output", "predictions", "predictions.csv")
    yield Step(
        "predictions", ("predict", str(model), str(points), "--proba", "--output", str(predictions)), predictions
    )
    report = folder / "report.html"
    yield Step("report", ("report", str(model), where, *about, "--output", str(report)), report)


def _split(project: Project, folder: Path) -> tuple[Path, Path | None]:
    """Return the file of answers to learn from, and one over points that are kept from it, if that was asked for."""
    from usimul.cli.files import read_points, read_supervision
    from usimul.splits import inside, pool_split

    supervision = Path(project.need("supervision", "path"))
    share = project.get("judging", "held_out", 0.0)
    if not share:
        return supervision, None
    learn, judge = folder / "learn.npz", folder / HELD_OUT
    pool = read_points(Path(project.need("points", "path")), **reading_of(project))
    answers = read_supervision(supervision, pool, about_of(project))
    parts = pool_split(answers, share, random_state=project.get("training", "seed", 0))
    click.echo(f"\n== split: {parts}")
    if parts.n_test < FEW:
        click.echo("   too few are held out to judge by, so all answers are learned from and nothing is judged.")
        return supervision, None
    inside(answers, parts.train).save(learn, overwrite=True)
    inside(answers, parts.test).save(judge, overwrite=True)
    return learn, judge


def _judging(project: Project, judge: Path | None) -> list[str]:
    """Return options that name what a model is judged by."""
    if judge is not None:
        return ["--supervision", str(judge), "--unlabeled", "file", "--held-out"]
    named = ((name, project.get("judging", name)) for name in ("supervision", "labels"))
    return [word for name, path in named if path is not None for word in (f"--{name}", str(path))]


class _State:
    """Which steps have ended, and of which project; a step that was interrupted is done again."""

    def __init__(self, path: Path, project: str) -> None:
        self._path, self._project = path, project
        self._steps: dict[str, str] = {}
        self._former = project
        if path.exists():
            from usimul.files import parsing

            with parsing(path, "record of a run", "Pass --overwrite to do all steps again."):
                found = json.loads(path.read_text(encoding="utf-8"))
                self._former, self._steps = str(found["project"]), dict(found["steps"])

    def check(self) -> None:
        """Raise if what is in the folder was made from another project file or from other data."""
        if self._former != self._project:
            from usimul.validation import InputError

            raise InputError(
                f"{str(self._path.parent)!r} holds a run of other settings or data. "
                "Name another [output] folder, or pass --overwrite to do all steps again."
            )

    def forget(self) -> None:
        """Begin anew."""
        self._former, self._steps = self._project, {}

    def done(self, step: Step) -> bool:
        """Whether the step has ended, with the same arguments, and what it left is still there."""
        there = step.leaves is None or step.leaves.exists()
        return there and self._steps.get(step.title) == " ".join(step.arguments)

    def note(self, step: Step) -> None:
        """Keep that the step has ended."""
        from usimul.files import whole_file

        self._steps[step.title] = " ".join(step.arguments)
        with whole_file(self._path, "w") as handle:
            json.dump({"version": 1, "project": self._project, "steps": self._steps}, handle, indent=1)


def _fingerprint(project: Project) -> str:
    """Return a hash of the settings, and of size and time of change of the files that they name."""
    files = [value for values in project.given.values() for value in values.values() if isinstance(value, Path)]
    seen = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files if path.is_file()]
    return hashlib.sha256(json.dumps([project.given, seen], default=str, sort_keys=True).encode()).hexdigest()[:16]


class _Tee:
    """A stream that also writes whole lines to a log, without what a progress bar has drawn over."""

    def __init__(self, stream: IO[str], log: IO[str]) -> None:
        self._stream, self._log, self._line = stream, log, ""

    def write(self, text: str) -> int:
        """Write to both."""
        self._stream.write(text)
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._log.write(line.rpartition("\r")[2] + "\n")
        self._log.flush()
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def _log(path: Path) -> Iterator[IO[str]]:
    """Write what is shown to a log too, behind what earlier calls have shown."""
    from usimul.files import room_for

    with room_for(path), path.open("a", encoding="utf-8") as log:
        log.write(f"--- {time.strftime('%Y-%m-%d %H:%M:%S %z')}\n")
        out, err = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = _Tee(out, log), _Tee(err, log)
        try:
            yield log
        finally:
            sys.stdout, sys.stderr = out, err
