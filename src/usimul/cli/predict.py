"""``usimul predict``: a model folder and points in, predictions out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from usimul.cli.options import points_options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from usimul.cli.files import Points
    from usimul.estimators import WeakClassifier


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("points", type=click.Path(exists=True, readable=True, path_type=Path))
@click.option(
    "--output", "-o", required=True, type=click.Path(path_type=Path), help="File to make: .csv, .parquet or .npy."
)
@click.option("--proba", is_flag=True, help="Add the probability of the positive class.")
@points_options
@click.option("--device", default="cpu", show_default=True, help="torch device.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
def command(
    model: Path, points: Path, output: Path, proba: bool, device: str, overwrite: bool, reading: dict[str, Any]
) -> None:
    """Predict the class and score of every point of POINTS with the classifier saved in the folder MODEL.

    POINTS may be all that `usimul train` takes, of any length: they are read, and predictions written, part by part.
    The output has the columns row, label, score, with id in place of row if the points have ids; a .npy file is a
    structured array with the same fields. A score of at least 0 means the positive class.
    """
    from usimul.files import check_new_file
    from usimul.prediction import SUFFIXES, predict_file

    check_new_file(output, SUFFIXES, overwrite=overwrite)
    estimator = read_classifier(model, device)

    from usimul.cli.progress import RowBar

    with RowBar() as bar:
        found = predict_file(
            estimator, points, output, proba=proba, overwrite=overwrite, device=device, progress=bar, **reading
        )
    if proba:
        _say_what_probability_means(estimator)
    share = found.n_positive / found.n_rows
    click.echo(f"{found.n_rows:,} predictions, {share:.1%} of them {estimator.classes_[1]!s}, in {output}")


def read_classifier(path: Path, device: str) -> WeakClassifier:
    """Load a model folder; a file is no classifier."""
    from usimul.export import load_classifier

    return load_classifier(path, device=device)


def check_features(estimator: WeakClassifier, pool: Points) -> Points:
    """Return the points with the features that the classifier was trained on, by name if both have names."""
    from dataclasses import replace

    from usimul.prediction import feature_order

    order = feature_order(estimator, pool.n_features, pool.feature_names, pool.source)
    if pool.feature_names is not None and hasattr(estimator, "feature_names_in_"):
        # The rows are in the right order now, and scikit-learn would ask for their names.
        names = tuple(estimator.feature_names_in_)
        del estimator.feature_names_in_
        if order is not None:
            return replace(pool, rows=pool.rows[:, order], feature_names=names)
    return pool


def predictions(estimator: WeakClassifier, pool: Points) -> Iterator[tuple[int, NDArray[Any], NDArray[np.float64]]]:
    """Yield the first row's number, labels, and scores, chunk by chunk."""
    for start, part in pool.chunks():
        scores = estimator.decision_function(part)
        yield start, estimator.classes_[(scores >= 0).astype(int)], scores


def _say_what_probability_means(estimator: WeakClassifier) -> None:
    from usimul.methods import get_method

    if estimator.calibration_.kind != "none":
        click.echo(f"probabilities are {estimator.calibration_.explain()}")
    elif not get_method(estimator.method_).probability:
        click.echo(
            f"note: the probabilities of method {estimator.method_!r} are a monotone map of the score, not calibrated.",
            err=True,
        )
