"""DDSM: screening mammograms, read from a folder that the user lays out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from usimul.datasets.folders import group_indices, list_images, read_images
from usimul.datasets.records import DataFile, DatasetRecord, Edition, RawData, Task
from usimul.validation import FileFormatError

__all__ = ["DDSM"]

_NAMES = (
    "A file's name starts with the patient up to the first underscore, such as P00001_left_CC.png, or has it as "
    "CBIS-DDSM writes it, such as P_00001_LEFT_CC.png."
)
_SIDES = ("negative", "positive")


def _patient(path: Path) -> str:
    """Return the patient of a file: P_00001 wherever it stands, as in CBIS-DDSM, else the text before the first _.

    >>> [_patient(Path(name)) for name in ("P_00001_LEFT_CC.png", "Mass-Test_P_00016_LEFT_CC.png", "p7_left.png")]
    ['P_00001', 'P_00016', 'p7']
    """
    found = re.search(r"(?:^|_)(P_\d+)(?=_|$)", path.stem)
    return found[1] if found else path.stem.partition("_")[0]


def _read_folders(edition: Edition, paths: Mapping[str, Path]) -> RawData:
    sides = [list_images(paths[side]) for side in _SIDES]
    files = [path for side in sides for path in side]
    patients = [_patient(path) for path in files]
    if len(set(patients)) < 2:
        raise FileFormatError(
            f"{files[0].parent.parent}: expected images of several patients, found {len(files)} of {patients[0]!r} "
            f"alone. {_NAMES}"
        )
    return RawData(
        read_images(files),
        np.repeat(np.arange(2, dtype=np.int64), [len(side) for side in sides]),
        groups=group_indices(patients),
        image_shape=(3, 64, 64),
    )


DDSM = DatasetRecord(
    name="ddsm",
    title="DDSM",
    summary="mammograms at 64x64 pixels, from two folders that you lay out, divided by patient",
    source="http://www.eng.usf.edu/cvprg/Mammography/Database.html",
    licence="not stated for DDSM; CC BY 3.0 for CBIS-DDSM; no redistribution",
    citation="Heath et al. (2001), The digital database for screening mammography; Lee et al. (2017), "
    "doi:10.1038/sdata.2017.177 (CBIS-DDSM)",
    class_names=_SIDES,
    editions=(
        Edition(
            "folder",
            _read_folders,
            files=tuple(DataFile(side, folder=True) for side in reversed(_SIDES)),
            by_hand=(
                "Get the mammograms from http://www.eng.usf.edu/cvprg/Mammography/Database.html, or as CBIS-DDSM from "
                "https://www.cancerimagingarchive.net/collection/cbis-ddsm/ , convert them to png or jpg (grey values "
                "over the whole range of 8 or 16 bits), and put them in ddsm/positive and ddsm/negative. "
                f"{_NAMES} The images of one patient are never divided between training and test part."
            ),
            part="own selection",
        ),
    ),
    tasks=(
        Task("positive", (1,), (0,), "+1: folder positive, -1: folder negative", "the folders; the paper does not say"),
    ),
    note=(
        "The paper uses 4,080 / 1,020 images and does not say which. What the two folders mean is yours to decide and "
        "to report. mini-MIAS (mias) is a set of the same kind that stands in for this one."
    ),
)
