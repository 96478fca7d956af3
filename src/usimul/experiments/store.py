"""Where results live: a folder of append-only JSON lines, one file a worker, that survives ``kill -9``.

A row is written by one call of ``write`` and synced, so a crash can damage no more than the last line of one file. That
line is found on reading, cut off once its writer is gone, and reported; its run counts as missing. Two runners share a
store through claims: a lock on a small file for each run, which the kernel gives back when its holder dies.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from usimul.files import whole_file
from usimul.validation import DiskFullError, FileFormatError, InputError

__all__ = ["FORMAT_VERSION", "Row", "Store"]

FORMAT = "usimul-results"
FORMAT_VERSION = 1

Row = dict[str, Any]


if sys.platform == "win32":  # no flock: two runners may then repeat a run, and tables count it once

    def _lock(handle: IO[Any]) -> bool:
        """Take no lock."""
        return True

else:
    import fcntl

    def _lock(handle: IO[Any]) -> bool:
        """Take an exclusive lock if nobody has it; True also where the file system knows no locks."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                raise
        return True


@dataclass
class Store:
    """A folder of results.

    Parameters
    ----------
    folder
        Made if it is not there.

    Attributes
    ----------
    rows
        What was read so far, one row a run, by run id. ``refresh`` reads what came since.
    damage
        One sentence for each line that could not be read.
    """

    folder: Path
    rows: dict[str, Row] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)
    _offsets: dict[Path, int] = field(default_factory=dict)
    _mine: IO[bytes] | None = None

    def __post_init__(self) -> None:
        self.folder = Path(self.folder)
        header = self.folder / "store.json"
        try:
            if not header.exists():
                self._make(header)
            self._check(header)
            for name in ("runs", "claims", "cache"):
                if not (self.folder / name).is_dir():  # a store that can only be read has them
                    (self.folder / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"the store {str(self.folder)!r} cannot be made or read ({error.strerror or error}). "
                "Name a folder that you may write to with --store."
            ) from error

    def _make(self, header: Path) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with whole_file(header, "w") as handle:
            handle.write(json.dumps({"format": FORMAT, "version": FORMAT_VERSION}) + "\n")

    def _check(self, header: Path) -> None:
        try:
            found = json.loads(header.read_text())
            if found["format"] != FORMAT:
                raise ValueError(f"its format is {found['format']!r}")
            version = found["version"]
        except (ValueError, KeyError, TypeError) as error:
            raise FileFormatError(f"{str(header)!r} is not the header of a store of results ({error}).") from error
        if version != FORMAT_VERSION:
            raise FileFormatError(
                f"{str(self.folder)!r} is a store of version {version!r}; this usimul reads version {FORMAT_VERSION}. "
                "Use a usimul release that matches it, or another --store."
            )

    def refresh(self) -> dict[str, Row]:
        """Read the rows that were added since the last call, by any process; return all."""
        for path in sorted((self.folder / "runs").glob("*.jsonl")):
            start = self._offsets.get(path, 0)
            if path.stat().st_size == start:
                continue
            with path.open("rb") as handle:
                handle.seek(start)
                content = handle.read()
            whole, end, rest = content.rpartition(b"\n")
            for line in (whole + end).splitlines():
                self._take(path, line)
            self._offsets[path] = start + len(whole) + len(end)
            if rest:
                self._repair(path, start + len(whole) + len(end))
        return self.rows

    def _take(self, path: Path, line: bytes) -> None:
        try:
            row = json.loads(line)
            identity = f"{row['key']}-{row['seed']}"
            version, _, _ = row["version"], row["when"], row["seconds"]
            if row["status"] not in ("done", "failed") or (row["status"] == "done") != ("result" in row):
                raise ValueError("no result")
        except (ValueError, KeyError, TypeError):
            self.damage.append(f"{path.name}: a line is damaged and left out; its run counts as missing: {line[:40]!r}")
            return
        if version != FORMAT_VERSION:
            raise FileFormatError(
                f"{str(path)!r} has rows of version {version!r}; this usimul reads version {FORMAT_VERSION}. "
                "Use a usimul release that matches it, or another --store."
            )
        known = self.rows.get(identity)
        # Two rows of one run: a success replaces a failure, else the earlier one counts, whichever file is read first.
        order = (row["status"] != "done", row["when"])
        if known is None or order < (known["status"] != "done", known["when"]):
            self.rows[identity] = row

    def _repair(self, path: Path, size: int) -> None:
        """Cut off half a line, if its writer is gone; a living writer may just be writing it."""
        with path.open("rb+") as handle:
            if not _lock(handle):
                return
            handle.truncate(size)
        self.damage.append(f"{path.name}: the last line was cut short by a crash and is removed; its run is missing")

    def append(self, row: Row) -> None:
        """Write one row to this process's own file, wholly or not at all."""
        if self._mine is None:
            name = f"{uuid.uuid4().hex[:16]}.jsonl"
            self._mine = (self.folder / "runs" / name).open("ab", buffering=0)
            _lock(self._mine)
        line = (json.dumps({"version": FORMAT_VERSION, **row}) + "\n").encode()
        size = os.fstat(self._mine.fileno()).st_size
        try:
            written = self._mine.write(line)
            if written != len(line):
                raise OSError(errno.ENOSPC, "only a part of the row was written")
            os.fsync(self._mine.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                self._mine.truncate(size)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFullError(
                    error.errno,
                    f"the disk of {str(self.folder)!r} is full. Make room and call the same command again: it goes on",
                ) from error
            raise

    def close(self) -> None:
        """Give back this process's file."""
        if self._mine is not None:
            self._mine.close()
            self._mine = None

    def __del__(self) -> None:
        self.close()

    @contextlib.contextmanager
    def claim(self, identity: str) -> Iterator[bool]:
        """Whether this process may do a run: nobody else is doing it, and nobody has done it."""
        with (self.folder / "claims" / identity).open("ab") as handle:
            if not _lock(handle):
                yield False
                return
            # Whoever held the claim before wrote its row before letting go.
            done = self.refresh().get(identity)
            yield done is None or done["status"] != "done"

    def status(self) -> dict[str, int]:
        """Count rows by status, and runs in work."""
        rows = self.refresh().values()
        return {
            "done": sum(row["status"] == "done" for row in rows),
            "failed": sum(row["status"] == "failed" for row in rows),
            "running": sum(self.is_claimed(path.name) for path in (self.folder / "claims").iterdir()),
        }

    def is_claimed(self, identity: str) -> bool:
        """Whether some process is doing a run right now."""
        try:
            with (self.folder / "claims" / identity).open("rb") as handle:
                return not _lock(handle)
        except FileNotFoundError:
            return False
