"""Damaged files of points and labels: every reader says so in one error that names the file, whatever was changed."""

import io
import re
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from usimul.points import read_labels, read_points
from usimul.validation import FileFormatError, InputError

N = 12
FLIPS, CUTS = 300, 60


def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"id": [f"p{i}" for i in range(N)], "a": rng.normal(size=N), "label": rng.choice([-1, 1], N)})


def images(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(4):
            png = io.BytesIO()
            Image.fromarray(np.full((5, 6), 40 * i, dtype=np.uint8)).save(png, format="PNG")
            archive.writestr(f"{i}.png", png.getvalue())


MAKERS = {
    "x.npy": lambda path: np.save(path, table()[["a", "label"]].to_numpy()),
    "x.npz": lambda path: np.savez_compressed(path, X=table()[["a", "label"]].to_numpy(), ids=np.array(["a", "b"] * 6)),
    "x.csv": lambda path: table().to_csv(path, index=False),
    "x.jsonl": lambda path: table().to_json(path, orient="records", lines=True),
    "x.parquet": lambda path: table().to_parquet(path),
    "x.zip": images,
    "y.npy": lambda path: np.save(path, table()["label"].to_numpy()),
    "y.npz": lambda path: np.savez(path, y=table()["label"].to_numpy()),
    "y.csv": lambda path: table().to_csv(path, index=False),
    "y.jsonl": lambda path: table().to_json(path, orient="records", lines=True),
    "y.parquet": lambda path: table().to_parquet(path),
}


@pytest.mark.parametrize("name", MAKERS)
def test_changed_bytes_and_truncations(tmp_path, name):
    path = tmp_path / name
    MAKERS[name](path)
    whole = path.read_bytes()
    read = read_labels if name.startswith("y") else read_points
    rng = np.random.default_rng(0)
    for number in range(FLIPS + CUTS):
        content = bytearray(whole)
        if number < FLIPS:
            content[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        else:
            content = content[: rng.integers(len(whole))]
        path.unlink()  # the last reading may still map the file
        path.write_bytes(content)
        said = repr(str(path))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read(path)
        except (InputError, FileFormatError) as error:
            said = str(error)
        assert repr(str(path)) in said


@pytest.mark.parametrize("suffix", ["npy", "npz", "zip", "parquet"])
def test_not_whole(tmp_path, suffix):
    path = tmp_path / f"x.{suffix}"
    MAKERS[path.name](path)
    path.write_bytes(path.read_bytes()[:70])
    kind = {"zip": "zip archive", "parquet": "Parquet file"}.get(suffix, rf"\.{suffix} file of numbers")
    with pytest.raises(FileFormatError, match=f"{re.escape(repr(str(path)))} is not a whole {kind}"):
        read_points(path)
