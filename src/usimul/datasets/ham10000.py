"""HAM10000: dermatoscopic images of pigmented skin lesions."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from usimul.datasets.checksums import check_file
from usimul.datasets.folders import group_indices, read_images
from usimul.datasets.packed import flatten_images, load_packed
from usimul.datasets.records import DataFile, DatasetRecord, Edition, RawData, Task, check_counts
from usimul.validation import FileFormatError

__all__ = ["COUNTS", "HAM10000"]

_SHAPE = (3, 64, 64)
_CODES = ("akiec", "bcc", "bkl", "df", "mel", "nv", "vasc")
COUNTS = (327, 514, 1099, 115, 1113, 6705, 142)
"""Images of each class, in the order of the codes."""

_METADATA = "HAM10000_metadata.csv"
_FOLDERS = ("HAM10000_images_part_1", "HAM10000_images_part_2")
_COLUMNS = ("lesion_id", "image_id", "dx")


def _read_metadata(path: Path) -> list[tuple[str, str, int]]:
    """Lesion, image, and class of every image, by image."""
    with path.open(encoding="utf-8", errors="replace", newline="") as stream:
        lines = csv.DictReader(stream)
        missing = [name for name in _COLUMNS if name not in (lines.fieldnames or ())]
        if missing:
            found = ", ".join(lines.fieldnames or ()) or "none"
            raise FileFormatError(
                f"{path}: expected the columns {', '.join(_COLUMNS)}, found {found}. Get the file again."
            )
        rows = []
        for line in lines:
            if line["dx"] not in _CODES:
                raise FileFormatError(
                    f"{path}: line {lines.line_num}: expected a diagnosis out of {', '.join(_CODES)}, "
                    f"found {line['dx']!r}. The file is damaged or of another version; get it again."
                )
            rows.append((line["lesion_id"], line["image_id"], _CODES.index(line["dx"])))
    check_counts(path, np.array([row[2] for row in rows], dtype=np.int64), COUNTS)
    return sorted(rows, key=lambda row: row[1])


def _read_folders(edition: Edition, paths: Mapping[str, Path]) -> RawData:
    rows = _read_metadata(paths[_METADATA])
    # The first image of a lesion only: the others show the same thing again, and some lesions have six.
    first = {lesion: (image, label) for lesion, image, label in reversed(rows)}
    chosen = sorted((image, lesion, label) for lesion, (image, label) in first.items())
    files, missing = [], []
    for image, _, _ in chosen:
        candidates = [paths[folder] / f"{image}.jpg" for folder in _FOLDERS]
        file = next((path for path in candidates if path.is_file()), None)
        if file is None:
            missing.append(f"{image}.jpg")
        else:
            files.append(file)
    if missing:
        raise FileFormatError(
            f"{paths[_FOLDERS[0]]}, {paths[_FOLDERS[1]]}: expected the {len(chosen)} images that {_METADATA} names, "
            f"{len(missing)} not found: {', '.join(missing[:10])}{', ...' if len(missing) > 10 else ''}. "
            "Unpack both parts of the images."
        )
    return RawData(
        read_images(files, crop=True),
        np.array([label for _, _, label in chosen], dtype=np.int64),
        groups=group_indices([lesion for _, lesion, _ in chosen]),
        image_shape=_SHAPE,
    )


def _read_packed(edition: Edition, paths: Mapping[str, Path]) -> RawData:
    (file,) = edition.files
    path = paths[file.name]
    check_file(path, file)
    fields = load_packed(path, "dx", "lesion_id")
    codes = fields["dx"].tolist()
    if not set(codes) <= set(_CODES):
        raise FileFormatError(f"{path}: expected diagnoses out of {', '.join(_CODES)}, found {sorted(set(codes))}.")
    return RawData(
        flatten_images(fields["x"]),
        np.array([_CODES.index(code) for code in codes], dtype=np.int64),
        groups=group_indices(fields["lesion_id"].tolist()),
        image_shape=_SHAPE,
    )


HAM10000 = DatasetRecord(
    name="ham10000",
    title="HAM10000",
    summary="dermatoscopic images at 64x64 pixels, malignant against benign lesions (7,470 points, one per lesion)",
    source="https://doi.org/10.7910/DVN/DBW86T",
    licence="CC BY-NC 4.0; no redistribution",
    citation="Tschandl, Rosendahl, Kittler (2018), doi:10.1038/sdata.2018.161",
    class_names=(
        "actinic keratosis or Bowen's disease",
        "basal cell carcinoma",
        "benign keratosis",
        "dermatofibroma",
        "melanoma",
        "melanocytic nevus",
        "vascular lesion",
    ),
    editions=(
        Edition(
            "official",
            _read_folders,
            files=(DataFile(_METADATA), *(DataFile(folder, folder=True) for folder in _FOLDERS)),
            by_hand=(
                "Get HAM10000 from https://doi.org/10.7910/DVN/DBW86T (terms to be accepted there) or "
                "kmader/skin-cancer-mnist-ham10000 from https://www.kaggle.com/datasets (needs an account), and lay "
                "out ham10000/HAM10000_metadata.csv, ham10000/HAM10000_images_part_1/ISIC_*.jpg, and "
                "ham10000/HAM10000_images_part_2/ISIC_*.jpg; the first may have to be renamed."
            ),
        ),
        Edition(
            "packed-part",
            _read_packed,
            files=(
                DataFile(
                    "ham10000_64.npz.xz", "bd392e2d4b10762b6892a133161cc51a6334bde5e2d548da6bc6c50e24371e0c", 12_120_332
                ),
            ),
            by_hand="2,000 lesions are also read from ham10000/ham10000_64.npz.xz, which is not published.",
            part="part of 2,000 lesions",
        ),
    ),
    tasks=(
        Task(
            "malignant",
            (0, 1, 4),
            (2, 3, 5, 6),
            "+1: malignant or pre-malignant (mel bcc akiec), -1: benign (nv bkl vasc df)",
            "the disease against its absence",
        ),
    ),
    note=(
        "Stands in for the paper's skin disease set PDSD (740 / 185), which is private. One image of each lesion, cut "
        "to the central square and resized to 64x64 from 600x450. Edition packed-part holds the malignant lesions of "
        "7,017 of the 10,015 images and a random draw of the benign ones."
    ),
)
