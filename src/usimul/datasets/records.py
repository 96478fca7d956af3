"""From published files to a binary problem: editions of a set, their content, and the tasks that split its classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from usimul.datasets.base import Dataset, IntArray, grouped_split, stratified_split
from usimul.validation import FileFormatError, InputError, check_choice

__all__ = ["DataFile", "DatasetRecord", "Edition", "RawData", "Task", "check_counts"]

TEST_SHARE = 0.2

RandomState = int | np.random.Generator | None


@dataclass(frozen=True)
class DataFile:
    """One file or folder that an edition is read from.

    Parameters
    ----------
    name
        Path below the set's folder. With ``gz``, without that suffix: the packed and the unpacked file are both found.
    sha256
        SHA-256 of the content (unpacked, with ``gz``: the packed file differs from mirror to mirror). None: no sum was
        published, so the content's shape and class counts are checked instead.
    n_bytes
        Length of that content, where it is known.
    gz
        Whether the file is published packed with gzip, under ``name + ".gz"``.
    packed_sha256
        SHA-256 of the published packed file, for sets whose unpacked sum is not known.
    md5
        MD5 of the content, where the publisher gives only that.
    url
        Address, where it is not ``base_url`` of the edition followed by the name.
    folder
        Whether this is a folder of files, which is not fetched by this program.
    """

    name: str
    sha256: str | None = None
    n_bytes: int | None = None
    gz: bool = False
    packed_sha256: str | None = None
    md5: str | None = None
    url: str = ""
    folder: bool = False

    @property
    def published_name(self) -> str:
        """Name of the file as it is published."""
        return f"{self.name}.gz" if self.gz else self.name


@dataclass(frozen=True, eq=False)
class RawData:
    """The content of an edition, before a task makes two classes of its classes.

    Parameters
    ----------
    X
        Points, ``(n, d)``. Images are uint8, flattened with channels first; other points are numbers.
    classes
        Class index of each point as published, ``(n,)``.
    n_train
        How many points, from the first on, are the published training part; None if no split was published.
    groups
        Points with the same group (a patient) are never divided between training and test part.
    image_shape
        ``(channels, height, width)`` of a row.
    standardise
        Whether features are to be standardised, by the statistics of the training part.
    """

    X: NDArray[Any]
    classes: IntArray
    n_train: int | None = None
    groups: IntArray | None = None
    image_shape: tuple[int, int, int] | None = None
    standardise: bool = False


@dataclass(frozen=True)
class Edition:
    """One form in which a set, or a part of it, lies on a disk.

    Parameters
    ----------
    name
        Key, such as ``"official"``.
    read
        Called with the edition and the path of each entry of ``files`` by name.
    files
        What must be there; empty for sets that come with a dependency.
    base_url
        Folder address that the files are fetched from; empty if this program cannot fetch them.
    by_hand
        Where to get the files and how to lay them out, when this program cannot fetch them.
    part
        What part of the set this is, such as ``"test part"``; empty for the whole set. Every number measured on a part
        must name it.
    """

    name: str
    read: Callable[[Edition, Mapping[str, Path]], RawData]
    files: tuple[DataFile, ...] = ()
    base_url: str = ""
    by_hand: str = ""
    part: str = ""

    @property
    def can_be_fetched(self) -> bool:
        """Whether this program knows an address for every file."""
        return bool(self.files) and all(f.url or (self.base_url and not f.folder) for f in self.files)


@dataclass(frozen=True)
class Task:
    """A named way to make two classes of the classes of a set.

    Parameters
    ----------
    name
        Key, such as ``"even-odd"``.
    positive, negative
        Class indices that count as +1 and as -1. Points of other classes are dropped.
    classes
        What +1 and -1 stand for, in words.
    origin
        Where the split comes from.
    stratify
        Without a published split, a fifth is the test part, drawn by original ``"class"`` or by ``"side"``.
    round_up
        Whether a part of a point goes to the test part, as in ConfDiff's code; otherwise to the nearer one.
    """

    name: str
    positive: tuple[int, ...]
    negative: tuple[int, ...]
    classes: str
    origin: str
    stratify: str = "side"
    round_up: bool = False


@dataclass(frozen=True)
class DatasetRecord:
    """One line of the table of data sets.

    Parameters
    ----------
    name
        Key for ``load_dataset``, and the name of the sub-folder that holds the files.
    title
        The name that papers use.
    summary
        One line for listings.
    source, licence, citation
        Passed on to the ``Dataset``.
    class_names
        Name of each original class, by index.
    editions
        Forms in which the files may lie on the disk; the first that is found is taken, so whole sets come first.
    tasks
        Ways to make two classes; the first is the default.
    make
        For sets that are drawn on the spot, instead of editions and tasks: ``make(random_state, **options)``.
    options
        Names of the further keyword options that ``make`` takes.
    note
        What a user should know, such as how the set differs from the one in the paper.
    """

    name: str
    title: str
    summary: str
    source: str
    licence: str
    citation: str
    class_names: tuple[str, ...] = ()
    editions: tuple[Edition, ...] = ()
    tasks: tuple[Task, ...] = ()
    make: Callable[..., Dataset] | None = None
    options: tuple[str, ...] = ()
    note: str = ""

    @property
    def needs_files(self) -> bool:
        """Whether anything must be on disk."""
        return any(edition.files for edition in self.editions)

    def task(self, name: str | None) -> Task:
        """Return a task by name; None is the default one."""
        if not self.tasks:
            raise InputError(f"data set {self.name!r} has no tasks to choose from. Got {name!r}; leave `task` out.")
        known = {task.name: task for task in self.tasks}
        return self.tasks[0] if name is None else known[check_choice(name, known, "task")]

    def build(self, edition: Edition, raw: RawData, task: Task, random_state: RandomState) -> Dataset:
        """Apply a task to the content of an edition: choose classes, divide into parts, scale."""
        y = np.zeros(len(raw.classes), dtype=np.int64)
        y[np.isin(raw.classes, task.positive)] = 1
        y[np.isin(raw.classes, task.negative)] = -1
        kept = np.flatnonzero(y)
        if raw.n_train is not None:
            train, test = kept[kept < raw.n_train], kept[kept >= raw.n_train]
        elif raw.groups is not None:
            train, test = (kept[rows] for rows in grouped_split(raw.groups[kept], y[kept], TEST_SHARE, random_state))
        else:
            strata = (raw.classes if task.stratify == "class" else y)[kept]
            train, test = (kept[rows] for rows in stratified_split(strata, TEST_SHARE, random_state, task.round_up))
        X_train, X_test = _scaled(raw, train), _scaled(raw, test)
        if raw.standardise:
            # Statistics of the training part only; those of all rows would let the test part leak into training.
            mean, deviation = X_train.mean(axis=0), X_train.std(axis=0)
            deviation[deviation == 0] = 1.0
            X_train, X_test = (X_train - mean) / deviation, (X_test - mean) / deviation
        part = f" {edition.part}" if edition.part else ""
        return Dataset(
            self.name,
            np.ascontiguousarray(X_train, dtype=np.float32),
            y[train],
            np.ascontiguousarray(X_test, dtype=np.float32),
            y[test],
            source=self.source,
            licence=self.licence,
            citation=self.citation,
            classes=task.classes,
            image_shape=raw.image_shape,
            task=task.name,
            measured_on=f"{self.title}{part}, {len(train):,} / {len(test):,}",
            class_names=self.class_names,
            original_train=raw.classes[train],
            original_test=raw.classes[test],
            groups_train=None if raw.groups is None else raw.groups[train],
            groups_test=None if raw.groups is None else raw.groups[test],
        )


def _scaled(raw: RawData, rows: IntArray) -> NDArray[Any]:
    """Rows as float32 in [0, 1] for bytes, as float64 where they will be standardised."""
    if raw.X.dtype == np.uint8:
        chosen = raw.X[rows].astype(np.float32)
        chosen /= 255.0
        return chosen
    return raw.X[rows].astype(np.float64 if raw.standardise else np.float32)


def check_counts(what: object, classes: NDArray[Any], expected: tuple[int, ...]) -> None:
    """Raise unless each class occurs as often as published: the check where no checksum is known."""
    found = tuple(np.bincount(np.asarray(classes, dtype=np.int64), minlength=len(expected)).tolist())
    if found != expected:
        raise FileFormatError(
            f"{what}: expected the published class counts {' '.join(map(str, expected))}, "
            f"found {' '.join(map(str, found))}. It is another version of the set, or damaged; delete it "
            "and fetch it again."
        )
