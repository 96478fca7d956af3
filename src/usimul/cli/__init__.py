"""Command line: argument parsing and printing, nothing else.

A command's module is imported when the command runs, so that ``usimul --help`` loads no numerical library.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from usimul import __version__
from usimul.cli.project import NAME, TAKES, defaults_of

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "init": ("usimul.cli.init", "Write a commented project file, usimul.toml, which every command reads."),
    "run": ("usimul.cli.run", "Do the whole way that usimul.toml describes; leave model, report, predictions, log."),
    "demo": ("usimul.cli.demo", "Train four methods on embedded data and compare them; about a minute."),
    "check": ("usimul.cli.check", "Look at points and supervision, and tell every problem found."),
    "prior": ("usimul.cli.prior", "Estimate the share of positives from answers, triplets or some labels."),
    "train": ("usimul.cli.train", "Train a classifier from points and supervision, and save it."),
    "tune": ("usimul.cli.tune", "Try settings, choose among them without labels, and save the chosen model."),
    "predict": ("usimul.cli.predict", "Predict classes and scores with a saved classifier."),
    "export": ("usimul.cli.export", "Export a saved classifier to ONNX, one file that other programs run."),
    "evaluate": ("usimul.cli.evaluate", "Judge a saved classifier without labels, or with them."),
    "calibrate": ("usimul.cli.calibrate", "Calibrate the probabilities of a saved classifier, without labels or with."),
    "report": ("usimul.cli.report", "Write an HTML page on what a saved classifier is worth."),
    "sample": ("usimul.cli.sample", "Draw supervision from labels: a simulated collection."),
    "reproduce": ("usimul.cli.reproduce", "Run the paper's tables and figures, on demand and resumable."),
    "methods": ("usimul.cli.methods", "List the methods, or explain one."),
    "datasets": ("usimul.cli.datasets", "List the data sets that are known by name; get, check, describe."),
}
"""Name of each command, the module that holds it as ``command``, and one line of help."""

INTERRUPTED = 130
WORDS = "usimul.words"  # what stands behind the name of the command


class LazyGroup(click.Group):
    """A group that lists its commands from `COMMANDS` without importing them, and words errors in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the one command that is asked for."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest commands when there is no such one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], COMMANDS, n=2, cutoff=0.5)
            hint = f" Did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        ctx.meta[WORDS] = args[1:]
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what a user did wrong becomes one line and exit code 2, an interruption exit code 130."""
        try:
            with _plain_warnings():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):  # click ends these itself
            raise
        except Exception as error:
            if not _is_expected(error):
                raise
            if ctx.params.get("traceback"):
                traceback.print_exc()
            click.echo(f"error: {error}", err=True)
            ctx.exit(2)


def _is_expected(error: Exception) -> bool:
    """Whether an error says what the user did wrong: one of ours, of the file system, or of scikit-learn's checks."""
    validation = sys.modules.get("usimul.validation")  # not loaded: nothing can have raised its errors
    if validation is not None and isinstance(error, validation.UsimulError):
        return True
    if isinstance(error, OSError):
        return True
    frames = traceback.walk_tb(error.__traceback__)
    return isinstance(error, (ValueError, TypeError)) and any(
        frame.f_globals.get("__name__", "").startswith("sklearn.utils.validation") for frame, _ in frames
    )


@contextlib.contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show warnings as one line, without the source line that caused them."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: click.echo(f"warning: {message}", err=True)
        yield


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="usimul")
@click.option(
    "--traceback/--no-traceback", envvar="USIMUL_TRACEBACK", default=False, help="Show where an error came from."
)
@click.option(
    "--project",
    type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path),
    help="Project file. Default: usimul.toml in this folder, if there is one.",
)
@click.option("--no-project", is_flag=True, help="Read no project file.")
@click.pass_context
def main(ctx: click.Context, traceback: bool, project: Path | None, no_project: bool) -> None:
    """Train a classifier when nobody may see labels: from uncertain-similarity triplets and unlabeled points.

    In a folder with a project file, usimul.toml, commands take from it what is not given (`usimul init` writes one).
    """
    command = ctx.invoked_subcommand
    path = Path(NAME) if project is None and Path(NAME).is_file() else project
    if no_project or path is None or command not in TAKES or {"-h", "--help"} & set(ctx.meta[WORDS]):
        return
    from usimul.project import read_project

    ctx.obj = read_project(path)
    defaults = defaults_of(ctx.obj, command)
    if defaults and project is None:  # taken without being named
        click.echo(f"project              {path}", err=True)
    ctx.default_map = {command: defaults}
