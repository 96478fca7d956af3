"""Which images a folder or a zip archive holds, and how each is opened; nothing is decoded here."""

from __future__ import annotations

import functools
import io
import os
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from usimul.validation import Problems

__all__ = ["FORMATS", "Gallery", "Opener", "folder_gallery", "zip_gallery"]

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "WEBP")
MAX_UNPACKED = 8 << 30
"""Most bytes that the images of an archive may have together, unpacked."""

Opener = Callable[[], Any]


@dataclass(frozen=True)
class Gallery:
    """The images of a folder or an archive by name, which is their id, and the most bytes that they may have."""

    openers: dict[str, Opener]
    most: int | None = None

    def pictures(self, problems: Problems) -> list[tuple[str, Opener]]:
        """Names and what opens them; none is a problem."""
        if not self.openers:
            problems.add("At least one image is expected", f"no name ends in {', '.join(SUFFIXES)}")
        return [(name, functools.partial(_open, opener)) for name, opener in self.openers.items()]


def folder_gallery(path: Path) -> Gallery:
    """Find all images of a folder and its sub-folders; ids are paths relative to it. Other and hidden files stay."""
    names = []
    for folder, inner, files in os.walk(path, onerror=_refuse):
        inner[:] = [name for name in inner if not name.startswith(".")]
        names += [(Path(folder) / name).relative_to(path).as_posix() for name in files if _is_image(name)]
    return Gallery({name: functools.partial(str, path / name) for name in sorted(names)})


def zip_gallery(archive: zipfile.ZipFile, problems: Problems) -> Gallery | None:
    """Find all images of an open archive; ids are the paths inside. None if none of them may be read."""
    members = [info for info in archive.infolist() if not info.is_dir() and _is_image(info.filename)]
    openers = {info.filename: functools.partial(_unpack, archive, info) for info in _safe(members, problems)}
    return None if problems and not openers else Gallery(dict(sorted(openers.items())), MAX_UNPACKED)


def _refuse(error: OSError) -> None:
    """Raise where walking would pass over a folder that cannot be read."""
    raise error


def _is_image(name: str) -> bool:
    parts = name.replace("\\", "/").split("/")
    hidden = any(part.startswith(".") and part != ".." for part in parts) or "__MACOSX" in parts
    return not hidden and name.lower().endswith(SUFFIXES)


def _safe(members: list[zipfile.ZipInfo], problems: Problems) -> list[zipfile.ZipInfo]:
    """Return the members that may be read; all others become problems."""
    from PIL import Image

    kept, seen, total = [], set[str](), 0
    # An uncompressed picture with 4 bytes for each of the most pixels that Pillow takes.
    most = 4 * (Image.MAX_IMAGE_PIXELS or MAX_UNPACKED // 4) + (1 << 20)
    for info in members:
        name = info.filename
        if re.match(r"[/\\]|[A-Za-z]:", name) or ".." in re.split(r"[/\\]", name):
            problems.add("Members must lie inside the archive, without '..' or an absolute path", repr(name))
        elif info.flag_bits & 1:
            problems.add("Members must not be encrypted", repr(name))
        elif name in seen:
            problems.add("Members must have different names", f"{name!r} occurs again")
        elif info.file_size > most:
            problems.add(f"Members must have at most {most:,} bytes", f"{name!r} has {info.file_size:,}")
        else:
            kept.append(info)
            seen.add(name)
            total += info.file_size
    if total > MAX_UNPACKED:
        problems.add(
            f"The images of an archive may have at most {MAX_UNPACKED:,} bytes together, unpacked",
            f"these have {total:,}",
            advice="Unpack it yourself, and name the folder.",
        )
        return []
    return kept


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> io.BytesIO:
    return io.BytesIO(archive.read(info))


def _open(file: Opener) -> Any:
    from PIL import Image

    return Image.open(file(), formats=FORMATS)
