"""MSLD: photographs of monkeypox and of other rashes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from usimul.datasets.checksums import check_file
from usimul.datasets.folders import group_indices, list_images, read_images
from usimul.datasets.packed import flatten_images, load_packed
from usimul.datasets.records import DataFile, DatasetRecord, Edition, RawData, Task, check_counts
from usimul.validation import FileFormatError

__all__ = ["COUNTS", "MSLD"]

COUNTS = (126, 102)

_SHAPE = (3, 64, 64)
_ORIGINAL = "Original Images"
# By class index. The number before the underscore is the patient's.
_FOLDERS = (("Others", re.compile(r"(NM\d+)_\d+")), ("Monkey Pox", re.compile(r"(M\d+)_\d+")))


def _read_folder(edition: Edition, paths: Mapping[str, Path]) -> RawData:
    root = paths[_ORIGINAL]
    # The archive holds this folder inside one of the same name.
    root = root / _ORIGINAL if (root / _ORIGINAL).is_dir() else root
    files: list[Path] = []
    classes: list[int] = []
    patients: list[str] = []
    for label, (name, pattern) in enumerate(_FOLDERS):
        if not (root / name).is_dir():
            raise FileFormatError(f"{root / name}: expected a folder of images, found none. Unpack the whole archive.")
        for path in list_images(root / name):
            match = pattern.fullmatch(path.stem)
            if match is None:
                raise FileFormatError(
                    f"{path}: expected a name such as M01_01.jpg or NM01_01.jpg, which holds the patient's number. "
                    "It is not of the published set; take it away or get the set again."
                )
            files.append(path)
            classes.append(label)
            patients.append(match[1])
    X = read_images(files)
    check_counts(root, np.array(classes), COUNTS)
    return RawData(X, np.array(classes, dtype=np.int64), groups=group_indices(patients), image_shape=_SHAPE)


def _read_packed(edition: Edition, paths: Mapping[str, Path]) -> RawData:
    (file,) = edition.files
    check_file(paths[file.name], file)
    fields = load_packed(paths[file.name], "y", "patient")
    return RawData(
        flatten_images(fields["x"]),
        fields["y"].astype(np.int64),
        groups=group_indices(fields["patient"].tolist()),
        image_shape=_SHAPE,
    )


MSLD = DatasetRecord(
    name="msld",
    title="MSLD",
    summary="photographs of rashes at 64x64 pixels, monkeypox against chickenpox and measles (228 points, by patient)",
    source="https://github.com/mHealthBuet/Monkeypox-Skin-Lesion-Dataset",
    licence="CC BY-NC by the authors' page, MIT by their repository; the images are from the web: no redistribution",
    citation="Ali et al. (2022), Monkeypox skin lesion detection using deep learning models, arXiv:2207.03342",
    class_names=("chickenpox or measles", "monkeypox"),
    editions=(
        Edition(
            "official",
            _read_folder,
            files=(DataFile(_ORIGINAL, folder=True),),
            by_hand=(
                "Get nafin59/monkeypox-skin-lesion-dataset from https://www.kaggle.com/datasets (needs an account) and "
                "unpack it in the sub-folder msld: the images are then in 'msld/Original Images/Original Images/Monkey "
                "Pox' and '.../Others'."
            ),
        ),
        Edition(
            "packed",
            _read_packed,
            files=(
                DataFile("msld64.npz", "029704bd1648618e86101d77eb465e15a6720c617492aa00e2fc3afdb7603122", 2_393_757),
            ),
            by_hand="The same images at 64x64 pixels are also read from msld/msld64.npz, which is not published.",
        ),
    ),
    tasks=(
        Task("monkeypox", (1,), (0,), "+1: monkeypox, -1: chickenpox or measles", "the disease against its absence"),
    ),
    note=(
        "Stands in for the paper's monkeypox set PDMD (646 / 158), which is private. Images are resized to 64x64 from "
        "224x224, and patients are not divided between training and test part. The augmented images of the authors "
        "and the second version of the set are not read."
    ),
)
