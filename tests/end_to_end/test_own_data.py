"""A user's own files on the command line: from tables and images to predictions with ids, and every problem told."""

import csv
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from PIL import Image

from usimul.cli import COMMANDS, main
from usimul.cli.options import KINDS
from usimul.datasets import make_gaussians
from usimul.points import read_points
from usimul.sampling import sample_triplets
from usimul.supervision import Supervision, load_supervision, read_supervision, write_supervision

N = 240
TRAIN = ["--method", "usimul-exact-abs", "--model", "linear", "--prior", 0.3, "--epochs", 100]


def usimul(*args, code=0):
    result = CliRunner().invoke(main, [str(a) for a in args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """One population as a table with ids, in shuffled order, with triplets and labels that name points by ids."""
    folder = tmp_path_factory.mktemp("own")
    data = make_gaussians(N, 10, prior=0.3, distance=4.0, random_state=0)
    ids = [f"p{i:03d}" for i in range(N)]
    frame = pd.DataFrame(data.X_train, columns=[f"f{i}" for i in range(data.X_train.shape[1])]).astype(float)
    frame.insert(1, "id", ids)
    order = np.random.default_rng(1).permutation(N)
    frame.iloc[order].to_csv(folder / "points.csv", index=False)
    frame.iloc[order].to_parquet(folder / "points.parquet")
    frame.iloc[order].to_json(folder / "points.jsonl", orient="records", lines=True)
    pd.DataFrame({"id": ids, "label": data.y_train}).to_csv(folder / "labels.csv", index=False)
    np.save(folder / "y.npy", data.y_train)
    sup = sample_triplets(data.y_train, 400, n_unlabeled=200, prior=0.3, random_state=0)
    for suffix in ("csv", "parquet", "jsonl"):
        write_supervision(sup, folder / f"triplets.{suffix}", ids=ids)
    usimul("train", folder / "points.csv", folder / "triplets.csv", *TRAIN, "-o", folder / "model")
    return folder


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Bright and dark images, with triplets of their paths."""
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    y = np.where(rng.random(N) < 0.3, 1, -1)
    names = []
    for i, label in enumerate(y):
        names.append(f"{'even' if i % 2 == 0 else 'odd'}/{i}.png")
        path = folder / "points" / names[-1]
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.clip(rng.normal(128 + 60 * label, 20, (6, 5)), 0, 255).astype(np.uint8)).save(path)
    sup = sample_triplets(y, 400, n_unlabeled=200, prior=0.3, random_state=0)
    write_supervision(sup, folder / "triplets.csv", ids=names)
    pd.DataFrame({"id": names, "label": y}).to_csv(folder / "labels.csv", index=False)
    return folder


def accuracy(predictions, labels):
    """Share of right predictions by id, from the two CSV files alone."""
    with predictions.open() as found, labels.open() as known:
        rows = list(csv.DictReader(found))
        truth = {row["id"]: row["label"] for row in csv.DictReader(known)}
    assert {row["id"] for row in rows} == set(truth)
    assert len(rows) == len(truth)
    return np.mean([row["label"] == truth[row["id"]] for row in rows])


class TestTheWholeWay:
    def test_table_of_features_and_table_of_triplets(self, own, tmp_path):
        usimul("predict", own / "model", own / "points.csv", "-o", tmp_path / "p.csv")
        assert (tmp_path / "p.csv").read_text().splitlines()[0] == "id,label,score"
        share = accuracy(tmp_path / "p.csv", own / "labels.csv")
        assert share > 0.9  # logistic regression on the labels reaches 0.975
        labels = ["--labels", own / "labels.csv"]
        found = usimul("evaluate", own / "model", own / "points.csv", *labels, "--supervision", own / "triplets.csv")
        assert f"accuracy           {share:.4f}" in found.stdout  # matched by ids, though the rows differ in order
        assert "from 400 tuples" in found.stdout

    @pytest.mark.parametrize(
        ("points", "supervision"),
        [("parquet", "csv"), ("jsonl", "csv"), ("csv", "parquet"), ("csv", "jsonl"), ("parquet", "parquet")],
    )
    def test_all_formats_train_the_same_model(self, own, tmp_path, points, supervision):
        given = [own / f"points.{points}", own / f"triplets.{supervision}"]
        usimul("train", *given, *TRAIN, "-o", tmp_path / "m")
        for model, path in ((own / "model", tmp_path / "a.csv"), (tmp_path / "m", tmp_path / "b.csv")):
            usimul("predict", model, own / f"points.{points}", "-o", path)
        assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()

    @pytest.mark.parametrize("packed", [False, True])
    def test_images(self, images, tmp_path, packed):
        import shutil

        points = images / "points"
        if packed:
            points = shutil.make_archive(tmp_path / "points", "zip", points)
        usimul("train", points, images / "triplets.csv", *TRAIN, "-o", tmp_path / "m")
        usimul("predict", tmp_path / "m", points, "-o", tmp_path / "p.csv", "--proba")
        assert (tmp_path / "p.csv").read_text().startswith("id,label,score,probability\neven/0.png,")
        assert accuracy(tmp_path / "p.csv", images / "labels.csv") > 0.95

    def test_images_of_another_size_are_resized(self, images, tmp_path):
        given = [images / "points", images / "triplets.csv", "--resize", 3, 2, "--mode", "rgb"]
        usimul("train", *given, *TRAIN, "--epochs", 1, "-o", tmp_path / "m")
        found = usimul("predict", tmp_path / "m", images / "points", "-o", tmp_path / "p.csv", code=2)
        assert "the points have 30 features each, but the classifier was trained on 18" in found.stderr
        usimul("predict", tmp_path / "m", *given[:1], *given[2:], "-o", tmp_path / "p.csv")

    def test_predictions_as_an_array_carry_ids(self, own, tmp_path):
        usimul("predict", own / "model", own / "points.csv", "-o", tmp_path / "p.npy")
        usimul("predict", own / "model", own / "points.csv", "-o", tmp_path / "p.csv")
        found = np.load(tmp_path / "p.npy")
        assert found.dtype.names == ("id", "label", "score")
        assert found["id"].tolist() == pd.read_csv(tmp_path / "p.csv")["id"].tolist()

    def test_features_go_by_name(self, own, tmp_path):
        frame = pd.read_csv(own / "points.csv")
        frame[["f1", "id", "f0"]].to_csv(tmp_path / "turned.csv", index=False)
        frame.assign(f2=1.0, note="x").to_csv(tmp_path / "more.csv", index=False)
        frame.rename(columns={"f1": "g1"}).to_csv(tmp_path / "other.csv", index=False)
        usimul("predict", own / "model", own / "points.csv", "-o", tmp_path / "a.csv")
        usimul("predict", own / "model", tmp_path / "turned.csv", "-o", tmp_path / "b.csv")
        given = ["predict", own / "model", tmp_path / "more.csv", "--ignore", "note"]
        assert "Column 'f2' is new. Leave it out: --ignore" in usimul(*given, "-o", tmp_path / "c.csv", code=2).stderr
        usimul(*given, "--ignore", "f2", "-o", tmp_path / "c.csv")
        assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text() == (tmp_path / "c.csv").read_text()
        found = usimul("predict", own / "model", tmp_path / "other.csv", "-o", tmp_path / "d.csv", code=2)
        assert "has 2 problems" in found.stderr
        assert "Column 'f1' is missing" in found.stderr
        labels = ["--labels", own / "labels.csv"]
        shown = [
            usimul("evaluate", own / "model", p, *labels).stdout for p in (own / "points.csv", tmp_path / "turned.csv")
        ]
        assert shown[0] == shown[1]

    def test_what_a_table_does_not_say_is_said_by_options(self, own, tmp_path):
        given = [own / "points.csv", own / "triplets.csv", *TRAIN, "--epochs", 1, "--world", "definition1"]
        found = usimul("train", *given, "--asked", 4000, "-o", tmp_path / "m", code=2)
        assert "contradicts the" in found.stderr  # 400 of 4000 yes answers fit no prior
        usimul("train", *given, "--asked", 506, "-o", tmp_path / "m")
        assert "World `definition1`" in (tmp_path / "m" / "README.md").read_text()

    def test_row_numbers_for_points_with_ids(self, own, tmp_path):
        labels = pd.read_csv(own / "labels.csv").set_index("id")["label"].loc[list(read_points(own / "points.csv").ids)]
        np.save(tmp_path / "y.npy", labels.to_numpy())
        usimul("sample", tmp_path / "y.npy", "--n", 50, "-o", tmp_path / "s.csv")
        given = ["train", own / "points.csv", tmp_path / "s.csv", *TRAIN, "--epochs", 1, "-o", tmp_path / "m"]
        assert "If these are row numbers: by='rows', --by rows." in usimul(*given, code=2).stderr
        usimul(*given, "--by", "rows")


class TestSample:
    @pytest.mark.parametrize("suffix", ["npz", "parquet", "jsonl"])
    def test_every_format_holds_the_same(self, own, tmp_path, suffix):
        given = ["--n", 30, "--unlabeled", 7, "--seed", 3, "-o", tmp_path / f"s.{suffix}"]
        usimul("sample", own / "labels.csv", *given, *(["--by", "rows"] if suffix == "npz" else []))
        points = read_points(own / "points.csv")
        expected = sample_triplets(np.load(own / "y.npy"), 30, n_unlabeled=7, random_state=3)
        if suffix == "npz":  # row numbers of the labels' own order
            assert load_supervision(tmp_path / "s.npz") == expected
            return
        found = read_supervision(tmp_path / f"s.{suffix}", points=points)
        assert [[points.ids[row] for row in rows] for rows in found.rows] == [
            [f"p{row:03d}" for row in rows] for rows in expected.rows
        ]
        assert (found.world, found.n_asked) == (expected.world, expected.n_asked)

    @pytest.mark.parametrize("name", ["s.npz", "S.NPZ"])
    def test_ids_are_not_dropped_without_a_word(self, own, tmp_path, name):
        given = ["sample", own / "labels.csv", "--n", 30, "-o", tmp_path / name]
        found = usimul(*given, code=2).stderr
        assert "names its points by ids" in found
        assert "Write a table (.csv, .parquet, .jsonl), or pass --by rows" in found
        assert not list(tmp_path.iterdir())
        assert f"points named by row numbers of {own / 'labels.csv'}" in usimul(*given, "--by", "rows").stdout

    def test_rows_of_the_labels_in_a_table(self, own, tmp_path):
        usimul("sample", own / "labels.csv", "--n", 30, "--by", "rows", "-o", tmp_path / "s.csv")
        expected = sample_triplets(np.load(own / "y.npy"), 30, random_state=0)
        assert np.array_equal(read_supervision(tmp_path / "s.csv").rows, expected.rows)
        found = usimul("sample", own / "y.npy", "--n", 3, "--by", "ids", "-o", tmp_path / "t.csv", code=2)
        assert "--by ids needs ids beside the labels" in found.stderr

    def test_csv_and_parquet_columns(self, own, tmp_path):
        y = np.load(own / "y.npy")
        names = np.where(y > 0, "cat", "dog")
        pq.write_table(
            pa.table({"key": [f"k{i}" for i in range(N)], "animal": names, "n": range(N)}), tmp_path / "y.parquet"
        )
        given = ["--column", "animal", "--id-column", "key", "--positive", "cat", "--n", 20, "-o", tmp_path / "s.csv"]
        usimul("sample", tmp_path / "y.parquet", *given)
        found = read_supervision(tmp_path / "s.csv", ids=[f"k{i}" for i in range(N)])
        assert np.array_equal(found.rows, sample_triplets(y, 20, random_state=0).rows)
        result = usimul("sample", tmp_path / "y.parquet", "--n", 5, "-o", tmp_path / "t.csv", code=2)
        assert "A column 'label' is expected. The columns are: key, animal, n" in result.stderr
        assert not (tmp_path / "t.csv").exists()


class TestCheck:
    def test_case_of_suffixes(self, own, tmp_path):
        pool = read_points(own / "points.csv")
        for name in ("UP.NPZ", "UP.NPY"):
            usimul("check", own / "points.csv", "-o", tmp_path / name)
        assert read_points(tmp_path / "UP.NPZ").ids == pool.ids
        assert np.array_equal(read_points(tmp_path / "UP.NPY").rows, pool.rows)
        np.save(tmp_path / "y.npy", np.load(own / "y.npy"))
        (tmp_path / "y.npy").rename(tmp_path / "Y.NPY")
        usimul("sample", tmp_path / "Y.NPY", "--n", 9, "--seed", 1, "-o", tmp_path / "S.NPZ")
        usimul("check", tmp_path / "UP.NPZ", tmp_path / "S.NPZ", "--supervision-output", tmp_path / "T.CSV")
        found = load_supervision(tmp_path / "S.NPZ")
        assert np.array_equal(read_supervision(tmp_path / "T.CSV", points=pool).rows, found.rows)
        model = usimul("predict", own / "model", own / "points.csv", "-o", tmp_path / "P.CSV")
        assert "240 predictions" in model.stdout
        assert (tmp_path / "P.CSV").read_text().startswith("id,label,score")

    def test_what_was_found(self, own, images):
        found = usimul("check", own / "points.csv", own / "triplets.jsonl").stdout
        for words in (
            r"points +240\n",
            r"features +2: f0, f1\n",
            r"ids +such as 'p\d+'\n",
            r"kind +triplets\n",
            r"tuples +400\n",
            r"unlabeled +200\n",
            r"world +definition1\n",
            r"asked +\d+, of which 400 were kept\n",
            "no problems found",
        ):
            assert re.search(words, found), found
        found = usimul("check", images / "points").stdout
        assert re.search(r"image shape +1 x 6 x 5, channels first\n", found)
        assert "kind" not in found

    def test_all_problems_of_both_files(self, own, tmp_path):
        lines = (own / "points.csv").read_text().splitlines()
        lines[5] = "x,p001,inf"
        (tmp_path / "points.csv").write_text("\n".join([*lines, "1,,2", "1,p9"]))
        (tmp_path / "s.csv").write_text("anchor,companion1,companion2,when\np001,p002,p002,x\np003,,p9999,x\n")
        given = [tmp_path / "points.csv", tmp_path / "s.csv", "-o", tmp_path / "p.npz"]
        found = usimul("check", *given, "--supervision-output", tmp_path / "s.npz", code=2)
        for words in (
            "Line 6, column 'f0' is 'x'; line 6, column 'f1' is 'inf'",
            "Line 242 has empty",
            "Line 243 has 2",
            "'p001' is the id of lines",
            "Line 2 has p001, p002, p002",
            "Line 3, column 'companion1' is empty",
            "'p9999' is none",
            "may follow from those of the points",
        ):
            assert words in found.stderr, found.stderr
        assert "no problems found" not in found.stdout
        assert {p.name for p in tmp_path.iterdir()} == {"points.csv", "s.csv"}

    def test_unreadable_points(self, own, tmp_path):
        (tmp_path / "points.csv").write_text("1,2\n")
        found = usimul("check", tmp_path / "points.csv", own / "triplets.csv", code=2)
        assert "must name its columns" in found.stderr
        assert "the supervision was not looked at" in found.stderr

    @pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "npz"])
    @pytest.mark.parametrize("points", ["npz", "npy"])
    def test_converted_files_train_the_same_model(self, own, tmp_path, points, suffix):
        out = ["-o", tmp_path / f"p.{points}", "--supervision-output", tmp_path / f"s.{suffix}"]
        usimul("check", own / "points.csv", own / "triplets.csv", *out)
        assert {p.name for p in tmp_path.iterdir()} == {f"p.{points}", f"s.{suffix}"}
        original = read_points(own / "points.csv")
        found = read_points(tmp_path / f"p.{points}")
        assert np.array_equal(found.rows, original.rows)
        assert found.ids == (original.ids if points == "npz" else None)
        sup = read_supervision(tmp_path / f"s.{suffix}", points=found)
        assert sup == read_supervision(own / "triplets.csv", points=original)

    def test_images_keep_their_shape(self, images, tmp_path):
        usimul("check", images / "points", "-o", tmp_path / "p.npy")
        assert np.load(tmp_path / "p.npy").shape == (N, 1, 6, 5)

    def test_columns_that_say_nothing_are_named(self, own, tmp_path):
        (tmp_path / "s.csv").write_text("anchor,companion1,companion2,when\np001,p002,p003,x\n")
        found = usimul("check", own / "points.csv", tmp_path / "s.csv").stdout
        assert re.search(r"columns not used +when\n", found)

    def test_outputs_are_not_replaced(self, own, tmp_path):
        (tmp_path / "p.npz").touch()
        given = ["check", own / "points.csv", "-o", tmp_path / "p.npz"]
        assert "exists already" in usimul(*given, code=2).stderr
        usimul(*given, "--overwrite")
        assert (
            "--supervision-output needs SUPERVISION"
            in usimul("check", own / "points.csv", "--supervision-output", tmp_path / "s.npz", code=2).stderr
        )

    def test_a_full_disk_leaves_nothing(self, own, tmp_path, monkeypatch):
        def no_space(self, target):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("usimul.files.Path.replace", no_space)
        for option, path in (("-o", "p.npz"), ("--supervision-output", "s.parquet")):
            given = ["check", own / "points.csv", own / "triplets.csv", option, tmp_path / path]
            found = usimul(*given, code=2).stderr
            assert f"there must be room for {str(tmp_path / path)!r}. No space left on its disk" in found
            assert "nothing of it was kept. Make room, or choose a place on another disk" in found
        assert not list(tmp_path.iterdir())


class TestBadInput:
    @pytest.mark.parametrize(
        ("args", "match"),
        [
            (["points.csv", "triplets.csv", "--id-column", "name"], "A column 'name' is expected"),
            (["points.csv", "triplets.csv", "--ignore", "f9"], "A column 'f9' is expected"),
            (["points.csv", "triplets.csv", "--ignore", "id"], "Points must be row numbers"),
            (["points.csv", "triplets.csv", "--resize", "2", "2"], "`resize` does not belong"),
            (["points.csv", "triplets.csv", "--kind", "labels"], "A column 'point' is expected"),
            (["points.csv", "triplets.jsonl", "--kind", "labels"], "says kind 'triplets', but 'labels' was given"),
            (["points.csv", "points.csv"], "The columns of one kind of supervision are expected"),
        ],
    )
    def test_refused(self, own, tmp_path, args, match):
        paths = [own / args[0], own / args[1]]
        found = usimul("train", *paths, *args[2:], *TRAIN, "-o", tmp_path / "m", code=2)
        assert re.search(match, found.stderr), found.stderr
        assert "Traceback" not in found.stderr
        assert not list(tmp_path.iterdir())

    def test_labels_of_some_points(self, own, tmp_path):
        """Judged on these alone, four of them wrong: the figures are those of a file of only these points."""
        lines = (own / "labels.csv").read_text().splitlines()
        some = lines[1:81:2]
        some[:4] = [line.replace(",-1", ",1") if ",-1" in line else line.replace(",1", ",-1") for line in some[:4]]
        (tmp_path / "y.csv").write_text("\n".join([lines[0], *some]))
        named = {line.split(",")[0] for line in some}
        head, *points = (own / "points.csv").read_text().splitlines()
        column = head.split(",").index("id")
        (tmp_path / "p.csv").write_text("\n".join([head, *(p for p in points if p.split(",")[column] in named)]))
        found = usimul("evaluate", own / "model", own / "points.csv", "--labels", tmp_path / "y.csv").stdout
        assert f"40 of {N} points have a label" in found
        alone = usimul("evaluate", own / "model", tmp_path / "p.csv", "--labels", tmp_path / "y.csv").stdout
        assert found[found.index("measured on 40 labels") :] == alone[alone.index("measured on 40 labels") :]
        made = []
        for path in (own / "points.csv", tmp_path / "p.csv"):
            given = ["--held-out", "--labels", tmp_path / "y.csv", "-o", tmp_path / f"m-{path.stem}-{path.parent.name}"]
            made.append(usimul("calibrate", own / "model", path, *given).stdout)
        assert "from 40 labels" in made[0]
        assert made[1].splitlines()[0] in made[0]
        page = tmp_path / "r.html"
        usimul("report", own / "model", own / "points.csv", "--labels", tmp_path / "y.csv", "-o", page)
        assert f"Measured on 40 labels of {N} points" in page.read_text()

    @pytest.mark.parametrize("command", ["evaluate", "calibrate", "report"])
    def test_labels_of_unknown_points(self, own, tmp_path, command):
        (tmp_path / "y.csv").write_text((own / "labels.csv").read_text() + "stranger,1\nother,-1\n")
        output = [] if command == "evaluate" else ["-o", tmp_path / ("r.html" if command == "report" else "m")]
        given = [own / "model", own / "points.csv", "--labels", tmp_path / "y.csv", *output]
        found = usimul(command, *given, code=2).stderr
        assert "has 2 problems" in found
        assert "'stranger' is none of them" in found

    def test_some_labels_without_ids(self, own, tmp_path):
        np.save(tmp_path / "y.npy", np.load(own / "y.npy")[:40])
        found = usimul("evaluate", own / "model", own / "points.csv", "--labels", tmp_path / "y.npy", code=2)
        assert f"there must be one label for each point, {N}. Got 40" in found.stderr

    def test_labels_with_ids_for_points_without(self, own, tmp_path):
        points = read_points(own / "points.csv")
        np.savez(tmp_path / "p.npz", X=points.rows, feature_names=np.array(points.feature_names))
        given = ["evaluate", own / "model", tmp_path / "p.npz", "--labels", own / "labels.csv"]
        found = usimul(*given, code=2).stderr
        assert "labels.csv' names points by ids, but the points of" in found
        assert "or pass --by rows if both files stand in the same order" in found
        assert "accuracy" in usimul(*given, "--by", "rows").stdout

    def test_kinds_on_the_command_line_are_all_kinds(self):
        assert set(KINDS) == set(Supervision.kinds())
        assert "check" in COMMANDS
