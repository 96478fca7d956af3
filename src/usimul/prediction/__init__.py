"""Predictions over files of any length: points in, a table of predictions out, in constant memory.

Examples
--------
>>> import tempfile
>>> from usimul.datasets import make_gaussians
>>> data = make_gaussians(60, 20, random_state=0)
>>> clf = WeakClassifier("supervised", model="linear", epochs=1, random_state=0).fit(data.X_train, data.y_train)
>>> with tempfile.TemporaryDirectory() as folder:
...     found = predict_file(clf, data.X_test, f"{folder}/predictions.csv")
...     lines = Path(folder, "predictions.csv").read_text().splitlines()
>>> found.n_rows, lines[0]
(20, 'row,label,score')
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from usimul.batching import check_device
from usimul.estimators import WeakClassifier
from usimul.export import load_classifier
from usimul.files import check_new_file, whole_file
from usimul.points import PointStream, stream_points
from usimul.prediction.writers import SUFFIXES, writer_for
from usimul.training import scores
from usimul.validation import InputError, InputTypeError, IntArray, Problems

__all__ = ["SUFFIXES", "Predicted", "feature_order", "predict_file", "score_stream"]

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Predicted:
    """How many points were predicted, how many of them positive, and where the predictions are."""

    n_rows: int
    n_positive: int
    output: Path


def predict_file(
    model: WeakClassifier | str | os.PathLike[str],
    points: Any,
    output: str | os.PathLike[str],
    *,
    proba: bool = False,
    overwrite: bool = False,
    device: str | None = None,
    progress: Progress | None = None,
    key: str | None = None,
    id_column: str | None = None,
    ignore: Sequence[str] = (),
    resize: tuple[int, int] | None = None,
    mode: str | None = None,
) -> Predicted:
    """Write the class and score of every point into a file, without ever holding all points or all predictions.

    Parameters
    ----------
    model
        A fitted classifier, or the folder of a saved one.
    points
        What `usimul.points.read_points` takes. Tables, ``.npy`` files, and images are read part by part.
    output
        ``.csv``, ``.parquet`` (by groups of rows; needs pyarrow) or ``.npy`` (a structured array). It has the columns
        row (or id, if the points have ids), label, score. It appears when it is whole, or not at all.
    proba
        Add the column probability, of the positive class.
    overwrite
        Whether an existing file may be replaced.
    device
        torch device; None takes that of the classifier, which is the CPU for a folder.
    progress
        Called with the number of rows that are done, and of all if it is known.
    key, id_column, ignore, resize, mode
        How the points are read, see `usimul.points.read_points`.

    Raises
    ------
    InputError
        If the features are not those of the training, with names where both sides have names; with all problems of
        the points otherwise.
    """
    target = check_new_file(Path(output), SUFFIXES, overwrite=overwrite)
    device = device or (model.device if isinstance(model, WeakClassifier) else "cpu")
    check_device(device)
    estimator = model if isinstance(model, WeakClassifier) else _load(model, device)
    check_is_fitted(estimator, "module_")
    stream = stream_points(points, key=key, id_column=id_column, ignore=ignore, resize=resize, mode=mode)
    columns = ["id" if stream.has_ids else "row", "label", "score"] + ["probability"] * proba
    found = score_stream(estimator, stream, device)  # looks at the features before the file is made
    n_rows = n_positive = 0
    with whole_file(target, "w+b") as handle, writer_for(target, handle, columns, estimator.classes_) as writer:
        for names, part in found:
            positive = part >= 0
            numbers = [part, estimator.probability_of(part)] if proba else [part]
            writer.write(names, positive.astype(np.int64), numbers)
            n_rows += len(part)
            n_positive += int(positive.sum())
            if progress is not None:
                progress(n_rows, stream.n_rows)
    return Predicted(n_rows, n_positive, target)


def score_stream(
    estimator: WeakClassifier, stream: PointStream, device: str
) -> Iterator[tuple[Sequence[str] | range, NDArray[np.float64]]]:
    """Return names and scores of the points, part by part; the features are compared at once, before the first."""
    order = feature_order(estimator, stream.n_features, stream.feature_names, stream.source)
    module = estimator.module_
    if next(module.parameters()).device != torch.device(device):
        module = copy.deepcopy(module).to(device)  # moving it would move the caller's

    def parts() -> Iterator[tuple[Sequence[str] | range, NDArray[np.float64]]]:
        for part in stream.parts():
            rows = part.rows if order is None else part.rows[:, order]
            names = range(part.start, part.start + len(rows)) if part.ids is None else part.ids
            yield names, scores(module, torch.from_numpy(np.ascontiguousarray(rows)).to(device))

    return parts()


def feature_order(
    estimator: WeakClassifier, n_features: int, names: Sequence[str] | None, source: str
) -> IntArray | None:
    """Return where the features of the training stand among those of the points; None if they stand as they were.

    Features go by name if both sides have names, else by their number.
    """
    trained = getattr(estimator, "feature_names_in_", None)
    if trained is None or names is None:
        if estimator.n_features_in_ != n_features:
            raise InputError(
                f"the points have {n_features} features each, but the classifier was trained on "
                f"{estimator.n_features_in_}."
            )
        return None
    problems, place = Problems(source), {name: i for i, name in enumerate(names)}
    for name in trained:
        if name not in place:
            problems.add("Every feature that the classifier was trained on is needed", f"column {name!r} is missing")
    wanted = set(trained)
    for name in names:
        if name not in wanted:
            problems.add(
                "No feature is expected that the classifier was not trained on",
                f"column {name!r} is new",
                advice="Leave it out: --ignore.",
            )
    problems.refuse()
    order = [place[name] for name in trained]
    return None if order == sorted(order) else np.array(order)


def _load(model: Any, device: str) -> WeakClassifier:
    if not isinstance(model, (str, os.PathLike)):
        raise InputTypeError(
            f"`model` must be a fitted classifier, or the folder of a saved one. Got {type(model).__name__}."
        )
    return load_classifier(model, device=device)
