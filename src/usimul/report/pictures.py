"""Small pictures of points that are images, as PNG inside the page."""

from __future__ import annotations

import base64
import io

import numpy as np
from numpy.typing import NDArray

__all__ = ["thumbnail"]

SIDE = 96  # pixels of the longer side at most; smaller pictures stay as they are


def thumbnail(row: NDArray[np.generic], shape: tuple[int, int, int], scale: tuple[float, float]) -> str:
    """Return a ``data:`` address of the picture in a row; values from ``scale[0]`` (black) to ``scale[1]`` (white).

    >>> thumbnail(np.zeros(4), (1, 2, 2), (0.0, 1.0))[:22]
    'data:image/png;base64,'
    """
    from PIL import Image

    low, high = scale
    values = np.asarray(row, dtype=np.float64).reshape(shape)
    pixels = np.clip((values - low) * (255.0 / max(high - low, 1e-12)), 0, 255).round().astype(np.uint8)
    if shape[0] not in (1, 3):  # no colours that a screen knows: the first channel
        pixels = pixels[:1]
    picture = Image.fromarray(pixels[0] if len(pixels) == 1 else np.moveaxis(pixels, 0, 2))
    picture.thumbnail((SIDE, SIDE))
    handle = io.BytesIO()
    picture.save(handle, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(handle.getvalue()).decode()
