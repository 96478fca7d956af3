"""Comparing a file, as it lies on the disk, with the checksum that its record states."""

from __future__ import annotations

import hashlib
from pathlib import Path

from usimul.datasets.records import DataFile
from usimul.validation import FileFormatError

__all__ = ["check_file"]


def check_file(path: Path, file: DataFile) -> None:
    """Raise unless the bytes of ``path`` have the recorded sum; pass where the record states none for this form.

    ``packed_sha256`` goes first, unless the file is the unpacked form of one that is published packed; then ``sha256``
    and ``md5``, unless they are of the unpacked form, which a reader compares while it unpacks.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.bin")
    ...     _ = path.write_bytes(b"abc")
    ...     check_file(path, DataFile("a.bin", md5="900150983cd24fb0d6963f7d28e17f72"))
    """
    as_published = not file.gz or path.name == file.published_name
    kind, known = "sha256", file.packed_sha256 if as_published else None
    if known is None and not file.gz:
        kind, known = ("sha256", file.sha256) if file.sha256 is not None else ("md5", file.md5)
    if known is None:
        return
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, kind).hexdigest()
    if found != known:
        label = {"sha256": "SHA-256", "md5": "MD5"}[kind]
        raise FileFormatError(
            f"{path}: expected a file with {label} {known}, found {path.stat().st_size} bytes with {label} {found}. "
            "It is another file under this name, or damaged: delete it and get it again."
        )
