"""What lies on the disk of each data set, and whether it is undamaged."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from usimul.datasets.download import candidate_folders, file_in
from usimul.datasets.records import DataFile, DatasetRecord, Edition
from usimul.datasets.transfer import part_of, wrong_content
from usimul.validation import FileFormatError

__all__ = ["Copy", "copies", "damage", "presence"]


@dataclass(frozen=True)
class Copy:
    """An edition in a folder, whole or with gaps.

    Parameters
    ----------
    edition, folder
        What it is, and where.
    paths
        The files that are there, by their name in the edition.
    unfinished
        Parts of files that a later download continues.
    """

    edition: Edition
    folder: Path
    paths: dict[str, Path]
    unfinished: tuple[Path, ...]

    @property
    def missing(self) -> tuple[DataFile, ...]:
        """Files that are not there."""
        return tuple(file for file in self.edition.files if file.name not in self.paths)

    @property
    def n_bytes(self) -> int:
        """Size on the disk, without unfinished parts."""
        return sum(size_of(path) for path in self.paths.values())


def size_of(path: Path) -> int:
    """Size of a file, or of all files in a folder."""
    found = path.rglob("*") if path.is_dir() else [path]
    return sum(entry.stat().st_size for entry in found if entry.is_file())


def copies(record: DatasetRecord, folder: str | os.PathLike[str] | None = None) -> list[Copy]:
    """Return every edition of a set of which some file is there; the first whole one is what ``load_dataset`` takes."""
    found = []
    for edition in record.editions:
        for place in candidate_folders(record, folder) if edition.files else ():
            paths = {file.name: path for file in edition.files if (path := file_in(place, file)) is not None}
            parts = (part_of(place / file.published_name) for file in edition.files)
            unfinished = tuple(part for part in parts if part.is_file())
            if paths or unfinished:
                found.append(Copy(edition, place, paths, unfinished))
    return found


def presence(record: DatasetRecord, folder: str | os.PathLike[str] | None = None) -> str:
    """Say in one word what is on the disk, from the names of the files alone.

    ``"here"``, ``"part"`` (an edition that is a part of the set), ``"incomplete"`` (files of an edition are missing),
    or ``"missing"``.

    Examples
    --------
    >>> from usimul.datasets import get_record
    >>> presence(get_record("digits"))
    'here'
    >>> presence(get_record("mnist"), "no-such-folder")
    'missing'
    """
    found = copies(record, folder)
    whole = [copy for copy in found if not copy.missing]
    if not record.needs_files or any(not copy.edition.part for copy in whole):
        return "here"
    return "part" if whole else "incomplete" if found else "missing"


def damage(copy: Copy, checked: Callable[[int], None]) -> list[str]:
    """Compare every file with its SHA-256 and return what differs; ``checked`` is told the size of each file.

    Files without a published sum are read instead, which checks their shape and class counts.
    """
    wrong, without_sum = [], False
    for file in copy.edition.files:
        path = copy.paths.get(file.name)
        if path is None:
            continue
        # The sum of a packed file says nothing about one that was unpacked by hand.
        known = file.sha256 or (file.packed_sha256 if path.name == Path(file.published_name).name else None)
        without_sum = without_sum or known is None
        if known is not None and (complaint := wrong_content(path, file)):
            wrong.append(f"{path}: {complaint}")
        checked(size_of(path))
    if without_sum and not wrong and not copy.missing:
        try:
            copy.edition.read(copy.edition, copy.paths)
        except FileFormatError as error:
            wrong.append(str(error))
    return wrong
