"""Partial-label sets: features, the true class, and a set of candidate classes for each point.

The candidate sets are not used. Labels, and all supervision that is drawn from them, come from the true targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from urllib.parse import quote

import numpy as np

from usimul.datasets.matlab import read_mat, refuse, some_rows
from usimul.datasets.records import DataFile, DatasetRecord, Edition, RawData, Task

__all__ = ["BIRDSONG", "FGNET", "LOST", "MSRCV2", "YAHOO_NEWS", "read_partial_labels"]

PAGE = "http://palm.seu.edu.cn/zhangml/"
TRUE_TARGETS = "Candidate sets are not used; labels come from the true targets."
UNSTATED = "The paper does not say how it made two classes."


def read_partial_labels(
    edition: Edition, paths: Mapping[str, Path], *, n_points: int, n_features: int, n_classes: int
) -> RawData:
    """Read ``data`` (n, d), ``target`` (classes, n), and ``partial_target`` (classes, n), sparse or dense."""
    (file,) = edition.files
    by_class = (n_classes, n_points)
    shapes = {"data": (n_points, n_features), "target": by_class, "partial_target": by_class}
    found = read_mat(paths[file.name], shapes, file.sha256)
    X, target, candidates = found["data"].astype(np.float64), found["target"], found["partial_target"]
    true = target != 0
    checks = {
        "finite numbers in `data`": ~np.isfinite(X).all(axis=1),
        "only 0 and 1 in `target`": (true & (target != 1)).any(axis=0),
        "only 0 and 1 in `partial_target`": ((candidates != 0) & (candidates != 1)).any(axis=0),
        "exactly one true class": true.sum(axis=0) != 1,
        "the true class among the candidates": (true & (candidates == 0)).any(axis=0),
    }
    problems = [
        f"expected {what}, found otherwise in {some_rows(wrong)}" for what, wrong in checks.items() if wrong.any()
    ]
    if problems:
        refuse(paths[file.name], problems)
    return RawData(X, true.argmax(axis=0).astype(np.int64), standardise=True)


def _task_first(n_first: int, n_classes: int, noun: str) -> Task:
    rule = "ours: the first classes, as many as bring the share of +1 nearest to one half"
    sides = f"+1: {noun} 0 to {n_first - 1}, -1: {noun} {n_first} to {n_classes - 1}"
    return Task("first-half", tuple(range(n_first)), tuple(range(n_first, n_classes)), sides, f"{rule}. {UNSTATED}")


def _task_parity(n_classes: int, noun: str) -> Task:
    even, odd = tuple(range(0, n_classes, 2)), tuple(range(1, n_classes, 2))
    origin = f"even class index +1, as Wang et al. 2023 (ConfDiff) do elsewhere. {UNSTATED}"
    return Task("parity", even, odd, f"+1: {noun} of even index, -1: of odd index", origin)


def _record(
    name: str,
    title: str,
    what: str,
    file: DataFile,
    size: tuple[int, int, int],
    *,
    citation: str,
    note: str,
    n_first: int | None = None,
    noun: str = "classes",
) -> DatasetRecord:
    n_points, n_features, n_classes = size
    archive = f"{PAGE}files/{quote(Path(file.name).stem, safe='!')}.rar"
    tasks = () if n_first is None else (_task_first(n_first, n_classes, noun),)
    return DatasetRecord(
        name=name,
        title=title,
        summary=f"{what} ({n_points:,} points, standardised)",
        source=f"{PAGE} (Min-Ling Zhang), partial-label sets",
        licence="none stated; property of the authors of the cited paper, academic use",
        citation=citation,
        class_names=tuple(f"{'age' if noun == 'ages' else 'class'} {index}" for index in range(n_classes)),
        editions=(
            Edition(
                "official",
                partial(read_partial_labels, n_points=n_points, n_features=n_features, n_classes=n_classes),
                files=(file,),
                by_hand=f"Get {archive}, unpack it with another program (this one cannot unpack .rar), and pass the "
                f"folder that holds {file.name!r} as `folder`",
            ),
        ),
        tasks=(*tasks, _task_parity(n_classes, noun)),
        note=f"{TRUE_TARGETS} {note}",
    )


LOST = _record(
    "lost",
    "Lost",
    "faces of a television series, by who is shown",
    DataFile("lost.mat", "42a8cc43e05578087e7b8ca194647829ec535dc4d0a86cf47f357c5eb3146e4f", 936_096),
    (1122, 108, 16),
    n_first=3,
    citation="Cour, Sapp, Taskar (2011), Learning from partial labels, JMLR 12",
    note="The paper's 418 / 104 points of 50 features match no public version.",
)

MSRCV2 = _record(
    "msrcv2",
    "MSRCv2",
    "segments of photographs, by what is shown",
    DataFile("MSRCv2.mat", "948e4d443a5450308f05aa689bc82d9bcc7af699a113a6a81c40ef337a20c393", 381_088),
    (1758, 48, 23),
    n_first=7,
    citation="Liu, Dietterich (2012), A conditional multinomial mixture model for superset label learning, NIPS 25",
    note="The paper's 463 / 128 points match no public version. Five rows occur twice.",
)

BIRDSONG = _record(
    "birdsong",
    "BirdSong",
    "syllables of bird song, by species",
    DataFile("BirdSong.mat", "2170d46765a151ac80623d9a1242e0299802236e5574442bdb596bef90f50743", 1_052_915),
    (4998, 38, 13),
    n_first=5,
    citation="Briggs, Fern, Raich (2012), Rank-loss support instance machines for MIML instance annotation, KDD",
    note="The paper's counts, 4,998 / 4,994, look like typing errors: the whole set has 4,998 points.",
)

FGNET = _record(
    "fgnet",
    "FG-NET",
    "faces, by age",
    DataFile("FG-NET.mat", "5b8d43e40cee007f6438a7a74d600b5cf67ac596754a322ce91b0fc6811f45db", 2_024_494),
    (1002, 262, 78),
    n_first=14,
    noun="ages",
    citation="Panis, Lanitis (2014), An overview of research activities in facial age estimation, ECCV workshops",
    note="Not used in the paper. The file does not say which faces are of one person; a person may be in both parts.",
)

# Without a checksum, and without the first task: nobody here has seen the file, and the class counts are not known.
YAHOO_NEWS = _record(
    "yahoo_news",
    "Yahoo! News",
    "faces of news photographs, by who is shown",
    DataFile("Yahoo! News.mat"),
    (22_991, 163, 219),
    citation="Guillaumin, Verbeek, Schmid (2010), Multiple instance metric learning from automatically labeled bags of "
    "faces, ECCV",
    note="The paper's 7,813 / 1,955 points are fewer than the public version's 22,991. The reader was tested on "
    "made-up files of this format only.",
)
