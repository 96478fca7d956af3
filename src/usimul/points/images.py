"""Points from images: decoded from a folder, from a zip archive in place, or from pictures already open."""

from __future__ import annotations

import functools
import math
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from usimul.files import parsing
from usimul.points.base import Points, check_ids
from usimul.points.galleries import FORMATS, Gallery, Opener, folder_gallery, zip_gallery
from usimul.validation import InputError, InputTypeError, Problems, check_count

__all__ = [
    "MODES",
    "Album",
    "check_resize",
    "look_at",
    "points_of_images",
    "read_folder",
    "read_zip",
]

MODES = ("grey", "rgb")
MAX_RESIZED = 1 << 26
"""Most pixels that an image may be brought to."""

_GREY = ("1", "L", "LA", "La")
_DEEP = ("I", "F")  # and I;16: converting them to 8 bits cuts off instead of scaling
_EIGHT = "Images must have 8 bits for each channel"
_WHOLE = "Images must be whole"

Found = TypeVar("Found")


@dataclass(frozen=True)
class _Header:
    """What is known of an image before its pixels are decoded."""

    size: tuple[int, int]  # height, width, upright
    grey: bool


def read_folder(path: Path, resize: tuple[int, int] | None, mode: str | None, problems: Problems) -> Points | None:
    """Read all images of a folder and its sub-folders."""
    return _read(folder_gallery(path), str(path), resize, mode, problems)


def read_zip(path: Path, resize: tuple[int, int] | None, mode: str | None, problems: Problems) -> Points | None:
    """Read all images of an archive without unpacking it to the disk."""
    with parsing(path, "zip archive"), zipfile.ZipFile(path) as archive:
        gallery = zip_gallery(archive, problems)
        return None if gallery is None else _read(gallery, str(path), resize, mode, problems)


def _read(
    gallery: Gallery, source: str, resize: tuple[int, int] | None, mode: str | None, problems: Problems
) -> Points | None:
    pictures = gallery.pictures(problems)
    if not pictures:
        return None
    ids = check_ids(list(gallery.openers), range(len(pictures)), "image", problems)
    return points_of_images(pictures, source, resize, mode, problems, ids=ids, most=gallery.most)


@dataclass(frozen=True)
class Album:
    """Pictures that are looked at but not decoded: what their rows will be."""

    pictures: list[tuple[str, Opener]]
    whole: frozenset[str]  # names of those whose headers could be read
    shape: tuple[int, int, int]
    resize: tuple[int, int] | None

    @property
    def n_features(self) -> int:
        """Length of a row."""
        return math.prod(self.shape)

    def decode(self, start: int, rows: NDArray[np.uint8], problems: Problems) -> None:
        """Fill ``rows`` with the pixels of the pictures from number ``start`` on; damaged ones become problems."""
        for row, (name, opener) in enumerate(self.pictures[start : start + len(rows)]):
            action = functools.partial(_pixels, name, self.shape[0] == 1, self.resize, problems)
            pixels = _attempt(name, opener, action, problems) if name in self.whole else None
            if pixels is not None and pixels.size == rows.shape[1]:
                rows[row] = pixels.ravel()


def look_at(
    pictures: Iterable[tuple[str, Opener]],
    resize: tuple[int, int] | None,
    mode: str | None,
    problems: Problems,
    *,
    most: int | None = None,
) -> Album | None:
    """Read the headers of all pictures; what does not fit together becomes a problem.

    More than ``most`` bytes of pixels are refused: small files may hold large pictures.
    """
    pictures = list(pictures)
    headers = dict[str, _Header]()
    for name, opener in pictures:
        header = _attempt(name, opener, functools.partial(_header, name, problems), problems)
        if header is not None:
            headers[name] = header
    sizes = Counter(header.size for header in headers.values())
    if len(sizes) > 1 and resize is None:
        for (height, width), n in sizes.most_common():
            example = next(name for name, header in headers.items() if header.size == (height, width))
            problems.add(
                "Images must have one size",
                f"{n} of {height} x {width}, such as {example!r}",
                advice="Pass resize=(height, width), --resize HEIGHT WIDTH.",
            )
    if not sizes:
        return None
    size = resize or sizes.most_common(1)[0][0]
    grey = mode == "grey" if mode else all(header.grey for header in headers.values())
    album = Album(pictures, frozenset(headers), (1 if grey else 3, *size), resize)
    n_bytes = len(pictures) * album.n_features
    if most is not None and n_bytes > most:
        problems.add(
            f"The pixels of an archive may have at most {most:,} bytes together",
            f"these have {n_bytes:,}",
            advice="Bring them to a smaller size, --resize, or unpack them yourself, and name the folder.",
        )
        return None
    return album


def points_of_images(
    pictures: Iterable[tuple[str, Opener]],
    source: str,
    resize: tuple[int, int] | None,
    mode: str | None,
    problems: Problems,
    *,
    ids: tuple[str, ...] | None = None,
    most: int | None = None,
) -> Points | None:
    """Decode pictures into rows of bytes; one that is damaged becomes a problem, and the rest is still looked at."""
    album = look_at(pictures, resize, mode, problems, most=most)
    if album is None:
        return None
    try:
        rows = np.zeros((len(album.pictures), album.n_features), dtype=np.uint8)
    except MemoryError:
        problems.add(
            "The pixels of all images must fit into memory",
            f"these have {len(album.pictures) * album.n_features:,} bytes",
            advice="Bring them to a smaller size: resize=(height, width), --resize HEIGHT WIDTH.",
        )
        return None
    album.decode(0, rows, problems)
    return Points(rows, album.shape, ids, None, source)


def _header(name: str, problems: Problems, picture: Any) -> _Header | None:
    """Look at size and kind; what cannot become 8-bit pixels is a problem."""
    if picture.mode.split(";")[0] in _DEEP:
        problems.add(
            _EIGHT,
            f"{name!r} has mode {picture.mode}",
            advice="Scale such images yourself, and save them as an array, .npy.",
        )
        return None
    bits = _bits(picture)
    if bits > 8:
        problems.add(
            _EIGHT, f"{name!r} has {bits}", advice="Scale such images yourself, and save them as an array, .npy."
        )
        return None
    if getattr(picture, "n_frames", 1) > 1:
        problems.add("Files must hold one picture", f"{name!r} holds {picture.n_frames}")
        return None
    width, height = picture.size
    turned = picture.getexif().get(0x0112) in (5, 6, 7, 8)  # EXIF: lies on its side
    return _Header((width, height) if turned else (height, width), picture.mode in _GREY)


def _bits(picture: Any) -> int:
    """Bits of a channel as the file says, as far as it does: Pillow cuts 16-bit colours to 8 and tells nobody."""
    if picture.format == "PNG" and picture.fp is not None:
        place = picture.fp.tell()
        picture.fp.seek(24)  # behind 8 bytes of signature, length and name of IHDR, width and height
        found = picture.fp.read(1)
        picture.fp.seek(place)
        return int(found[0])
    if picture.format == "TIFF":
        return int(max(picture.tag_v2.get(258, (8,))))  # BitsPerSample
    return 8


def _pixels(
    name: str, grey: bool, resize: tuple[int, int] | None, problems: Problems, picture: Any
) -> NDArray[np.uint8] | None:
    """Decode a picture, upright, as bytes with channels first."""
    from PIL import Image, ImageOps

    picture = ImageOps.exif_transpose(picture)
    if picture.has_transparency_data and picture.convert("RGBA").getextrema()[3][0] < 255:
        problems.add(
            "Images must be opaque",
            f"{name!r} has transparent pixels",
            advice="Lay such images on a background of your choice.",
        )
        return None
    picture = picture.convert("L" if grey else "RGB")
    if resize is not None:
        picture = picture.resize((resize[1], resize[0]), Image.Resampling.BILINEAR)
    pixels = np.asarray(picture, dtype=np.uint8)
    return pixels[None] if grey else np.moveaxis(pixels, 2, 0)


def _attempt(name: str, opener: Opener, action: Callable[[Any], Found | None], problems: Problems) -> Found | None:
    """Open one picture and do something with it; None, with a problem noted, if it is not whole."""
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with opener() as picture:
                return action(picture)
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        problems.add(f"Images may have at most {Image.MAX_IMAGE_PIXELS:,} pixels", f"{name!r} has more")
    except UnidentifiedImageError:
        problems.add(_WHOLE, f"{name!r} is no image of a known format ({', '.join(FORMATS)})")
    except Exception as error:  # Pillow's decoders raise ten kinds of errors on damaged bytes
        problems.add(_WHOLE, f"{name!r}: {error}")
    return None


def check_resize(value: Any) -> tuple[int, int] | None:
    """Return height and width, or None."""
    if value is None:
        return None
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise InputTypeError(f"`resize` must be (height, width). Got {value!r}.")
    height, width = (check_count(side, "resize") for side in value)
    if height * width > MAX_RESIZED:
        raise InputError(
            f"`resize` must give images of at most {MAX_RESIZED:,} pixels. Got {height} x {width}, which is "
            f"{height * width:,}. Choose a smaller height and width."
        )
    return height, width
