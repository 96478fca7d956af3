"""Finding the files of a data set on disk, and fetching them when asked to."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from usimul.datasets.base import DatasetNotFoundError
from usimul.datasets.lock import locked
from usimul.datasets.records import DataFile, DatasetRecord, Edition
from usimul.datasets.transfer import DownloadError, fetch_file, say
from usimul.validation import InputError, InputTypeError, check_choice

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "DATA_VARIABLE",
    "DownloadError",
    "candidate_folders",
    "data_roots",
    "download_files",
    "file_in",
    "find_files",
    "how_to_get",
]

DATA_VARIABLE = "USIMUL_DATA"
SCHEMES = ("http://", "https://", "file://")
LOCK_NAME = ".usimul.lock"


def data_roots(folder: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the folders that are searched, best first; a download goes to the first one.

    An explicit ``folder`` is the only one. Otherwise it is the one that the environment variable ``USIMUL_DATA``
    names, then the cache (``usimul`` in ``XDG_CACHE_HOME`` or ``~/.cache``).

    Examples
    --------
    >>> [root.name for root in data_roots("downloads")]
    ['downloads']
    """
    if folder is not None:
        if not isinstance(folder, str | os.PathLike):
            raise InputTypeError(f"`folder` must be a path. Got {folder!r} of type {type(folder).__name__}.")
        return [Path(folder).expanduser()]
    roots = [Path(value).expanduser()] if (value := os.environ.get(DATA_VARIABLE)) else []
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return [*roots, Path(cache).expanduser() / "usimul"]


def file_in(folder: Path, file: DataFile) -> Path | None:
    """Return the path of a file of a set, packed or not, if it is in ``folder``."""
    if file.folder:
        return folder / file.name if (folder / file.name).is_dir() else None
    candidates = (folder / file.published_name, folder / file.name)
    return next((path for path in candidates if path.is_file()), None)


def candidate_folders(record: DatasetRecord, folder: str | os.PathLike[str] | None) -> Iterator[Path]:
    """Yield the folders that may hold the files of a set, best first."""
    for root in data_roots(folder):
        yield root / record.name
        if folder is not None:
            # A folder given by hand may also be the one with the files in it.
            yield root


def _editions(record: DatasetRecord, edition: str | None) -> tuple[Edition, ...]:
    known = {e.name: e for e in record.editions}
    return record.editions if edition is None else (known[check_choice(edition, known, "edition")],)


def find_files(
    record: DatasetRecord, folder: str | os.PathLike[str] | None = None, edition: str | None = None
) -> tuple[Edition, dict[str, Path]]:
    """Return an edition of ``record`` and the path of each of its files, all from one folder.

    Editions are tried in the order of the record, each in all folders, so a whole set goes before a part of it.

    Raises
    ------
    DatasetNotFoundError
        Naming the folders that were tried, what is missing in each, and how to get the files.
    """
    tried = []
    for wanted in _editions(record, edition):
        for candidate in candidate_folders(record, folder):
            found = {file.name: path for file in wanted.files if (path := file_in(candidate, file)) is not None}
            if len(found) == len(wanted.files):
                return wanted, found
            missing = [file.published_name for file in wanted.files if file.name not in found]
            why = f"missing {', '.join(missing)}" if candidate.is_dir() else "no such folder"
            tried.append(f"  {candidate} ({wanted.name}: {why})")
    raise DatasetNotFoundError(
        f"The files of data set {record.name!r} were not found. Folders tried:\n"
        + "\n".join(tried)
        + "\n"
        + how_to_get(record, edition)
        + f", or set the environment variable {DATA_VARIABLE} to a folder whose sub-folder {record.name!r} has them."
    )


def how_to_get(record: DatasetRecord, edition: str | None = None) -> str:
    """Say how the files of a set are had: by which call, or from where and in which layout."""
    wanted = _editions(record, edition)
    if any(e.can_be_fetched for e in wanted):
        return f'Fetch them with `usimul datasets get {record.name}` or load_dataset("{record.name}", download=True)'
    return " ".join(e.by_hand for e in wanted if e.by_hand).rstrip(".")


def _layout(record: DatasetRecord, folder: Path, edition: str | None) -> str:
    lines = [f"Expected in {folder}:"]
    for wanted in _editions(record, edition):
        names = ", ".join(f"{file.published_name}{'/' if file.folder else ''}" for file in wanted.files)
        lines.append(f"  {names} (edition {wanted.name!r})")
    return "\n".join(lines)


def download_files(
    record: DatasetRecord,
    folder: str | os.PathLike[str] | None = None,
    base_url: str | None = None,
    edition: str | None = None,
) -> Path:
    """Fetch the files of ``record`` that are not there yet and return the folder they are in.

    Each file goes to a hidden name beside its place (``.NAME.part``), is compared with the known SHA-256, and only then
    takes its name. After an interruption the hidden file stays, and the next call continues it, if the server still has
    the same file. Of two processes that fetch into one folder the second waits for the first.

    Parameters
    ----------
    record
        The entry of the table of data sets.
    folder
        Data folder; None takes the first of ``data_roots()``. The files go to its sub-folder named after the set.
    base_url
        Address (http, https, or file) of the folder with the published files; None takes the edition's.
    edition
        Which edition; None takes the first that can be fetched.

    Raises
    ------
    DownloadError
        If an address cannot be read, delivers something else, or the folder cannot be written; or if the set has to
        be got by hand.
    """
    wanted = next((e for e in _editions(record, edition) if e.can_be_fetched), None)
    if wanted is None:
        raise DownloadError(
            f"{f'Edition {edition!r} of data' if edition else 'Data'} set {record.name!r} cannot be fetched by this "
            f"program. {how_to_get(record, edition)}.\n{_layout(record, data_roots(folder)[0] / record.name, edition)}"
        )
    if base_url is not None and not base_url.startswith(SCHEMES):
        raise InputError(f"`base_url` must start with http://, https://, or file://. Got {base_url!r}.")
    target = data_roots(folder)[0] / record.name
    if all(file_in(target, file) for file in wanted.files):
        return target
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DownloadError(f"Cannot make the folder {target}: {error}. Pass a folder=... you may write to.") from error
    try:
        with locked(
            target / LOCK_NAME, lambda: say(f"Another process fetches into {target}; waiting for it.")
        ) as alone:
            for file in wanted.files:
                if file_in(target, file) is None:
                    _fetch(wanted, file, target / file.published_name, base_url, alone)
    except DownloadError:
        raise
    except OSError as error:
        raise DownloadError(f"Cannot write to {target}: {error}. Pass a folder=... you may write to.") from error
    return target


def _fetch(edition: Edition, file: DataFile, path: Path, base_url: str | None, alone: bool) -> None:
    from urllib.parse import quote

    path.parent.mkdir(parents=True, exist_ok=True)
    url = f"{(base_url or edition.base_url).rstrip('/')}/{quote(file.published_name)}"
    url = file.url if file.url and base_url is None else url
    # Without locks another process may write under the common name: use one that nobody else has.
    fetch_file(url, file, path, None if alone else path.with_name(f".{path.name}.{uuid.uuid4().hex}.part"))
