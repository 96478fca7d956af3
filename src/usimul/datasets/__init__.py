"""Labelled data sets by name.

To add a set: write one file with a reader and a ``DatasetRecord``, and add the record to ``RECORDS`` below.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from usimul.datasets.base import Dataset, DatasetNotFoundError, resample_to_prior
from usimul.datasets.cifar10 import CIFAR10
from usimul.datasets.ddsm import DDSM
from usimul.datasets.download import DownloadError, candidate_folders, download_files, file_in, find_files
from usimul.datasets.embedded import BREAST_CANCER, DIGITS
from usimul.datasets.ham10000 import HAM10000
from usimul.datasets.kmnist import KMNIST
from usimul.datasets.mias import MIAS
from usimul.datasets.mnist import FASHION_MNIST, MNIST
from usimul.datasets.msld import MSLD
from usimul.datasets.partial_labels import BIRDSONG, FGNET, LOST, MSRCV2, YAHOO_NEWS
from usimul.datasets.pendigits import PENDIGITS
from usimul.datasets.records import DataFile, DatasetRecord, Edition, RawData, Task
from usimul.datasets.svhn import SVHN
from usimul.datasets.synthetic import GAUSSIANS, gaussian_bayes_accuracy, make_gaussians
from usimul.validation import FileFormatError, InputError, check_choice, check_seed

__all__ = [
    "RECORDS",
    "Dataset",
    "DatasetNotFoundError",
    "DatasetRecord",
    "DownloadError",
    "Edition",
    "RawData",
    "Task",
    "dataset_names",
    "download_dataset",
    "gaussian_bayes_accuracy",
    "get_record",
    "load_dataset",
    "make_gaussians",
    "read_raw",
    "resample_to_prior",
]

RECORDS: dict[str, DatasetRecord] = {
    record.name: record
    for record in (
        *(DIGITS, BREAST_CANCER, GAUSSIANS, MNIST, FASHION_MNIST),
        *(KMNIST, CIFAR10, SVHN, MSLD, HAM10000, MIAS, DDSM),
        *(PENDIGITS, LOST, MSRCV2, BIRDSONG, FGNET, YAHOO_NEWS),
    )
}


def dataset_names() -> list[str]:
    """Return the names that ``load_dataset`` knows.

    Examples
    --------
    >>> "mnist" in dataset_names()
    True
    """
    return list(RECORDS)


def get_record(name: str) -> DatasetRecord:
    """Return the table entry of a data set: summary, licence, citation, files, options.

    Examples
    --------
    >>> get_record("fashion_mnist").licence
    'MIT'
    """
    return RECORDS[check_choice(name, RECORDS, "name")]


def load_dataset(
    name: str,
    *,
    task: str | None = None,
    edition: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    download: bool = False,
    base_url: str | None = None,
    random_state: int | np.random.Generator | None = 0,
    **options: Any,
) -> Dataset:
    """Load a data set by name.

    Parameters
    ----------
    name
        One of ``dataset_names()``.
    task
        Which classes count as +1 and -1, see ``get_record(name).tasks``; None takes the first.
    edition
        Which form of the files, see ``get_record(name).editions``; None takes the first that is there. An edition may
        be a part of the set; ``measured_on`` of the result says so.
    folder
        Data folder with a sub-folder named after the set, or the folder that holds its files. None looks in the
        folder that the environment variable ``USIMUL_DATA`` names, then in ``~/.cache/usimul`` (or in
        ``$XDG_CACHE_HOME/usimul``). Sets that need no files ignore it.
    download
        Whether to fetch files that are not there. Nothing is ever fetched unless this is True.
    base_url
        Where to fetch from instead of the set's own address.
    random_state
        Seed of the split into training and test part, or of the draw. Sets with a published split ignore it.
    **options
        Further options of sets that are drawn, listed in ``get_record(name).options``.

    Returns
    -------
    Dataset
        The points, labels of +1 and -1, and where they come from.

    Raises
    ------
    InputError
        If the name, the task, the edition or an option is unknown.
    DatasetNotFoundError
        If files are missing and ``download`` is False.
    FileFormatError
        If a file is damaged or not the published one.

    Examples
    --------
    >>> load_dataset("digits")
    Dataset('digits', 1438 training and 359 test points, 64 features)
    >>> load_dataset("gaussians", n_train=50, n_test=20, prior=0.3)
    Dataset('gaussians', 50 training and 20 test points, 2 features)
    >>> load_dataset("fashion-mnist")
    Traceback (most recent call last):
    ...
    usimul.validation.InputError: `name` must be one of: ... Got 'fashion-mnist'. Did you mean 'fashion_mnist'...
    """
    record = get_record(name)
    for option in options:
        if not record.options:
            raise InputError(f"Data set {name!r} takes no further options. Got {option!r}.")
        check_choice(option, record.options, "option")
    check_seed(random_state)
    if record.make is not None:
        if task is not None or edition is not None:
            raise InputError(f"Data set {name!r} is drawn on the spot: it has no tasks and no editions.")
        return record.make(random_state=random_state, **options)
    chosen = record.task(task)
    found, raw = read_raw(name, edition=edition, folder=folder, download=download, base_url=base_url)
    return record.build(found, raw, chosen, random_state)


def read_raw(
    name: str,
    *,
    edition: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    download: bool = False,
    base_url: str | None = None,
) -> tuple[Edition, RawData]:
    """Read all points of a set with their published classes, before any task is applied.

    Parameters are those of `load_dataset`.

    Examples
    --------
    >>> edition, raw = read_raw("digits")
    >>> raw.X.shape, np.bincount(raw.classes).tolist()
    ((1797, 64), [178, 182, 177, 183, 181, 182, 181, 179, 174, 180])
    """
    record = get_record(name)
    if record.make is not None:
        raise InputError(f"Data set {name!r} is drawn on the spot: it has no published classes. Use load_dataset.")
    try:
        found, paths = find_files(record, folder, edition)
    except DatasetNotFoundError:
        if not download:
            raise
        _fetch(record, folder, base_url, edition)
        found, paths = find_files(record, folder, edition)
    return found, found.read(found, paths)


def download_dataset(
    name: str, *, folder: str | os.PathLike[str] | None = None, base_url: str | None = None, edition: str | None = None
) -> Path | None:
    """Fetch the files of a data set without loading it, and return the folder they are in.

    Files that are already there stay untouched. None is returned for sets that need no files.

    Examples
    --------
    >>> download_dataset("digits") is None
    True
    """
    record = get_record(name)
    return _fetch(record, folder, base_url, edition) if record.needs_files else None


def _fetch(
    record: DatasetRecord, folder: str | os.PathLike[str] | None, base_url: str | None, edition: str | None
) -> Path:
    """Fetch files; those without a published checksum are kept only if they can be read."""
    there = {path for place in candidate_folders(record, folder) for e in record.editions for path in _paths(e, place)}
    target = download_files(record, folder, base_url, edition)
    wanted = next(e for e in record.editions if e.can_be_fetched and edition in (None, e.name))
    paths = _paths(wanted, target)
    unchecked = [
        path for path, file in paths.items() if file.sha256 is None and file.packed_sha256 is None and path not in there
    ]
    try:
        if unchecked:
            wanted.read(wanted, {file.name: path for path, file in paths.items()})
    except FileFormatError as error:
        if any(str(path) in str(error) for path in paths if path not in unchecked):
            raise
        for path in unchecked:
            path.unlink(missing_ok=True)
        raise FileFormatError(
            f"{error}\nWhat was fetched is not the set, and was deleted: {', '.join(map(str, unchecked))}. Try again "
            "later, or another base_url=..., --base-url."
        ) from error
    return target


def _paths(edition: Edition, folder: Path) -> dict[Path, DataFile]:
    return {path: file for file in edition.files if (path := file_in(folder, file)) is not None}
