"""``usimul calibrate``: a model folder in, the same model with calibrated probabilities out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from usimul.cli.options import held_out_option, points_options, supervision_options

FILE = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
FILE_OR_FOLDER = click.Path(exists=True, readable=True, path_type=Path)


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("points", type=FILE_OR_FOLDER)
@click.option("--supervision", type=FILE, help="Tuples over the rows of POINTS: no labels needed.")
@click.option("--labels", type=FILE, help="Labels, .npy or a table: of some points by ids, else of all in order.")
@click.option("--column", help="Column of labels in a table. Default: label, or the only one.")
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="Model folder to make.")
@held_out_option
@points_options
@supervision_options
@click.option("--device", default="cpu", show_default=True, help="torch device.")
@click.option("--overwrite", is_flag=True, help="Replace an existing model folder.")
def command(
    model: Path,
    points: Path,
    supervision: Path | None,
    labels: Path | None,
    column: str | None,
    output: Path,
    device: str,
    overwrite: bool,
    held_out: bool,
    reading: dict[str, Any],
    about: dict[str, Any],
) -> None:
    """Calibrate the probabilities of the classifier in the folder MODEL by one temperature, on POINTS.

    POINTS should be new ones, with the share of positives that predictions will be made for. Predicted classes and
    scores stay as they are; `usimul predict --proba` of the new folder gives the calibrated probabilities.
    """
    if (supervision is None) == (labels is None):
        raise click.UsageError("Pass either --supervision FILE (no labels needed) or --labels FILE.")
    import numpy as np

    from usimul.assess import calibrate
    from usimul.cli.evaluate import labels_of, positive_of
    from usimul.cli.files import read_labels, read_points, read_supervision
    from usimul.cli.predict import check_features, read_classifier
    from usimul.export import check_new_folder, save
    from usimul.supervision import Labels

    check_new_folder(output, overwrite=overwrite)
    truth = None if labels is None else read_labels(labels, column=column)
    estimator = read_classifier(model, device)
    names = getattr(estimator, "feature_names_in_", None)
    pool = check_features(estimator, read_points(points, **reading))
    if supervision is not None:
        made = calibrate(estimator, pool.rows, read_supervision(supervision, pool, about), held_out=held_out)
    else:
        assert truth is not None
        labeled, named = labels_of(truth, pool, labels, about["by"])
        values = np.where(positive_of(named, estimator), 1, -1)
        known = Labels(labeled[:, None], values=values, n_points=len(pool.rows))
        made = calibrate(estimator, pool.rows, known, held_out=held_out)
    if names is not None:
        made.feature_names_in_ = names
    save(made, output, overwrite=overwrite)
    click.echo(f"probabilities        {made.calibration_.explain()}")
    if made.calibration_.temperature > 1.05:
        click.echo("                     they were too sure of themselves before")
    elif made.calibration_.temperature < 0.95:
        click.echo("                     they were not sure enough before")
    click.echo(f"saved to             {output}")
