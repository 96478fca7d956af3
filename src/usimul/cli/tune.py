"""``usimul tune``: settings chosen without labels; rows and the refitted model in one folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from usimul.cli.options import points_options, supervision_options

if TYPE_CHECKING:
    from usimul.tuning import Tuning

FILE = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
FILE_OR_FOLDER = click.Path(exists=True, readable=True, path_type=Path)

ROWS, MODEL = "rows.jsonl", "model"


def _parse_grid(texts: tuple[str, ...]) -> dict[str, list[Any]]:
    grid: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name = name.strip()
        if not (name and equals and values.strip()) or any(not value.strip() for value in values.split(",")):
            raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE,VALUE,...", param_hint="--grid")
        if name in grid:
            raise click.BadParameter(f"{name!r} is given twice; put all values into one list.", param_hint="--grid")
        grid[name] = [_value(value.strip()) for value in values.split(",")]
    return grid


def _parse_fixed(texts: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name.strip() and equals and value.strip()):
            raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE.", param_hint="--set")
        read = _value(value.strip())
        found[name.strip()] = tuple(read) if isinstance(read, list) else read
    return found


def _value(text: str) -> Any:
    """Read a number, true, false, none, or a word."""
    if text.lower() == "none":
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


@click.command(epilog="Ctrl-C keeps the rows that are done; the same command without --overwrite continues.")
@click.argument("points", type=FILE_OR_FOLDER)
@click.argument("supervision", type=FILE)
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="Folder for rows and model.")
@click.option("--prior", type=float, help="Share of positives, P(y = +1).")
@click.option(
    "--grid",
    multiple=True,
    required=True,
    metavar="KEY=A,B,...",
    help="Values of a setting: method, model, lr, weight_decay, epochs, ...; repeatable, simplest values first.",
)
@click.option(
    "--set", "fixed", multiple=True, metavar="KEY=VALUE", help="A setting that all candidates have; repeatable."
)
@click.option("--draws", type=int, help="Try so many random draws of the grid instead of all.")
@click.option("--fraction", type=float, help="Share of the points to hold out once.  [default: 0.25]")
@click.option("--folds", type=int, help="Cross-validate in so many folds instead; as many times dearer.")
@click.option(
    "--criterion",
    default="error",
    show_default=True,
    help="`error` rate estimated without labels, or the methods' `own` risk.",
)
@click.option(
    "--rule",
    default="least",
    show_default=True,
    help="`least` risk, or `one-se`: the first within one standard error of it.",
)
@click.option("--seed", default=0, show_default=True, help="Of draws, folds and trainings.")
@click.option("--wrong-yes", default=0.0, show_default=True, help="Share of wrong yes answers to correct for.")
@click.option("--device", default="cpu", show_default=True, help="torch device.")
@points_options
@supervision_options
@click.option("--overwrite", is_flag=True, help="Start anew: replace rows and model of an earlier search.")
def command(
    points: Path,
    supervision: Path,
    output: Path,
    prior: float | None,
    grid: tuple[str, ...],
    fixed: tuple[str, ...],
    draws: int | None,
    fraction: float | None,
    folds: int | None,
    criterion: str,
    rule: str,
    seed: int,
    wrong_yes: float,
    device: str,
    reading: dict[str, Any],
    about: dict[str, Any],
    overwrite: bool,
) -> None:
    """Try settings on POINTS with the tuples of SUPERVISION, choose without labels, and train with the chosen ones.

    The pool is divided first, so that no point that judges is trained on. OUTPUT gets rows.jsonl, a line for each
    candidate as soon as it is done, and the folder model, trained on everything. Everything is checked before the first
    training.
    """
    values, settings = _parse_grid(grid), _parse_fixed(fixed)
    if fraction is not None and folds is not None:
        raise click.UsageError("Pass --fraction or --folds, not both.")
    from usimul.cli.files import read_points, read_supervision

    _check_folder(output, overwrite)
    pool = read_points(points, **reading, fitting=True)
    tuples = read_supervision(supervision, pool, about)

    from usimul.batching import check_device
    from usimul.cli.progress import CountBar
    from usimul.estimators import WeakClassifier
    from usimul.tuning import tune
    from usimul.validation import check_choice

    check_device(device)
    estimator = WeakClassifier(
        prior=prior, wrong_yes=wrong_yes, image_shape=pool.image_shape, device=device, random_state=seed
    )
    for name in settings:
        check_choice(name, estimator.get_params(), "--set")
    estimator.set_params(**settings)
    with CountBar("search", "training") as bar:
        found = tune(
            estimator,
            pool.rows,
            tuples,
            values,
            n_draws=draws,
            cv=folds if folds is not None else 0.25 if fraction is None else fraction,
            criterion=criterion,
            rule=rule,
            random_state=seed,
            refit=False,
            path=output / ROWS,
            progress=bar,
            prepare=lambda: _make_folder(output, overwrite),
        )
    _print(found, output, overwrite)
    if found.interrupted:
        click.get_current_context().exit(130)
    if found.chosen is None:
        click.get_current_context().exit(2)
    _refit(estimator.set_params(**found.settings), pool, tuples, output, overwrite)


def _check_folder(output: Path, overwrite: bool) -> None:
    from usimul.export import check_new_folder
    from usimul.validation import InputError, check_parent

    check_parent(output, "output")
    if output.exists() and not output.is_dir():
        raise InputError(f"{str(output)!r} is a file; name a folder.")
    if not output.exists():
        return
    others = sorted(path.name for path in output.iterdir() if path.name not in (ROWS, MODEL))
    if others or (not (output / ROWS).exists() and any(output.iterdir())):
        raise InputError(
            f"{str(output)!r} holds other things than a search ({', '.join(others[:3]) or MODEL}). Choose another "
            "folder."
        )
    if (output / MODEL).exists() and not overwrite:
        raise InputError(
            f"{str(output)!r} holds a finished search. Choose another folder, or start anew with --overwrite."
        )
    if overwrite and (output / MODEL).exists():
        check_new_folder(output / MODEL, overwrite=True)


def _make_folder(output: Path, overwrite: bool) -> None:
    """Make it when everything was checked and the first training begins."""
    output.mkdir(exist_ok=True)
    if overwrite:
        # The model first: it marks a search as finished, and what is left is one that can be continued.
        if (output / MODEL).exists():
            shutil.rmtree(output / MODEL)
        (output / ROWS).unlink(missing_ok=True)


def _again(overwrite: bool) -> str:
    return "The same command without --overwrite" if overwrite else "The same command"


def _print(found: Tuning, output: Path, overwrite: bool) -> None:
    click.echo(
        f"{'label-free error' if found.criterion == 'error' else 'own risk'} on points held out, rule {found.rule}:"
    )
    for line in found.table():
        click.echo(line)
    if found.dropped_share > 0.0005:
        click.echo(
            f"{100 * found.dropped_share:.1f} % of the tuples lie across the sides of a fold and were left out of it"
        )
    if found.interrupted:
        click.echo(f"The search was interrupted; {len(found.rows)} rows are in {output / ROWS}.", err=True)
        click.echo(f"{_again(overwrite)} continues it.", err=True)


def _refit(estimator: Any, pool: Any, tuples: Any, output: Path, overwrite: bool) -> None:
    from usimul.cli.train import _fit, _save_with_names

    if _fit(estimator, pool, tuples):
        click.echo("The last training was interrupted; no model was saved.", err=True)
        click.echo(f"{_again(overwrite)} trains it again.", err=True)
        click.get_current_context().exit(130)
    _save_with_names(estimator, pool, output / MODEL, overwrite=True)
    click.echo(f"method               {estimator.method_}, model {estimator.model_}, trained on everything")
    click.echo("judge it             on tuples over new points; the least of many estimates is too low")
    click.echo(f"saved to             {output / MODEL}, rows in {output / ROWS}")
