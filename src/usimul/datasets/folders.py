"""Reading folders of image files into one array of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from usimul.validation import FileFormatError

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["IMAGE_SUFFIXES", "group_indices", "list_images", "read_images"]

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".pgm")
_MODES = {1: "L", 3: "RGB"}
_SHOWN = 20


def list_images(folder: Path) -> list[Path]:
    """Return the image files of one folder, not of those below it, by name.

    Raises
    ------
    FileFormatError
        If there is none.
    """
    # macOS leaves hidden companions ("._name.jpg") that are no images.
    found = sorted(p for p in folder.iterdir() if p.suffix.lower() in IMAGE_SUFFIXES and not p.name.startswith("."))
    if not found:
        raise FileFormatError(
            f"{folder}: expected image files ({', '.join(IMAGE_SUFFIXES)}), found none. Put the images directly there."
        )
    return found


def group_indices(names: Sequence[str]) -> NDArray[np.int64]:
    """Return one number for each distinct name.

    Examples
    --------
    >>> group_indices(["p2", "p1", "p2"])
    array([1, 0, 1])
    """
    return np.unique(np.asarray(names), return_inverse=True)[1].astype(np.int64)


def read_images(paths: Sequence[Path], *, side: int = 64, channels: int = 3, crop: bool = False) -> NDArray[np.uint8]:
    """Read image files into one row each, channels first, resized to ``side`` x ``side``.

    Parameters
    ----------
    paths
        The files, of any size and colour mode.
    side
        Height and width of the result.
    channels
        3 for red, green, blue, or 1 for grey.
    crop
        Whether to cut out the central square first; otherwise the sides are scaled apart.

    Raises
    ------
    FileFormatError
        Naming every file that cannot be read, not only the first one.
    """
    from PIL import Image

    images = np.empty((len(paths), channels, side, side), dtype=np.uint8)
    problems = []
    for row, path in enumerate(paths):
        try:
            with Image.open(path) as image:
                pixels = _resized(image, side, _MODES[channels], crop)
        except Exception as error:  # Pillow's parsers let through whatever a damaged file makes of them
            problems.append(f"{path} ({_reason(error)})")
        else:
            images[row] = pixels.reshape(side, side, channels).transpose(2, 0, 1)
    if problems:
        more = f"\n  and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise FileFormatError(
            f"Expected {len(paths)} images, found {len(problems)} that cannot be read:\n  "
            + "\n  ".join(problems[:_SHOWN])
            + f"{more}\nGet these files again."
        )
    return images.reshape(len(images), -1)


def _resized(image: Image.Image, side: int, mode: str, crop: bool) -> NDArray[Any]:
    from PIL import Image

    if image.mode.startswith("I"):
        # 16 bits, as mammograms may have; Pillow would cut values off at 255 instead of scaling them.
        image = Image.fromarray((np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8))
    image = image.convert(mode)
    if crop:
        square = min(image.size)
        left, top = (image.width - square) // 2, (image.height - square) // 2
        # Not the `box` of resize, which lets pixels outside of it into the average.
        image = image.crop((left, top, left + square, top + square))
    return np.asarray(image.resize((side, side), Image.Resampling.BICUBIC))


def _reason(error: Exception) -> str:
    from PIL import UnidentifiedImageError

    # Both texts would give the path again.
    if isinstance(error, UnidentifiedImageError):
        return "not an image, or of no kind that Pillow knows"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
