"""mini-MIAS: screening mammograms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from usimul.datasets.checksums import check_file
from usimul.datasets.folders import read_images
from usimul.datasets.packed import flatten_images, load_packed
from usimul.datasets.records import DataFile, DatasetRecord, Edition, RawData, Task, check_counts
from usimul.validation import FileFormatError

__all__ = ["COUNTS", "MIAS"]

COUNTS = (207, 63, 52)

_SHAPE = (1, 64, 64)
_SEVERITIES = ("N", "B", "M")
_FOLDER = "all-mias"
# A film with several abnormalities has several lines. Some lines lack the place; all abnormal ones have the severity.
_LINE = re.compile(r"^mdb(\d{3})[ \t]+[FGD][ \t]+(?:NORM|[A-Z]{4}[ \t]+([BM]))\b", re.MULTILINE)


def _read_official(edition: Edition, paths: Mapping[str, Path]) -> RawData:
    folder = paths[_FOLDER]
    table = folder / "Info.txt"
    if not table.is_file():
        raise FileFormatError(f"{table}: expected the list of films, found no such file. Unpack the whole archive.")
    worst: dict[int, int] = {}
    for match in _LINE.finditer(table.read_text(encoding="latin-1")):
        film, severity = int(match[1]), _SEVERITIES.index(match[2] or "N")
        worst[film] = max(worst.get(film, 0), severity)
    films = sorted(worst)
    classes = np.array([worst[film] for film in films], dtype=np.int64)
    check_counts(table, classes, COUNTS)
    return RawData(
        read_images([folder / f"mdb{film:03d}.pgm" for film in films], channels=1),
        classes,
        # The two breasts of a woman have numbers that follow each other, from 1 and 2 on.
        groups=(np.array(films, dtype=np.int64) + 1) // 2,
        image_shape=_SHAPE,
    )


def _read_packed(edition: Edition, paths: Mapping[str, Path]) -> RawData:
    (file,) = edition.files
    path = paths[file.name]
    check_file(path, file)
    fields = load_packed(path, "severity", "patient")
    severities = fields["severity"].tolist()
    if not set(severities) <= set(_SEVERITIES):
        raise FileFormatError(f"{path}: expected severities N, B, and M, found {sorted(set(severities))}.")
    return RawData(
        flatten_images(fields["x"]),
        np.array([_SEVERITIES.index(severity) for severity in severities], dtype=np.int64),
        groups=fields["patient"].astype(np.int64),
        image_shape=_SHAPE,
    )


MIAS = DatasetRecord(
    name="mias",
    title="mini-MIAS",
    summary="mammograms at 64x64 pixels, with an abnormality against normal (322 films of 161 patients)",
    source="http://peipa.essex.ac.uk/info/mias.html",
    licence="research use only, may not be rented, leased, or sold; no redistribution",
    citation="Suckling et al. (1994), The Mammographic Image Analysis Society digital mammogram database",
    class_names=("normal", "benign", "malignant"),
    editions=(
        Edition(
            "official",
            _read_official,
            files=(DataFile(_FOLDER, folder=True),),
            by_hand=(
                "Get all-mias.tar.gz from http://peipa.essex.ac.uk/info/mias.html and unpack it in a folder all-mias "
                "of the sub-folder mias: mias/all-mias/Info.txt and mias/all-mias/mdb001.pgm to mdb322.pgm."
            ),
        ),
        Edition(
            "packed",
            _read_packed,
            files=(
                DataFile(
                    "mias_films64.npz", "8c18dbf4985b088e14d634284614f7205a313b971c5d87849a97f7e24122f976", 619_059
                ),
            ),
            by_hand="Films at 64x64 pixels are also read from mias/mias_films64.npz, which is not published.",
        ),
        Edition(
            "packed-patches",
            _read_packed,
            files=(
                DataFile(
                    "mias_patches64.npz", "92210b78b867496de70879739dcdd6cb2d15e5a45e00d270bfa185d82644596d", 2_881_407
                ),
            ),
            by_hand="Patches of films are read from mias/mias_patches64.npz, which is not published.",
            part="patches",
        ),
    ),
    tasks=(
        Task(
            "abnormal",
            (1, 2),
            (0,),
            "+1: benign or malignant abnormality, -1: normal",
            "the finding against its absence",
        ),
    ),
    note=(
        "Stands in for the paper's DDSM (4,080 / 1,020, three channels). Grey, resized to 64x64 from 1024x1024; "
        "patients are not divided between training and test part. Edition packed-patches has 64x64 patches: 454 around "
        "annotated abnormalities (up to 4 shifted ones for each) and 621 of normal films; their choice is not a "
        "published one."
    ),
)
