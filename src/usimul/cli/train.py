"""``usimul train``: points and a supervision file in, a model folder out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from usimul.cli.options import points_options, supervision_options

if TYPE_CHECKING:
    from usimul.cli.files import Points
    from usimul.estimators import WeakClassifier
    from usimul.supervision import Supervision

FILE = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
FILE_OR_FOLDER = click.Path(exists=True, readable=True, path_type=Path)


def _parse_option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE.", param_hint="--option")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value  # a plain word


def _parse_shape(text: str | None) -> tuple[int, int, int] | None:
    if text is None:
        return None
    try:
        channels, height, width = (int(side) for side in text.split(","))
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not of the form CHANNELS,HEIGHT,WIDTH.", param_hint="--image-shape"
        ) from None
    return channels, height, width


@click.command(epilog="Ctrl-C saves what was trained so far, marked as interrupted.")
@click.argument("points", type=FILE_OR_FOLDER)
@click.argument("supervision", type=FILE)
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="Model folder to make.")
@click.option(
    "--prior",
    type=float,
    help="Share of positives, P(y = +1). Needed by all methods but supervised.",
)
@click.option("--method", default="joint", show_default=True, help="See `usimul methods`; `auto` lets data decide.")
@click.option("--model", default="mlp", show_default=True, help="Network; `auto` chooses between two MLPs.")
@click.option("--epochs", type=int, help="Default: the method's recipe.")
@click.option("--batch-size", type=int, help="Tuples in one step. Default: the method's recipe.")
@click.option("--lr", type=float, help="Learning rate. Default: the method's recipe.")
@click.option("--loss", help="Default: the method's own.")
@click.option("--seed", default=0, show_default=True, help="Same seed, same machine: same bits.")
@click.option("--device", default="cpu", show_default=True, help="torch device.")
@click.option(
    "--selection",
    default="last",
    show_default=True,
    help="`last` epoch, or the epoch with the least `label-free` risk on held-out points (tuples, if few are apart).",
)
@click.option("--patience", type=int, help="With `label-free`: stop after so many epochs without improvement.")
@click.option("--prior-check", default="error", show_default=True, help="`error`, `warn` or `ignore`.")
@click.option("--wrong-yes", default=0.0, show_default=True, help="Share of wrong yes answers to correct for.")
@click.option("--scaling", default="auto", show_default=True, help="`auto`, `feature`, `global` or `none`.")
@click.option("--image-shape", help="CHANNELS,HEIGHT,WIDTH of one row, for cnn and resnet34 on flat points.")
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="Option of the method; repeatable.")
@points_options
@supervision_options
@click.option("--overwrite", is_flag=True, help="Replace an existing model folder.")
@click.option("--discard-on-interrupt", is_flag=True, help="Ctrl-C saves nothing.")
def command(
    points: Path,
    supervision: Path,
    output: Path,
    seed: int,
    options: tuple[str, ...],
    image_shape: str | None,
    reading: dict[str, Any],
    about: dict[str, Any],
    overwrite: bool,
    discard_on_interrupt: bool,
    **settings: Any,
) -> None:
    """Train a classifier on POINTS with the tuples of SUPERVISION, and save it as a folder.

    POINTS is .npy, .npz, a table (.csv, .parquet, .jsonl) with one point a row, or a folder or .zip of images.
    SUPERVISION is .npz, or a table with one tuple a row. `usimul check` looks at both and changes nothing.
    Everything is checked before training starts.
    """
    chosen = dict(_parse_option(text) for text in options)
    shape = _parse_shape(image_shape)
    from usimul.cli.files import read_points, read_supervision

    pool = read_points(points, **reading, fitting=True)
    tuples = read_supervision(supervision, pool, about)

    from usimul.batching import check_device
    from usimul.estimators import WeakClassifier
    from usimul.export import check_new_folder
    from usimul.validation import InputError

    if shape is not None and pool.image_shape not in (None, shape):
        raise InputError(
            f"--image-shape must be that of the images in {str(points)!r}, {pool.image_shape}. Got {shape}. "
            "Leave it out, or save the points as flat rows."
        )
    check_new_folder(output, overwrite=overwrite)
    check_device(settings["device"])
    estimator = WeakClassifier(
        **settings,
        image_shape=shape or pool.image_shape,
        options=chosen or None,
        random_state=seed,
    )
    interrupted = _fit(estimator, pool, tuples)
    _finish(estimator, pool, tuples, output, interrupted, overwrite, discard_on_interrupt)


def _fit(estimator: WeakClassifier, pool: Points, tuples: Supervision) -> bool:
    """Train; return whether the user interrupted it."""
    from usimul.cli.progress import EpochBar

    with EpochBar() as bar:
        try:
            estimator.fit(pool.rows, tuples, progress=bar)
        except KeyboardInterrupt:
            return True
    return False


def _finish(
    estimator: WeakClassifier,
    pool: Points,
    tuples: Supervision,
    output: Path,
    interrupted: bool,
    overwrite: bool,
    discard: bool,
) -> None:
    if interrupted and (discard or not hasattr(estimator, "module_")):
        why = "as asked" if hasattr(estimator, "module_") else "nothing was trained yet"
        click.echo(f"Training was interrupted; nothing was saved ({why}).", err=True)
        click.get_current_context().exit(130)
    _save_with_names(estimator, pool, output, overwrite)
    if interrupted:
        tried, trained = len(getattr(estimator, "auto_", [])), len(estimator.history_["risk"])
        when = f"after epoch {trained}" if trained else "within the first epoch"
        what = "the model at that moment"
        if tried:
            when = "while candidates were compared"
            what = f"the best of the {tried} tried, method {estimator.method_}, model {estimator.model_},"
        click.echo(f"Training was interrupted {when}; {what} was saved to {output}, marked as interrupted.", err=True)
        click.get_current_context().exit(130)
    _report(estimator, pool, tuples, output)


def _save_with_names(estimator: WeakClassifier, pool: Points, output: Path, overwrite: bool) -> None:
    """Save the names of the features too; afterwards scikit-learn would miss them in the plain rows of a report."""
    import numpy as np

    from usimul.export import save

    if pool.feature_names is not None:
        estimator.feature_names_in_ = np.array(pool.feature_names, dtype=object)
    save(estimator, output, overwrite=overwrite)
    if pool.feature_names is not None:
        del estimator.feature_names_in_


def _report(estimator: WeakClassifier, pool: Points, tuples: Supervision, output: Path) -> None:
    import warnings

    import numpy as np

    from usimul.cli.judge import orientation_line, risk_lines, share_line
    from usimul.validation import PriorMismatchWarning

    history = estimator.history_
    trained = len(history["risk"])
    again = f", started again {estimator.n_restarts_} times" if estimator.n_restarts_ else ""
    click.echo(f"method               {estimator.method_}, model {estimator.model_}")
    stopped = ", then stopped for want of improvement" if estimator.stopped_ else ""
    click.echo(f"epochs               {trained} trained{stopped}, epoch {estimator.n_epochs_} kept{again}")
    click.echo(f"time                 {sum(history['seconds']):.1f} s")
    for row in getattr(estimator, "auto_", []):
        click.echo(f"  tried              {row['method']}, {row['model']}: label-free risk {row['weak_risk']:.4f}")
    if estimator.held_out_ == "points":
        click.echo("held-out risk        chose among them, on points that were not trained on; the least of several")
        click.echo("                     estimates is a little too low: judge on new points")
    elif estimator.held_out_ == "tuples":
        click.echo("held-out risk        chose among them; too low where points are memorised, because the held-out")
        click.echo("                     tuples are made of points that were trained on: judge on new points")
    click.echo("error estimate on the tuples it was trained on (too good; judge with `usimul evaluate` on new points):")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorMismatchWarning)  # fit has given it
        for line in risk_lines(estimator, pool.rows, tuples):
            click.echo(line)
    positive = [np.mean(estimator.decision_function(part) >= 0) * len(part) for _, part in pool.chunks()]
    share = float(sum(positive) / len(pool.rows))
    click.echo(share_line(share, estimator.prior_))
    click.echo(orientation_line(estimator))
    if estimator.wrong_yes_:
        click.echo(f"wrong yes answers    {estimator.wrong_yes_:g} of them, as stated; corrected for")
    click.echo(f"saved to             {output}")
