"""Labelled data sets by name.

To add a set: write one file with a loader and a ``DatasetRecord``, and add the record to ``RECORDS`` below.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from usimul.datasets.base import Dataset, DatasetNotFoundError, DatasetRecord, resample_to_prior
from usimul.datasets.download import DownloadError, download_files, find_files
from usimul.datasets.embedded import BREAST_CANCER, DIGITS
from usimul.datasets.mnist import FASHION_MNIST, MNIST
from usimul.datasets.synthetic import GAUSSIANS, gaussian_bayes_accuracy, make_gaussians
from usimul.validation import InputError, check_choice, check_seed

__all__ = [
    "RECORDS",
    "Dataset",
    "DatasetNotFoundError",
    "DatasetRecord",
    "DownloadError",
    "dataset_names",
    "download_dataset",
    "gaussian_bayes_accuracy",
    "get_record",
    "load_dataset",
    "make_gaussians",
    "resample_to_prior",
]

RECORDS: dict[str, DatasetRecord] = {
    record.name: record for record in (DIGITS, BREAST_CANCER, GAUSSIANS, MNIST, FASHION_MNIST)
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
        Further options of the set, listed in ``get_record(name).options``.

    Returns
    -------
    Dataset
        The points, labels of +1 and -1, and where they come from.

    Raises
    ------
    InputError
        If the name or an option is unknown.
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
    >>> load_dataset("mnst")
    Traceback (most recent call last):
    ...
    usimul.validation.InputError: `name` must be one of: digits, breast_cancer, gaussians, mnist, fashion_mnist. \
Got 'mnst'. Did you mean 'mnist' or 'fashion_mnist'?
    """
    record = get_record(name)
    for option in options:
        if not record.options:
            raise InputError(f"Data set {name!r} takes no further options. Got {option!r}.")
        check_choice(option, record.options, "option")
    check_seed(random_state)
    paths: dict[str, Path] = {}
    if record.files:
        try:
            paths = find_files(record, folder)
        except DatasetNotFoundError:
            if not download:
                raise
            download_files(record, folder, base_url)
            paths = find_files(record, folder)
    return record.load(record, paths, random_state, **options)


def download_dataset(
    name: str, *, folder: str | os.PathLike[str] | None = None, base_url: str | None = None
) -> Path | None:
    """Fetch the files of a data set without loading it, and return the folder they are in.

    Files that are already there stay untouched. None is returned for sets that need no files.

    Examples
    --------
    >>> download_dataset("digits") is None
    True
    """
    record = get_record(name)
    return download_files(record, folder, base_url) if record.files else None
