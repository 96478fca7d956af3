"""``usimul report``: a model folder and points in, one HTML page out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from usimul.cli.options import held_out_option, points_options, supervision_options

if TYPE_CHECKING:
    from usimul.assess import Assessment
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
@click.option(
    "--output",
    "-o",
    default="report.html",
    show_default=True,
    type=click.Path(path_type=Path),
    help="HTML page to make.",
)
@held_out_option
@points_options
@supervision_options
@click.option("--device", default="cpu", show_default=True, help="torch device.")
@click.option("--overwrite", is_flag=True, help="Replace an existing page.")
def command(
    model: Path,
    points: Path,
    supervision: Path | None,
    labels: Path | None,
    column: str | None,
    prior: float | None,
    held_out: bool,
    output: Path,
    device: str,
    overwrite: bool,
    reading: dict[str, Any],
    about: dict[str, Any],
) -> None:
    """Write one HTML page on the classifier in the folder MODEL, judged on POINTS, best ones it was not trained on.

    The page shows how good it is, its training, how the estimate depends on the prior, and its most and least certain
    points. It holds small pictures of them if they are images: mind who may see it. It opens without a network.
    """
    from usimul.assess import Assessment, judge_on_labels, label_free_errors, seems_trained_on
    from usimul.cli.evaluate import labels_of, positive_of, score_all
    from usimul.cli.files import check_new_file, read_labels, read_points, read_supervision, whole_file
    from usimul.cli.predict import check_features, read_classifier
    from usimul.degenerate import degenerate
    from usimul.estimators import judging_prior
    from usimul.report.model import render_model
    from usimul.report.words import verdict
    from usimul.validation import check_prior

    check_new_file(output, (".html", ".htm"), overwrite=overwrite)
    truth = None if labels is None else read_labels(labels, column=column)
    estimator = read_classifier(model, device)
    pool = check_features(estimator, read_points(points, **reading))
    prior = estimator.prior_ if prior is None else check_prior(prior)
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
    found = Assessment(
        n_points=len(scores),
        share_positive=share,
        prior=prior,
        errors={} if tuples is None else label_free_errors(estimator, pool.rows, tuples, prior, scores),
        agreements=[],
        labels=None if positive is None else judge_on_labels(scores[labeled], positive, estimator.calibration_),
        orientation=estimator.orientation_.status,
        calibration=estimator.calibration_,
        trained_points=not held_out and seems_trained_on(estimator, pool.rows),
    )
    constant = degenerate(scores, prior)
    page = render_model(
        estimator,
        found,
        scores,
        name=model.absolute().name,
        points=points.name,
        rows=pool.rows,
        image_shape=_image_shape(estimator, pool),
        ids=pool.ids,
        supervision=tuples,
        made_with=_made_with(model),
        constant=constant,
        command=_command(model, points, supervision, labels, found),
    )
    with whole_file(output, "w") as handle:
        handle.write(page)
    for sentence in verdict(found, constant):
        click.echo(sentence)
    click.echo(f"the whole report: {output}")


def _image_shape(estimator: WeakClassifier, pool: Points) -> tuple[int, int, int] | None:
    return pool.image_shape or estimator.image_shape


def _made_with(model: Path) -> str | None:
    """Return the versions that the model folder names; loading it has found the description whole."""
    made = json.loads((model / "model.json").read_text(encoding="utf-8")).get("made_with", {})
    return ", ".join(f"{name} {version}" for name, version in made.items()) or None


def _command(model: Path, points: Path, supervision: Path | None, labels: Path | None, found: Assessment) -> str:
    """Return the command without the folders, which are nobody else's business."""
    import shlex

    words = ["usimul", "report", model.name, points.name]
    for option, path in (("--supervision", supervision), ("--labels", labels)):
        words += [option, path.name] if path is not None else []
    return shlex.join(words + ([] if found.prior is None else ["--prior", f"{found.prior:g}"]))
