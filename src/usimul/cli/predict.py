"""``usimul predict``: a model folder and points in, predictions out."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from usimul.cli.files import Points
    from usimul.estimators import WeakClassifier


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("points", type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path))
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="File to make: .csv or .npy.")
@click.option("--proba", is_flag=True, help="Add the probability of the positive class.")
@click.option("--key", help="Name of the array in a .npz file of points. Default: X, or the only one.")
@click.option("--device", default="cpu", show_default=True, help="torch device.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
def command(
    model: Path, points: Path, output: Path, proba: bool, key: str | None, device: str, overwrite: bool
) -> None:
    """Predict the class and score of every row of POINTS with the classifier saved in the folder MODEL.

    A .csv file has the columns row, label, score; a .npy file is a structured array with the same fields. A score of at
    least 0 means the positive class.
    """
    from usimul.cli.files import check_new_file, read_points, whole_file

    check_new_file(output, (".csv", ".npy"), overwrite=overwrite)
    estimator = read_classifier(model, device)
    pool = read_points(points, key)
    check_features(estimator, pool)
    columns = ["row", "label", "score"] + ["probability"] * proba
    n_positive = 0
    if output.suffix == ".csv":
        with whole_file(output, "w") as handle:
            writer = csv.writer(handle, lineterminator="\n")
            writer.writerow(columns)
            for start, labels, scores in predictions(estimator, pool):
                n_positive += int((scores >= 0).sum())
                table: list[Any] = [range(start, start + len(labels)), labels.tolist(), (f"{s:.9g}" for s in scores)]
                if proba:
                    table.append(f"{p:.9g}" for p in _probability(scores))
                writer.writerows(zip(*table, strict=True))
    else:
        import numpy as np

        kinds = [np.dtype(np.int64), estimator.classes_.dtype, np.dtype(np.float64), np.dtype(np.float64)]
        if kinds[1].hasobject:
            kinds[1] = np.array(estimator.classes_.tolist()).dtype
        found = np.empty(len(pool.rows), dtype=list(zip(columns, kinds, strict=False)))
        found["row"] = np.arange(len(found))
        for start, labels, scores in predictions(estimator, pool):
            part = found[start : start + len(labels)]
            part["label"], part["score"] = labels, scores
            if proba:
                part["probability"] = _probability(scores)
            n_positive += int((scores >= 0).sum())
        with whole_file(output) as handle:
            np.save(handle, found, allow_pickle=False)
    if proba:
        _say_what_probability_means(estimator)
    share = n_positive / len(pool.rows)
    click.echo(f"{len(pool.rows):,} predictions, {share:.1%} of them {estimator.classes_[1]!s}, in {output}")


def read_classifier(path: Path, device: str) -> WeakClassifier:
    """Load a model folder; a file is no classifier."""
    from usimul.export import load_classifier

    return load_classifier(path, device=device)


def check_features(estimator: WeakClassifier, pool: Points) -> None:
    """Raise unless the points have the features that the classifier was trained on."""
    from usimul.validation import InputError

    wanted, found = estimator.n_features_in_, pool.rows.shape[1]
    if wanted != found:
        raise InputError(f"the points have {found} features each, but the classifier was trained on {wanted}.")


def predictions(estimator: WeakClassifier, pool: Points) -> Iterator[tuple[int, NDArray[Any], NDArray[np.float64]]]:
    """Yield the first row's number, labels, and scores, chunk by chunk."""
    for start, part in pool.chunks():
        scores = estimator.decision_function(part)
        yield start, estimator.classes_[(scores >= 0).astype(int)], scores


def _probability(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    probability: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-np.clip(scores, -700, 700)))
    return probability


def _say_what_probability_means(estimator: WeakClassifier) -> None:
    from usimul.methods import get_method

    if not get_method(estimator.method_).probability:
        click.echo(
            f"note: the probabilities of method {estimator.method_!r} are a monotone map of the score, not calibrated.",
            err=True,
        )
