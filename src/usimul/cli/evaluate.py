"""``usimul evaluate``: how good a saved classifier is, without labels or with them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from usimul.cli.options import held_out_option, points_options, supervision_options

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
@click.option("--labels", type=FILE, help="Labels, .npy or a table: of some points by ids, else of all in order.")
@click.option("--column", help="Column of labels in a table. Default: label, or the only one.")
@click.option("--prior", type=float, help="Share of positives in POINTS. Default: the prior of the training.")
@click.option("--wrong-yes", type=float, help="Share of wrong yes answers. Default: the one of the training.")
@click.option(
    "--agreement",
    "others",
    multiple=True,
    metavar="MODEL",
    type=click.Path(path_type=Path),
    help="Another model folder, such as of another seed: how often both say the same; repeatable.",
)
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Also write all figures to a .json file.")
@click.option("--overwrite", is_flag=True, help="Replace an existing .json file.")
@held_out_option
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
    held_out: bool,
    others: tuple[Path, ...],
    json_file: Path | None,
    overwrite: bool,
    device: str,
    reading: dict[str, Any],
    about: dict[str, Any],
) -> None:
    """Judge the classifier saved in the folder MODEL on POINTS: by fresh tuples without labels, or by labels."""
    if supervision is None and labels is None and not others:
        raise click.UsageError(
            "Pass --supervision FILE (no labels needed), --labels FILE, --agreement MODEL, or several of them."
        )
    from dataclasses import asdict

    from usimul.assess import TRAINED_POINTS, agreement, judge_on_labels, label_free_errors, seems_trained_on
    from usimul.cli.files import check_new_file, read_labels, read_points, read_supervision, whole_file
    from usimul.cli.judge import error_lines, label_lines, orientation_line, share_line
    from usimul.cli.predict import check_features, read_classifier
    from usimul.degenerate import degenerate
    from usimul.estimators import judging_prior
    from usimul.validation import check_prior, check_real

    if json_file is not None:
        check_new_file(json_file, (".json",), overwrite=overwrite)
    truth = None if labels is None else read_labels(labels, column=column)
    estimator = read_classifier(model, device)
    companions = [(str(path), read_classifier(path, device)) for path in others]
    raw = read_points(points, **reading)
    pool = check_features(estimator, raw)
    prior = estimator.prior_ if prior is None else check_prior(prior)
    if wrong_yes is not None:
        check_real(wrong_yes, "wrong_yes", low=0.0, high=1.0)
    tuples = None if supervision is None else read_supervision(supervision, pool, about)
    if tuples is not None:
        tuples.check_pool(len(pool.rows))
        judging_prior(estimator, tuples, prior)
    labeled, positive = None, None
    if truth is not None:
        labeled, named = labels_of(truth, pool, labels, about["by"])
        positive = positive_of(named, estimator)
    scores = score_all(estimator, pool)
    share = float((scores >= 0).mean())
    click.echo(f"method               {estimator.method_}, model {estimator.model_}")
    click.echo(f"points               {len(scores):,}")
    click.echo(share_line(share, prior))
    click.echo(orientation_line(estimator))
    click.echo(f"probabilities        {estimator.calibration_.explain()}")
    record: dict[str, Any] = {
        "model": str(model),
        "points": str(points),
        "method": estimator.method_,
        "n_points": len(scores),
        "predicted_positive": share,
        "prior": prior,
        "orientation": estimator.orientation_.status,
        "calibration": asdict(estimator.calibration_),
        "errors": {},
        "agreement": [],
        "labels": None,
    }
    trained = False
    if tuples is not None:
        errors = label_free_errors(estimator, pool.rows, tuples, prior, scores, wrong_yes)
        click.echo(f"error estimated without labels, from {tuples.n_tuples:,} tuples (too low if it saw these points):")
        for line in error_lines(errors):
            click.echo(line)
        record["errors"] = {kind: e if isinstance(e, str) else asdict(e) for kind, e in errors.items()}
        trained = not held_out and seems_trained_on(estimator, pool.rows)
        record["trained_points"] = trained
    if companions:
        click.echo("the same said by     share of points, and beyond chance (kappa):")
    for name, other in companions:
        found = agreement(scores, score_all(other, check_features(other, raw)), name)
        record["agreement"].append(asdict(found))
        kappa = "-" if found.kappa is None else f"{found.kappa:.3f}"
        swapped = ", with its classes swapped" if found.swapped else ""
        click.echo(f"  {found.share:.4f}             kappa {kappa}   {name}{swapped}")
    if positive is not None:
        measured = judge_on_labels(scores[labeled], positive, estimator.calibration_)
        for line in label_lines(measured, estimator.orientation_.status == "unknown"):
            click.echo(line)
        record["labels"] = asdict(measured)
    words = degenerate(scores, prior)
    record["degenerate"] = words
    if words:
        click.echo(f"warning: {words}", err=True)
    if trained:
        click.echo(f"warning: {TRAINED_POINTS}", err=True)
    if json_file is not None:
        with whole_file(json_file, "w") as handle:
            json.dump(_finite(record), handle, indent=2, allow_nan=False)
            handle.write("\n")


def score_all(estimator: WeakClassifier, pool: Points) -> NDArray[np.float64]:
    """Return the scores of all points, computed chunk by chunk."""
    import numpy as np

    from usimul.cli.predict import predictions

    return np.concatenate([part for _, _, part in predictions(estimator, pool)])


def _finite(value: Any) -> Any:
    """Put null in place of numbers that JSON does not know."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def labels_of(
    found: tuple[NDArray[Any], tuple[str, ...] | None], pool: Points, path: Path | None, by: str | None
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the rows of the points that have a label, and their labels; by ids if both have some, else by order.

    Without ids every point must have one. That only some have is said.
    """
    import numpy as np

    from usimul.validation import InputError, Problems

    truth, ids = found
    n = len(pool.rows)
    if ids is not None and pool.ids is None and by != "rows":
        raise InputError(
            f"{str(path)!r} names points by ids, but the points of {pool.source!r} have none to compare with. "
            "Name points that have ids, or pass --by rows if both files stand in the same order."
        )
    if ids is None or pool.ids is None:
        if len(truth) != n:
            raise InputError(
                f"there must be one label for each point, {n}. Got {len(truth)}. Name the labels of these points, or "
                "give points and labels ids if only some have a label."
            )
        return np.arange(n), truth
    place = {name: row for row, name in enumerate(pool.ids)}
    problems = Problems(str(path))
    for name in ids:
        if name not in place:
            problems.add(f"Labels must be of points of {pool.source!r}", f"{name!r} is none of them")
    problems.refuse()
    if len(ids) < n:
        click.echo(f"labels               {len(ids):,} of {n:,} points have a label")
    return np.array([place[name] for name in ids], dtype=np.int64), truth


def positive_of(truth: NDArray[Any], estimator: WeakClassifier) -> NDArray[np.bool_]:
    """Whether each label is the positive class; any third label is an error."""
    import numpy as np

    from usimul.validation import check_class_labels

    classes = estimator.classes_.tolist()
    return np.asarray(check_class_labels(truth, classes, "labels") == classes[1], dtype=np.bool_)
