"""``usimul predict``: a model folder and points in, predictions out."""

from __future__ import annotations

import csv
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
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="File to make: .csv or .npy.")
@click.option("--proba", is_flag=True, help="Add the probability of the positive class.")
@points_options
@click.option("--device", default="cpu", show_default=True, help="torch device.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
def command(
    model: Path, points: Path, output: Path, proba: bool, device: str, overwrite: bool, reading: dict[str, Any]
) -> None:
    """Predict the class and score of every point of POINTS with the classifier saved in the folder MODEL.

    POINTS may be all that `usimul train` takes. A .csv file has the columns row, label, score, with id in place of row
    if the points have ids; a .npy file is a structured array with the same fields. A score of at least 0 means the
    positive class.
    """
    from usimul.cli.files import check_new_file, read_points, whole_file

    check_new_file(output, (".csv", ".npy"), overwrite=overwrite)
    estimator = read_classifier(model, device)
    pool = read_points(points, **reading)
    pool = check_features(estimator, pool)
    columns = ["row" if pool.ids is None else "id", "label", "score"] + ["probability"] * proba
    n_positive = 0
    if output.suffix.lower() == ".csv":
        with whole_file(output, "w") as handle:
            writer = csv.writer(handle, lineterminator="\n")
            writer.writerow(columns)
            for start, labels, scores in predictions(estimator, pool):
                n_positive += int((scores >= 0).sum())
                stop = start + len(labels)
                first = range(start, stop) if pool.ids is None else pool.ids[start:stop]
                table: list[Any] = [first, labels.tolist(), (f"{s:.9g}" for s in scores)]
                if proba:
                    table.append(f"{p:.9g}" for p in _probability(estimator, scores))
                writer.writerows(zip(*table, strict=True))
    else:
        import numpy as np

        ids = None if pool.ids is None else np.array(pool.ids)
        named = np.dtype(np.int64) if ids is None else ids.dtype
        kinds = [named, estimator.classes_.dtype, np.dtype(np.float64), np.dtype(np.float64)]
        if kinds[1].hasobject:
            kinds[1] = np.array(estimator.classes_.tolist()).dtype
        dtype = np.dtype(list(zip(columns, kinds, strict=False)))
        with whole_file(output) as handle:
            # Header first, then row by row as they come: the table of a long file is itself large.
            header = np.lib.format.header_data_from_array_1_0(np.empty(0, dtype))
            np.lib.format.write_array_header_1_0(handle, {**header, "shape": (len(pool.rows),)})
            for start, labels, scores in predictions(estimator, pool):
                part = np.empty(len(labels), dtype)
                stop = start + len(labels)
                part[columns[0]] = np.arange(start, stop) if ids is None else ids[start:stop]
                part["label"], part["score"] = labels, scores
                if proba:
                    part["probability"] = _probability(estimator, scores)
                n_positive += int((scores >= 0).sum())
                handle.write(part.tobytes())
    if proba:
        _say_what_probability_means(estimator)
    share = n_positive / len(pool.rows)
    click.echo(f"{len(pool.rows):,} predictions, {share:.1%} of them {estimator.classes_[1]!s}, in {output}")


def read_classifier(path: Path, device: str) -> WeakClassifier:
    """Load a model folder; a file is no classifier."""
    from usimul.export import load_classifier

    return load_classifier(path, device=device)


def check_features(estimator: WeakClassifier, pool: Points) -> Points:
    """Return the points with the features that the classifier was trained on, by name if both have names."""
    from dataclasses import replace

    from usimul.validation import InputError, Problems

    wanted, found = estimator.n_features_in_, pool.n_features
    names = getattr(estimator, "feature_names_in_", None)
    if names is None or pool.feature_names is None:
        if wanted != found:
            raise InputError(f"the points have {found} features each, but the classifier was trained on {wanted}.")
        return pool
    problems, place = Problems(pool.source), {name: i for i, name in enumerate(pool.feature_names)}
    for name in names:
        if name not in place:
            problems.add("Every feature that the classifier was trained on is needed", f"column {name!r} is missing")
    for name in [name for name in place if name not in set(names)]:
        problems.add(
            "No feature is expected that the classifier was not trained on",
            f"column {name!r} is new",
            advice="Leave it out: --ignore.",
        )
    problems.refuse()
    # The rows are in the right order now, and scikit-learn would ask for their names.
    del estimator.feature_names_in_
    order = [place[name] for name in names]
    return pool if order == sorted(order) else replace(pool, rows=pool.rows[:, order], feature_names=tuple(names))


def predictions(estimator: WeakClassifier, pool: Points) -> Iterator[tuple[int, NDArray[Any], NDArray[np.float64]]]:
    """Yield the first row's number, labels, and scores, chunk by chunk."""
    for start, part in pool.chunks():
        scores = estimator.decision_function(part)
        yield start, estimator.classes_[(scores >= 0).astype(int)], scores


def _probability(estimator: WeakClassifier, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    from usimul.calibration import probabilities

    return probabilities(scores, estimator.calibration_.temperature)


def _say_what_probability_means(estimator: WeakClassifier) -> None:
    from usimul.methods import get_method

    if estimator.calibration_.kind != "none":
        click.echo(f"probabilities are {estimator.calibration_.explain()}")
    elif not get_method(estimator.method_).probability:
        click.echo(
            f"note: the probabilities of method {estimator.method_!r} are a monotone map of the score, not calibrated.",
            err=True,
        )
