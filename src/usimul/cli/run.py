"""``usimul run``: the whole way that a project file describes, in one folder."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from usimul.cli.project import NAME, PRIOR_FILE, about_of, defaults_of, reading_of

if TYPE_CHECKING:
    from usimul.project import Project

LEARN, HELD_OUT, EVALUATION = "learn.npz", "held_out.npz", "evaluation.json"
FEW = 30  # tuples: fewer leave a standard error of a tenth or more


@dataclass(frozen=True)
class Step:
    """One command of the way, with every word that it needs, and what it leaves."""

    title: str
    words: tuple[str, ...]
    leaves: Path | None = None

    @property
    def line(self) -> str:
        """As it can be typed."""
        return shlex.join(("usimul", *self.words))


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
    _check_whole(project)
    folder = project.folder
    state = _State(folder / "state.json", _fingerprint(project))
    if overwrite:
        state.forget()
    state.check()
    folder.mkdir(parents=True, exist_ok=True)
    with _log(folder / "log.txt"):
        for step in _steps(project, folder):
            _do(step, state)
        click.echo(f"\ndone                 {folder}")


def _check_whole(project: Project) -> None:
    """Look at all that can be looked at before anything is read: whether a whole way is described, and known names."""
    from usimul.losses import LOSSES
    from usimul.methods import get_method
    from usimul.models import MODELS
    from usimul.validation import InputError, check_choice

    for section in ("points", "supervision"):
        project.need(section, "path")
    method = project.get("training", "method", "joint")
    needed = method == "auto" or get_method(method).needs_prior
    if needed and project.get("prior", "value") is None and project.get("prior", "estimate") is None:
        raise InputError(
            f"{str(project.path)!r} must say in [prior] either `value`, the share of positives, or `estimate` and "
            "`side`, to have it estimated."
        )
    check_choice(project.get("training", "model", "mlp"), (*MODELS, "auto"), "[training] model")
    loss = project.get("training", "loss")
    if loss is not None:
        check_choice(loss, LOSSES, "[training] loss")


def _do(step: Step, state: _State) -> None:
    """Call the command of a step, unless an earlier call has ended well."""
    from usimul.cli import main

    if state.done(step):
        click.echo(f"\n== {step.title}: done before")
        return
    click.echo(f"\n== {step.title}\n$ {step.line}")
    there = step.leaves is not None and step.leaves.exists()  # of a step that did not end, or of another run
    words = [*step.words, *(["--overwrite"] if there else [])]
    code = main.main(args=words, prog_name="usimul", standalone_mode=False)
    if code:
        click.echo(f"\nstopped at: {step.title}. Mend what is said above and call `usimul run` again.", err=True)
        click.get_current_context().exit(int(code))
    state.note(step)


def _words(project: Project, name: str, **changes: Any) -> tuple[str, ...]:
    """Write a command with all that the project says, as one types it; a change to None leaves a parameter out."""
    from usimul.cli import main

    known = main.get_command(click.get_current_context(), name)
    assert known is not None
    given = {key: value for key, value in {**defaults_of(project, name), **changes}.items() if value is not None}
    arguments: list[str] = []
    options: list[str] = []
    for parameter in known.params:
        value = given.pop(parameter.name or "", None)
        if value is None:
            continue
        if isinstance(parameter, click.Argument):
            arguments += [str(part) for part in (value if parameter.nargs == -1 else [value])]
            continue
        option = max(parameter.opts, key=len)
        if isinstance(parameter, click.Option) and parameter.is_flag:
            options += [option] if value else []
        elif parameter.multiple:
            options += [word for part in value for word in (option, str(part))]
        else:
            options += [option, *(str(part) for part in (value if parameter.nargs > 1 else [value]))]
    assert not given, (name, given)
    return ("--no-project", name, *arguments, *options)


def _steps(project: Project, folder: Path) -> Iterator[Step]:
    """Yield the steps one by one, because later ones depend on what earlier ones left."""
    yield Step("check", _words(project, "check"))
    if project.get("prior", "estimate") is not None:
        prior = folder / PRIOR_FILE
        yield Step("prior", _words(project, "prior", json_file=prior), prior)
    kept = _split(project, folder)
    model = folder / "model"
    # The parts say all about themselves; the counts of questions belong to the whole, and were looked at above.
    part = {**dict.fromkeys(about_of(project)), "supervision": folder / LEARN} if kept else {}
    yield Step("training", _words(project, "train", output=model, **part), model)
    judged: dict[str, Any] = {}
    if kept:
        judged = {"points": project.get("points", "path"), "supervision": folder / HELD_OUT, "held_out": True}
        judged.update(dict.fromkeys(("kind", "by", "world")))
    found = folder / EVALUATION
    if kept or project.get("judging", "points") is not None:
        yield Step("judging", _words(project, "evaluate", json_file=found, **judged), found)
    else:
        found.unlink(missing_ok=True)
        judged = {"points": project.get("points", "path"), **dict.fromkeys(("kind", "by", "world"))}
        click.echo("\n== judging: left out, because nothing that was not trained on is there to judge by")
    predictions = folder / project.get("output", "predictions", "predictions.csv")
    yield Step("predictions", _words(project, "predict", proba=True, output=predictions), predictions)
    report = folder / "report.html"
    yield Step("report", _words(project, "report", output=report, **judged), report)


def _split(project: Project, folder: Path) -> bool:
    """Write the answers to learn from, and those over points that are kept from it; return whether some are kept."""
    from usimul.cli.files import read_points, read_supervision
    from usimul.splits import inside, pool_split

    share = project.get("judging", "held_out", 0.0)
    if share:
        pool = read_points(Path(project.need("points", "path")), **reading_of(project))
        answers = read_supervision(Path(project.need("supervision", "path")), pool, about_of(project))
        parts = pool_split(answers, share, random_state=project.get("training", "seed", 0))
        click.echo(f"\n== split: {parts}")
        if parts.n_test >= FEW:
            inside(answers, parts.train).save(folder / LEARN, overwrite=True)
            inside(answers, parts.test).save(folder / HELD_OUT, overwrite=True)
            return True
        click.echo("   too few are held out to judge by, so all answers are learned from and nothing is judged.")
    for name in (LEARN, HELD_OUT):  # of an earlier run: nothing may be judged by them now
        (folder / name).unlink(missing_ok=True)
    return False


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
        return there and self._steps.get(step.title) == step.line

    def note(self, step: Step) -> None:
        """Keep that the step has ended."""
        from usimul.files import whole_file

        self._steps[step.title] = step.line
        with whole_file(self._path, "w") as handle:
            json.dump({"version": 1, "project": self._project, "steps": self._steps}, handle, indent=1)


def _fingerprint(project: Project) -> str:
    """Return a hash of the settings, and of size and time of change of the files that they name."""
    named = [value for values in project.given.values() for value in values.values() if isinstance(value, Path)]
    files = [file for path in named for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
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
