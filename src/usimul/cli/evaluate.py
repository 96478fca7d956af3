"""``usimul evaluate``: how good a saved classifier is, without labels or with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from usimul.cli.options import points_options, supervision_options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from usimul.cli.files import Points
    from usimul.estimators import WeakClassifier

FILE = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
FILE_OR_FOLDER = click.Path(exists=True, readable=True, path_type=Path)


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("points", type=FILE_OR_FOLDER)
@click.option("--supervision", type=FILE, help="Tuples over the rows of POINTS, not trained on: label-free estimate.")
@click.option("--labels", type=FILE, help="Label of each point, .npy or a table, by ids if it has some: accuracy.")
@click.option("--column", help="Column of labels in a table. Default: label, or the only one.")
@click.option("--prior", type=float, help="Share of positives in POINTS. Default: the prior of the training.")
@click.option("--wrong-yes", type=float, help="Share of wrong yes answers. Default: the one of the training.")
@points_options
@supervision_options
@click.option("--device", default="cpu", show_default=True, help="torch device.")
def command(
    model: Path,
    points: Path,
    supervision: Path | None,
    labels: Path | None,
    column: str | None,
    prior: float | None,
    wrong_yes: float | None,
    device: str,
    reading: dict[str, Any],
    about: dict[str, Any],
) -> None:
    """Judge the classifier saved in the folder MODEL on POINTS: by fresh tuples without labels, or by labels."""
    if supervision is None and labels is None:
        raise click.UsageError("Pass --supervision FILE (no labels needed), --labels FILE, or both.")
    import numpy as np

    from usimul.cli.files import read_labels, read_points, read_supervision
    from usimul.cli.judge import orientation_line, risk_lines, share_line
    from usimul.cli.predict import check_features, predictions, read_classifier
    from usimul.degenerate import degenerate
    from usimul.estimators import judging_prior
    from usimul.validation import check_prior, check_real

    truth = None if labels is None else read_labels(labels, column=column)
    estimator = read_classifier(model, device)
    pool = read_points(points, **reading)
    pool = check_features(estimator, pool)
    prior = estimator.prior_ if prior is None else check_prior(prior)
    if wrong_yes is not None:
        check_real(wrong_yes, "wrong_yes", low=0.0, high=1.0)
    tuples = None if supervision is None else read_supervision(supervision, pool, about)
    if tuples is not None:
        tuples.check_pool(len(pool.rows))
        judging_prior(estimator, tuples, prior)
    positive = (
        None if truth is None else _positive(_by_ids(*truth, pool, labels, about["by"]), estimator, len(pool.rows))
    )
    scores = np.concatenate([part for _, _, part in predictions(estimator, pool)])
    share = float(np.mean(scores >= 0))
    click.echo(f"method               {estimator.method_}, model {estimator.model_}")
    click.echo(f"points               {len(scores):,}")
    click.echo(share_line(share, prior))
    click.echo(orientation_line(estimator))
    if tuples is not None:
        click.echo(f"error estimated without labels, from {tuples.n_tuples:,} tuples (too low if it saw these points):")
        for line in risk_lines(estimator, pool.rows, tuples, prior, wrong_yes):
            click.echo(line)
    if positive is not None:
        _print_metrics(np.where(positive, 1, -1), scores, estimator.orientation_.status == "unknown")
    words = degenerate(scores, prior)
    if words:
        click.echo(f"warning: {words}", err=True)


def _by_ids(
    truth: NDArray[Any], ids: tuple[str, ...] | None, pool: Points, path: Path | None, by: str | None
) -> NDArray[Any]:
    """Return the labels in the order of the points, if both have ids."""
    from usimul.validation import InputError, Problems

    if ids is not None and pool.ids is None and by != "rows":
        raise InputError(
            f"{str(path)!r} names points by ids, but the points of {pool.source!r} have none to compare with. "
            "Name points that have ids, or pass --by rows if both files stand in the same order."
        )
    if ids is None or pool.ids is None:
        return truth
    place = {name: row for row, name in enumerate(ids)}
    problems = Problems(pool.source)
    for name in pool.ids:
        if name not in place:
            problems.add("Every point needs a label", f"{name!r} has none")
    problems.refuse()
    return truth[[place[name] for name in pool.ids]]


def _positive(truth: NDArray[Any], estimator: WeakClassifier, n: int) -> NDArray[np.bool_]:
    """Whether each label is the positive class; any third label is an error."""
    import numpy as np

    from usimul.validation import InputError, check_class_labels

    if len(truth) != n:
        raise InputError(
            f"there must be one label for each point, {n}. Got {len(truth)}. Name the labels of these points."
        )
    classes = estimator.classes_.tolist()
    return np.asarray(check_class_labels(truth, classes, "labels") == classes[1], dtype=np.bool_)


def _print_metrics(y: NDArray[Any], scores: NDArray[np.float64], swap: bool) -> None:
    from usimul.metrics import accuracy, accuracy_up_to_swap, area_under_curve, balanced_accuracy

    share = float((y > 0).mean())
    click.echo(f"measured on {len(y):,} labels, share of positives {share:.3f}:")
    click.echo(f"  accuracy           {accuracy(y, scores):.4f}")
    if swap:
        click.echo(f"  up to a swap       {accuracy_up_to_swap(y, scores):.4f}   (the class names are unknown)")
    if 0.0 < share < 1.0:
        click.echo(f"  balanced accuracy  {balanced_accuracy(y, scores):.4f}")
        click.echo(f"  AUC                {area_under_curve(y, scores):.4f}")
    else:
        click.echo("  balanced accuracy  -   (labels of one class only)")
        click.echo("  AUC                -")
