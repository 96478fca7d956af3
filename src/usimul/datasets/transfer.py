"""Fetching one file: continued after an interruption, checked, and under its name only when it is whole."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from usimul.datasets.idx import content_sha256
from usimul.datasets.records import DataFile
from usimul.validation import FileFormatError, UsimulError

__all__ = ["DownloadError", "fetch_file", "part_of", "say", "wrong_content"]

ATTEMPTS = 4
PAUSE_SECONDS = 1.0  # before the second attempt; doubled before each further one
TIMEOUT_SECONDS = 30.0
NO_LENGTH = 1 << 34  # limit for files of unknown length: no published file of these sets is near that
_CHUNK = 1 << 18
# gzip can make a file longer than its content, by its header and a few bytes for each block that does not shrink.
_PACKING_SLACK = 1 << 16
_PASSING = {408, 429, 500, 502, 503, 504}
_FULL = {errno.ENOSPC, errno.EDQUOT} if hasattr(errno, "EDQUOT") else {errno.ENOSPC}


class DownloadError(UsimulError, OSError):
    """A file could not be fetched, or what came is not the file."""


class _PassingError(DownloadError):
    """A fault that another attempt may not meet."""


@dataclass(frozen=True)
class _Note:
    """What an unfinished file is the beginning of."""

    url: str
    version: str  # strong ETag or Last-Modified; empty: another answer may be another file, so it cannot be continued
    n_bytes: int | None


class _Part:
    """The unfinished file under a name that nothing looks for, and its note beside it."""

    def __init__(self, path: Path, url: str) -> None:
        self.path, self.url = path, url
        self.note_path = path.with_name(f"{path.name}.json")

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.is_file() else 0

    @property
    def note(self) -> _Note:
        try:
            note = _Note(**json.loads(self.note_path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return _Note(self.url, "", None)
        return note

    @property
    def can_be_continued(self) -> bool:
        return self.size > 0 and self.note.url == self.url and bool(self.note.version)

    def begin(self, note: _Note) -> None:
        """Empty the file first: a new note must never stand beside old bytes."""
        self.path.open("wb").close()
        self.note_path.write_text(json.dumps(asdict(note)), encoding="utf-8")

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self.note_path.unlink(missing_ok=True)


def part_of(path: Path) -> Path:
    """Name of the unfinished file, from which a later attempt continues.

    Not from tempfile: its files can be read by their owner only, and would stay so after the move.
    """
    return path.with_name(f".{path.name}.part")


def say(text: str) -> None:
    """Print a line above the progress bar."""
    import sys

    from tqdm import tqdm

    tqdm.write(text, file=sys.stderr)


def fetch_file(url: str, file: DataFile, path: Path, part_path: Path | None = None) -> None:
    """Fetch ``url`` to ``path``; with a ``part_path`` of the caller's nothing is kept of an unfinished transfer."""
    part = _Part(part_path or part_of(path), url)
    try:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                continued = part.can_be_continued
                _transfer(file, part)
                _verify(file, part, continued)
                break
            except _PassingError as error:
                kept = " The part that came is kept and will be continued." if part.can_be_continued else ""
                if attempt == ATTEMPTS:
                    raise DownloadError(f"{error} Gave up after {ATTEMPTS} attempts; try later.{kept}") from error
                say(f"{error} Trying again ({attempt + 1} of {ATTEMPTS}).")
            time.sleep(PAUSE_SECONDS * 2 ** (attempt - 1))
        part.path.replace(path)
        part.discard()
    finally:
        if part_path is not None or not part.can_be_continued:
            part.discard()


def _transfer(file: DataFile, part: _Part) -> None:
    from http.client import HTTPException, IncompleteRead
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    url, headers = part.url, {}
    if part.can_be_continued:
        if part.size == part.note.n_bytes:
            return
        headers = {"Range": f"bytes={part.size}-", "If-Range": part.note.version}
    try:
        with urlopen(Request(url, headers=headers), timeout=TIMEOUT_SECONDS) as response:
            _receive(response, file, part)
    except HTTPError as error:
        error.close()
        if error.code == 416:
            part.discard()
            raise _PassingError(f"{url} has no bytes after those that came before.") from error
        if error.code in _PASSING:
            raise _PassingError(f"{url} answered {error.code} {error.reason}.") from error
        raise DownloadError(f"{url} answered {error.code} {error.reason}. Try another base_url=....") from error
    except (OSError, HTTPException) as error:
        if isinstance(error, DownloadError):
            raise
        cause = error.reason if isinstance(error, URLError) and isinstance(error.reason, OSError) else error
        if isinstance(cause, OSError) and cause.errno in _FULL:
            raise _full_disk(part) from error
        passing = isinstance(
            cause, (ConnectionResetError, ConnectionAbortedError, BrokenPipeError, TimeoutError, IncompleteRead)
        )
        kind = _PassingError if passing else DownloadError
        raise kind(f"Cannot fetch {url} to {part.path.parent}: {error}.") from error


def _receive(response: Any, file: DataFile, part: _Part) -> None:
    """Write what a server answers behind the bytes that are there, or over them if it starts from the first byte."""
    url = part.url
    if file.sha256 is None and file.packed_sha256 is None and response.headers.get_content_type() == "text/html":
        raise DownloadError(f"{url} delivers a web page, so it is not the file. Try another base_url=....")
    if response.status == 206:
        _check_range(response, part)
    else:
        length = response.headers.get("Content-Length", "")
        part.begin(_Note(url, _version(response), int(length) if length.isdigit() else None))
    announced = part.note.n_bytes
    limit = NO_LENGTH if file.n_bytes is None else file.n_bytes + _PACKING_SLACK
    if announced is not None and announced - part.size > shutil.disk_usage(part.path.parent).free:
        raise _full_disk(part)
    size = max(part.size, announced or 0)
    with part.path.open("ab") as out:
        if size <= limit:
            size = _copy(response, out, announced, limit, url)
        out.flush()
        os.fsync(out.fileno())
    if size > limit:
        part.discard()
        raise DownloadError(f"{url} delivers more than {limit} bytes, so it is not the file. Download stopped.")
    if announced is not None and size != announced:
        raise _PassingError(f"{url} broke off: expected {announced} bytes, received {size}.")


def _copy(response: Any, out: Any, announced: int | None, limit: int, url: str) -> int:
    from tqdm import tqdm

    size = int(out.tell())
    name = url.rsplit("/", 1)[-1]
    # disable=None: no bar where there is no terminal to draw it on.
    with tqdm(
        total=announced,
        initial=size,
        unit="B",
        unit_scale=True,
        desc=name,
        leave=False,
        disable=None,
        dynamic_ncols=True,
    ) as bar:
        # read1 and flush: what has come is on the disk, even if this process is killed.
        while size <= limit and (piece := response.read1(_CHUNK)):
            out.write(piece)
            out.flush()
            size += len(piece)
            bar.update(len(piece))
    return size


def _version(response: Any) -> str:
    tag = response.headers.get("ETag", "")
    # A weak tag promises the same meaning, not the same bytes.
    return str(response.headers.get("Last-Modified", "") if not tag or tag.startswith("W/") else tag)


def _check_range(response: Any, part: _Part) -> None:
    note = part.note
    found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
    same = found is not None and found[1] == str(part.size) and _version(response) in ("", note.version)
    if found is not None and note.n_bytes is not None:
        same = same and found[2] in ("*", str(note.n_bytes))
    # Servers that do not know If-Range send the end of a new file to be put behind the beginning of the old one.
    if not same:
        part.discard()
        raise _PassingError(f"{part.url} is no longer the file whose beginning was kept.")


def _full_disk(part: _Part) -> DownloadError:
    folder, announced = part.path.parent, part.note.n_bytes
    needed = "more bytes than that" if announced is None else f"{announced - part.size:,} more bytes"
    return DownloadError(
        f"No room in {folder}: {part.url} needs {needed} there, the disk has {shutil.disk_usage(folder).free:,} bytes "
        "free. Make room (or raise a quota), or pass a folder=... on another disk."
    )


def _verify(file: DataFile, part: _Part, continued: bool) -> None:
    wrong = wrong_content(part.path, file)
    if wrong:
        part.discard()
        # Two halves may not have belonged together; then the whole file, from one answer, is right.
        kind = _PassingError if continued else DownloadError
        raise kind(f"{part.url} is not the known file: {wrong}. Try again, or another base_url=....")


def wrong_content(path: Path, file: DataFile) -> str:
    """Say in what way a file differs from the published one, as far as that is known; empty if in none."""
    as_packed = file.sha256 is None and file.packed_sha256 is not None
    unpack = file.gz and not as_packed
    known = file.packed_sha256 if as_packed else file.sha256
    length = None if as_packed and file.gz else file.n_bytes
    # One byte more than expected is enough to see that a file is another one.
    limit = NO_LENGTH if length is None else length
    try:
        digest, n_bytes = content_sha256(path, limit=limit, unpack=unpack)
    except FileFormatError:
        return "expected a whole gzip file, found a damaged one"
    if known in (None, digest) and length in (None, n_bytes):
        return ""
    size = f"more than {limit}" if n_bytes > limit else str(n_bytes)
    unpacked = "" if length is None else f"{length} {'unpacked ' if file.gz else ''}bytes"
    expected = " with ".join(filter(None, (unpacked, "" if known is None else f"SHA-256 {known}")))
    return f"expected {expected}, found {size} bytes with SHA-256 {digest}"
