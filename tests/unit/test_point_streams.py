"""Points handed out part by part: the same numbers, names and problems as when they are read at once."""

import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import usimul.files
from usimul.points import read_points, stream_points
from usimul.points.fast_csv import fast_parts
from usimul.points.tables import choose_columns
from usimul.validation import FileFormatError, InputError, Problems

N = 50


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Several parts, and several blocks of text, also in small files."""
    for module in ("base", "tables", "stream"):
        monkeypatch.setattr(f"usimul.points.{module}.CHUNK_VALUES", 64)
    monkeypatch.setattr("usimul.points.fast_csv.BLOCK", 400)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 3)), columns=["a", "b", "c"])
    frame.insert(1, "id", [f"p{i:03d}" for i in range(N)])
    return frame


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    made = tmp_path_factory.mktemp("points")
    X = frame[["a", "b", "c"]].to_numpy().copy()
    np.save(made / "plain.npy", X)
    np.save(made / "images.npy", np.arange(N * 2 * 2 * 3).reshape(N, 2, 2, 3))
    np.savez(made / "named.npz", X=X, ids=frame["id"].to_numpy(dtype=str), feature_names=np.array(["a", "b", "c"]))
    frame.to_csv(made / "table.csv", index=False)
    frame.to_csv(made / "table.tsv", index=False, sep="\t")
    frame.to_json(made / "table.jsonl", orient="records", lines=True, double_precision=15)
    frame.to_parquet(made / "table.parquet", index=False)
    frame.drop(columns="id").to_csv(made / "rows.csv", index=False)
    rng = np.random.default_rng(1)
    for i in range(N):
        path = made / "scans" / f"{i % 3}" / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (4, 3, 3), dtype=np.uint8)).save(path)
    shutil.make_archive(made / "packed", "zip", made / "scans")
    return made


def gathered(stream):
    parts = list(stream.parts())
    starts = [part.start for part in parts]
    assert starts == np.cumsum([0, *(len(part.rows) for part in parts)])[:-1].tolist()
    assert all(part.rows.dtype == np.float32 for part in parts)
    ids = [name for part in parts for name in part.ids] if stream.has_ids else None
    return np.concatenate([part.rows for part in parts]), ids, len(parts)


FILES = {
    "plain.npy": {},
    "images.npy": {},
    "named.npz": {},
    "table.csv": {},
    "table.tsv": {"ignore": ["b"]},
    "table.jsonl": {},
    "table.parquet": {"id_column": "id"},
    "rows.csv": {},
    "scans": {},
    "packed.zip": {"resize": (2, 2), "mode": "grey"},
}


@pytest.mark.parametrize("name", FILES)
def test_the_same_as_read_at_once(folder, name):
    given = FILES[name]
    whole, stream = read_points(folder / name, **given), stream_points(folder / name, **given)
    assert stream.n_rows in (None, N)
    for field in ("n_features", "feature_names", "image_shape"):
        assert getattr(stream, field) == getattr(whole, field)
    rows, ids, n_parts = gathered(stream)
    assert np.array_equal(rows, whole.rows.reshape(N, -1).astype(np.float32))
    assert (None if ids is None else tuple(ids)) == whole.ids
    assert n_parts > 1


def test_objects_stream_too(frame):
    rows, ids, _ = gathered(stream_points(frame))
    assert np.array_equal(rows, frame[["a", "b", "c"]].to_numpy(np.float32))
    assert ids == frame["id"].tolist()


# --- CSV by two readers ---------------------------------------------------------------------------------------------


def fast_rows(path):
    columns = path.read_text().splitlines()[0].split(",")
    chosen = choose_columns(columns, None, (), Problems("x"))
    return sum(len(values) for values, _ in fast_parts(path, columns, chosen))


def test_plain_tables_are_read_fast(folder):
    assert fast_rows(folder / "table.csv") == fast_rows(folder / "rows.csv") == N


def test_what_was_read_fast_is_not_read_again(folder, monkeypatch):
    """The careful reader names the columns; it gives no row where the fast one has given all."""
    lines = usimul.files._csv_lines
    taken = []

    def counted(path):
        for line in lines(path):
            taken.append(line)
            yield line

    monkeypatch.setattr(usimul.files, "_csv_lines", counted)
    rows, _, _ = gathered(stream_points(folder / "table.csv"))
    assert len(rows) == N
    assert len(taken) == 1


ODD = {
    "quoted id": 'x,"p,9",1,2',
    "quoted id over lines": 'x,"p\n9",1,2',
    "quoted number": 'x,p9,"1",2',
    "quote within": 'x,p"9,1,2',
    "plus sign": "x,p9,+1.5,2",
    "spaces": "x, p9 , 1.5 ,2",
    "empty line": "",
    "exponent": "x,p9,1e-3,2E2",
    "short forms": "x,p9,.5,2.",
    "hexadecimal": "x,p9,0x10,2",
    "underscore": "x,p9,1_000,2",
    "word": "x,p9,many,2",
    "empty cell": "x,p9,,2",
    "not a number": "x,p9,nan,2",
    "infinite": "x,p9,-inf,2",
    "too large for float32": "x,p9,1e39,2",
    "too large": "x,p9,1e400,2",
    "ragged": "x,p9,1",
    "too wide": "x,p9,1,2,3",
    "empty id": "x,,1,2",
    "id of spaces": "x,  ,1,2",
    "id with NA": "x,NA,1,2",
    "other digits": "x,p9,١,2",
    "long digits": "x,p9,0.1234567890123456789012345,12345678901234567890",
    "carriage return": "x,p9,1,2\r",
    "open quote": 'x,"p9,1,2',
}


@pytest.mark.parametrize("at", [0, 25, 49])
@pytest.mark.parametrize("odd", ODD)
def test_odd_lines_are_read_as_the_careful_reader_does(tmp_path, odd, at):
    """Whatever is odd, and wherever: the same rows, or the same words."""
    lines = [f"y,p{100 + i},{i / 7!r},{-i}" for i in range(N)]
    lines.insert(at, ODD[odd])
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["note,id,a,b", *lines]) + "\n", newline="")
    try:
        whole = read_points(path, ignore=["note"])
    except (InputError, FileFormatError) as error:
        with pytest.raises(type(error), match=f"^{re.escape(str(error))}$"):
            list(stream_points(path, ignore=["note"]).parts())
        return
    rows, ids, _ = gathered(stream_points(path, ignore=["note"]))
    assert np.array_equal(rows, whole.rows.astype(np.float32))
    assert tuple(ids) == whole.ids


@pytest.mark.parametrize("start", ["\ufeff", "\n", "\n\n"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_marks_and_line_ends(tmp_path, frame, start, end):
    path = tmp_path / "t.csv"
    text = frame.to_csv(index=False, lineterminator=end)
    path.write_text(start + text, encoding="utf-8", newline="")
    rows, ids, _ = gathered(stream_points(path))
    assert np.array_equal(rows, frame[["a", "b", "c"]].to_numpy(np.float32))
    assert ids == frame["id"].tolist()


def test_without_pyarrow_all_is_read_carefully(folder, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert fast_rows(folder / "table.csv") == 0
    rows, _, _ = gathered(stream_points(folder / "table.csv"))
    assert len(rows) == N


# --- problems -------------------------------------------------------------------------------------------------------


def same_words(path, **given):
    with pytest.raises(InputError) as once:
        read_points(path, **given)
    got = []
    with pytest.raises(InputError) as streamed:
        got.extend(stream_points(path, **given).parts())
    assert str(streamed.value) == str(once.value)
    return got, str(streamed.value)


def test_all_problems_are_told_and_nothing_is_handed_out_after_the_first(tmp_path, frame):
    bad = frame.astype(object)
    bad.loc[20, "a"], bad.loc[30, "b"], bad.loc[49, "c"] = "old", float("inf"), 1e60
    bad.to_csv(tmp_path / "t.csv", index=False)
    got, words = same_words(tmp_path / "t.csv")
    assert "has 3 problems" in words
    assert sum(len(part.rows) for part in got) <= 20
    assert got


def test_problems_of_arrays_and_typed_tables(tmp_path, frame):
    X = frame[["a", "b", "c"]].to_numpy().copy()
    X[30, 1], X[40, 2] = np.nan, 1e60
    np.save(tmp_path / "X.npy", X)
    _, words = same_words(tmp_path / "X.npy")
    assert "row 40, column 2 is 1e+60" in words
    frame.assign(a=pd.array([None, *range(N - 1)], dtype="Int64"), b=[*[0.0] * (N - 1), np.inf]).to_parquet(
        tmp_path / "t.parquet"
    )
    _, words = same_words(tmp_path / "t.parquet")
    assert "'a' is empty" in words
    frame.assign(d="x").to_parquet(tmp_path / "u.parquet")
    same_words(tmp_path / "u.parquet")
    frame.iloc[:0].to_parquet(tmp_path / "v.parquet")
    same_words(tmp_path / "v.parquet")


def test_tables_without_rows(tmp_path):
    (tmp_path / "t.csv").write_text("id,a\n")
    same_words(tmp_path / "t.csv")
    (tmp_path / "u.csv").write_text("id,a\np1,1\n")
    same_words(tmp_path / "u.csv", ignore=["b"])


def test_damaged_images(tmp_path, folder):
    shutil.copytree(folder / "scans", tmp_path / "scans")
    (tmp_path / "scans" / "1" / "7.png").write_bytes(b"nothing")
    whole = (tmp_path / "scans" / "2" / "8.png").read_bytes()
    (tmp_path / "scans" / "2" / "8.png").write_bytes(whole[:-30])
    _, words = same_words(tmp_path / "scans")
    assert "2 problems" in words
    (tmp_path / "empty").mkdir()
    same_words(tmp_path / "empty")


def test_a_key_that_comes_late(tmp_path, monkeypatch):
    monkeypatch.setattr("usimul.files.FIRST_LINES", 10)
    rows = [{"id": f"p{i}", "a": i, **({"late": 1} if i >= 20 else {})} for i in range(30)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"within the first 10 lines. 'late' is new in line 21.*--ignore"):
        list(stream_points(tmp_path / "t.jsonl").parts())
    found, ids, _ = gathered(stream_points(tmp_path / "t.jsonl", ignore=["late"]))
    assert found.ravel().tolist() == list(range(30))
    assert ids[-1] == "p29"
    (tmp_path / "u.jsonl").write_text('{"a": 1}\n{"a": 2\n{"b": 1}\n')
    with pytest.raises(InputError, match="3 problems"):
        list(stream_points(tmp_path / "u.jsonl").parts())


def test_repeated_ids_are_handed_on(tmp_path, frame):
    frame.assign(id="same").to_csv(tmp_path / "t.csv", index=False)
    assert gathered(stream_points(tmp_path / "t.csv"))[1] == ["same"] * N
