"""Predictions into files: the numbers of the classifier, names kept, nothing half written, memory that stays."""

import csv
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch

from usimul import export
from usimul.datasets import make_gaussians
from usimul.estimators import WeakClassifier
from usimul.prediction import SUFFIXES, feature_order, predict_file
from usimul.validation import InputError, InputTypeError, MissingDependencyError

DATA = make_gaussians(120, 300, prior=0.3, random_state=0)
X = DATA.X_test.astype(np.float32)
IDS = [f"p{i}" for i in range(len(X))]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    for module in ("base", "tables", "stream"):
        monkeypatch.setattr(f"usimul.points.{module}.CHUNK_VALUES", 200)
    monkeypatch.setattr("usimul.points.fast_csv.BLOCK", 4000)
    monkeypatch.setattr("usimul.prediction.writers.LINES", 30)
    monkeypatch.setattr("usimul.prediction.writers.GROUP", 120)
    monkeypatch.setattr("usimul.prediction.writers.RECORDS", 7)


@pytest.fixture(scope="module")
def clf():
    y = np.where(DATA.y_train > 0, 'ill, "badly"', "healthy")
    found = WeakClassifier("supervised", model="linear", epochs=2, random_state=0).fit(DATA.X_train, y)
    found.feature_names_in_ = np.array(["a", "b"], dtype=object)
    return found


def table_of(path):
    """What stands in a file of predictions, as plain columns."""
    if path.suffix == ".npy":
        found = np.load(path)
        return {name: found[name].tolist() for name in found.dtype.names}
    if path.suffix == ".csv":
        with path.open(newline="") as handle:
            rows = list(csv.reader(handle))
        columns = dict(zip(rows[0], zip(*rows[1:], strict=True), strict=True))
        return {k: list(v) if k in ("id", "label") else [float(c) for c in v] for k, v in columns.items()}
    return pq.read_table(path).to_pydict()


def expected(clf):
    scores = clf.module_(torch.from_numpy(X)).detach().double().numpy()
    return clf.classes_[(scores >= 0).astype(int)].tolist(), scores, clf.probability_of(scores)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("named", [False, True])
def test_all_kinds_hold_what_the_classifier_says(clf, tmp_path, suffix, named):
    points = X
    if named:
        points = pd.DataFrame(X, columns=["a", "b"]).assign(id=IDS)
    calls = []
    found = predict_file(
        clf, points, tmp_path / f"p{suffix}", proba=True, progress=lambda done, total: calls.append((done, total))
    )
    labels, scores, probability = expected(clf)
    table = table_of(tmp_path / f"p{suffix}")
    assert list(table) == ["id" if named else "row", "label", "score", "probability"]
    assert table["id" if named else "row"] == (IDS if named else list(range(len(X))))
    assert table["label"] == labels
    assert np.array_equal(np.float32(table["score"]), np.float32(scores))  # nine digits are all of a float32
    np.testing.assert_allclose(table["probability"], probability, rtol=1e-8)
    assert (found.n_rows, found.n_positive) == (len(X), labels.count('ill, "badly"'))
    assert [done for done, _ in calls] == [*range(100, 301, 100)]
    assert {total for _, total in calls} == {len(X)}
    assert hasattr(clf, "feature_names_in_")
    assert [p.name for p in tmp_path.iterdir()] == [f"p{suffix}"]


def test_parquet_has_groups_of_rows(clf, tmp_path):
    predict_file(clf, X, tmp_path / "p.parquet")
    file = pq.ParquetFile(tmp_path / "p.parquet")
    groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert len(groups) > 1
    assert max(groups) <= 200
    assert sum(groups) == len(X)


@pytest.mark.parametrize("order", ["growing", "shrinking"])
def test_records_grow_with_their_ids(clf, tmp_path, order):
    ids = ["x" * (1 + i // 40) + str(i) for i in range(len(X))]
    ids = ids if order == "growing" else ids[::-1]
    pd.DataFrame(X, columns=["a", "b"]).assign(id=ids).to_csv(tmp_path / "points.csv", index=False)
    predict_file(clf, tmp_path / "points.csv", tmp_path / "p.npy")
    found = np.load(tmp_path / "p.npy")
    assert found["id"].tolist() == ids
    assert found.dtype["id"].itemsize == 4 * max(map(len, ids))
    _, scores, _ = expected(clf)
    np.testing.assert_allclose(found["score"], scores, rtol=1e-5, atol=1e-6)


def test_ids_with_marks_of_csv(clf, tmp_path):
    ids = [f'ward "{i}", bed\n1' if i % 3 == 0 else f"p{i}" for i in range(len(X))]
    predict_file(clf, pd.DataFrame(X, columns=["a", "b"]).assign(id=ids), tmp_path / "p.csv")
    assert table_of(tmp_path / "p.csv")["id"] == ids


def test_numbers_as_labels_keep_their_type(tmp_path):
    clf = WeakClassifier("supervised", model="linear", epochs=1, random_state=0).fit(DATA.X_train, DATA.y_train)
    for suffix in (".npy", ".parquet"):
        predict_file(clf, X, tmp_path / f"p{suffix}")
        assert set(table_of(tmp_path / f"p{suffix}")["label"]) <= {-1, 1}
    assert np.load(tmp_path / "p.npy")["label"].dtype == clf.classes_.dtype


def test_a_folder_is_a_model_too(clf, tmp_path):
    export.save(clf, tmp_path / "model")
    np.save(tmp_path / "X.npy", X)
    predict_file(tmp_path / "model", tmp_path / "X.npy", tmp_path / "a.csv")
    predict_file(clf, X, tmp_path / "b.csv", device="cpu")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


# --- other columns --------------------------------------------------------------------------------------------------


def test_columns_go_by_name(clf, tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b"])
    predict_file(clf, frame, tmp_path / "a.csv")
    predict_file(clf, frame[["b", "a"]], tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_other_columns_are_refused_by_name_before_any_work(clf, tmp_path, monkeypatch):
    def work(*given):
        raise AssertionError("work has begun")

    monkeypatch.setattr("usimul.prediction.scores", work)
    for columns, words in (
        (["a", "c"], r"2 problems:(.|\n)*Column 'b' is missing(.|\n)*Column 'c' is new. Leave it out: --ignore"),
        (["a", "b", "c"], "Column 'c' is new"),
        (["a"], "Column 'b' is missing"),
    ):
        frame = pd.DataFrame(np.zeros((5, len(columns))), columns=columns)
        with pytest.raises(InputError, match=words):
            predict_file(clf, frame, tmp_path / "p.csv")
    with pytest.raises(InputError, match="have 3 features each, but the classifier was trained on 2"):
        predict_file(clf, np.zeros((5, 3)), tmp_path / "p.csv")
    assert not list(tmp_path.iterdir())


def test_order_of_features(clf):
    assert feature_order(clf, 2, ["a", "b"], "x") is None
    assert feature_order(clf, 2, None, "x") is None
    assert feature_order(clf, 2, ["b", "a"], "x").tolist() == [1, 0]


# --- what can go wrong ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_problem_at_the_end_leaves_no_file(clf, tmp_path, suffix):
    bad = X.copy()
    bad[-1, 0] = np.nan
    np.save(tmp_path / "X.npy", bad)
    (tmp_path / f"p{suffix}").write_bytes(b"old")
    with pytest.raises(InputError, match="Row 299, column 0 is nan"):
        predict_file(clf, tmp_path / "X.npy", tmp_path / f"p{suffix}", overwrite=True)
    assert (tmp_path / f"p{suffix}").read_bytes() == b"old"
    assert {p.name for p in tmp_path.iterdir()} == {"X.npy", f"p{suffix}"}


def test_interruption_leaves_no_file(clf, tmp_path):
    def stop(done, total):
        if done > 150:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict_file(clf, X, tmp_path / "p.parquet", progress=stop)
    assert not list(tmp_path.iterdir())


def test_bad_input(clf, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"must end in .csv, .parquet, .pq or .npy"):
        predict_file(clf, X, tmp_path / "p.txt")
    with pytest.raises(InputTypeError, match=r"fitted classifier, or the folder of a saved one. Got dict"):
        predict_file({}, X, tmp_path / "p.csv")
    with pytest.raises(InputError, match=r"cannot be used here|torch device"):
        predict_file(clf, X, tmp_path / "p.csv", device="warp")
    (tmp_path / "p.csv").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        predict_file(clf, X, tmp_path / "p.csv")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingDependencyError, match=r"usimul\[parquet\]"):
        predict_file(clf, X, tmp_path / "p.parquet")
    assert [p.name for p in tmp_path.iterdir()] == ["p.csv"]


# --- memory ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "jsonl", "npy"])
def test_memory_does_not_grow_with_the_rows(clf, tmp_path, kind):
    """What Python and NumPy hold at most, on 3,000 rows and on eight times as many."""
    peaks = []
    for times in (10, 80):
        path = tmp_path / f"{times}.{kind}"
        rows = np.tile(X, (times, 1))
        frame = pd.DataFrame(rows, columns=["a", "b"]).assign(id=[f"p{i}" for i in range(len(rows))])
        if kind == "npy":
            np.save(path, rows)
        elif kind == "csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_json(path, orient="records", lines=True)
        predict_file(clf, path, tmp_path / "warm.csv", overwrite=True)
        del rows, frame
        tracemalloc.start()
        try:
            predict_file(clf, path, tmp_path / "p.csv", overwrite=True)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] + 100_000
