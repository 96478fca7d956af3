"""Reader of small image archives: ``.npz``, plain or packed with xz, whose pixels may be stored as residuals.

Fields: ``sha256_x`` and either ``x``, images ``(n, height, width, channels)`` uint8, or ``delta``, ``(n, 3, height,
width)`` uint8, from which colour images come back bit for bit; and one value per image in each further field.

Residuals are made in two steps, all modulo 256. Colours (r, g, b) become the planes (g, r - g + 128, b - g + 128). Then
each value is replaced by its difference to a prediction from its left, upper, and upper-left neighbours a, b, and c
(0 outside): the middle one of a, b, and a + b - c, as in LOCO-I. ``sha256_x`` is the SHA-256 of the bytes of ``x``.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from usimul.validation import FileFormatError

__all__ = ["decode_pixels", "encode_pixels", "flatten_images", "load_packed"]

_XZ = b"\xfd7zXZ\0"
_DAMAGE = (lzma.LZMAError, zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError)
# The work is done in int16 and needs several times the memory of the images: not for all of them at once.
_BLOCK = 2000

ByteArray = NDArray[np.uint8]


def _predict(left: NDArray[np.int16], upper: NDArray[np.int16], corner: NDArray[np.int16]) -> NDArray[np.int16]:
    low, high = np.minimum(left, upper), np.maximum(left, upper)
    # The middle one of three values is the third, held between the other two.
    predicted: NDArray[np.int16] = np.maximum(low, np.minimum(high, left + upper - corner))
    return predicted


def encode_pixels(x: ByteArray) -> ByteArray:
    """Return the residuals ``(n, 3, height, width)`` of colour images ``(n, height, width, 3)``.

    Examples
    --------
    >>> images = np.arange(24, dtype=np.uint8).reshape(1, 2, 4, 3)
    >>> bool((decode_pixels(encode_pixels(images)) == images).all())
    True
    """
    wide = x.astype(np.int16)
    green = wide[..., 1]
    planes = np.stack([green, wide[..., 0] - green + 128, wide[..., 2] - green + 128], axis=1) & 255
    padded = np.pad(planes, ((0, 0), (0, 0), (1, 0), (1, 0)))
    residuals = planes - _predict(padded[..., 1:, :-1], padded[..., :-1, 1:], padded[..., :-1, :-1])
    return (residuals & 255).astype(np.uint8)


def decode_pixels(delta: ByteArray) -> ByteArray:
    """Return the colour images ``(n, height, width, 3)`` of residuals ``(n, 3, height, width)``."""
    n, _, height, width = delta.shape
    images = np.empty((n, height, width, 3), dtype=np.uint8)
    for first in range(0, n, _BLOCK):
        block = slice(first, first + _BLOCK)
        # Places first, so that one step of the recurrence works on all planes of all images of the block.
        residuals = np.ascontiguousarray(delta[block].transpose(2, 3, 1, 0)).astype(np.int16)
        planes = np.zeros((height + 1, width + 1, *residuals.shape[2:]), dtype=np.int16)
        for i in range(height):
            for j in range(width):
                predicted = _predict(planes[i + 1, j], planes[i, j + 1], planes[i, j])
                np.bitwise_and(residuals[i, j] + predicted, 255, out=planes[i + 1, j + 1])
        green, red, blue = (planes[1:, 1:, k] for k in range(3))
        for k, plane in enumerate((red + green - 128, green, blue + green - 128)):
            images[block, :, :, k] = (plane & 255).astype(np.uint8).transpose(2, 0, 1)
    return images


def flatten_images(x: ByteArray) -> ByteArray:
    """Return one row per image, channels first, of images ``(n, height, width, channels)``."""
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2)).reshape(len(x), -1)


def load_packed(path: Path, *fields: str) -> dict[str, NDArray[Any]]:
    """Return the images under ``"x"`` and the further ``fields``, one value per image.

    Raises
    ------
    FileFormatError
        If the file is damaged, lacks a field, or its pixels do not have the checksum that is stored with them.
    """
    stored = _load_fields(path)
    form = "delta" if "delta" in stored else "x"
    missing = [name for name in (form, "sha256_x", *fields) if name not in stored]
    if missing:
        raise FileFormatError(
            f"{path}: expected the fields x or delta, {', '.join(('sha256_x', *fields))}; {', '.join(missing)} not "
            f"found among {', '.join(stored) or 'no fields'}. It is another file, or of another version."
        )
    x = stored[form]
    if x.dtype != np.uint8 or x.ndim != 4 or (form == "delta" and x.shape[1] != 3):
        shape = "(n, 3, height, width)" if form == "delta" else "(n, height, width, channels)"
        raise FileFormatError(f"{path}: expected `{form}` as uint8 of shape {shape}, found {x.dtype} {x.shape}.")
    if form == "delta":
        x = decode_pixels(x)
    digest = hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()
    if digest != str(stored["sha256_x"]):
        raise FileFormatError(
            f"{path}: expected pixels with SHA-256 {stored['sha256_x']}, found {digest}. "
            "The file is damaged: get it again."
        )
    for name in fields:
        if stored[name].shape[:1] != (len(x),):
            raise FileFormatError(
                f"{path}: expected {len(x)} values of `{name}`, one for each image, found shape {stored[name].shape}."
            )
    return {"x": x, **{name: stored[name] for name in fields}}


def _load_fields(path: Path) -> dict[str, NDArray[Any]]:
    raw = path.read_bytes()
    try:
        content = io.BytesIO(lzma.decompress(raw) if raw.startswith(_XZ) else raw)
        # Not np.load: it takes a lone .npy file too, and gives fields that are no arrays back as bytes.
        with zipfile.ZipFile(content) as archive:
            fields = {}
            for name in archive.namelist():
                with archive.open(name) as member:
                    fields[name.removesuffix(".npy")] = np.lib.format.read_array(member, allow_pickle=False)
            return fields
    except (*_DAMAGE, MemoryError) as error:
        raise FileFormatError(
            f"{path}: expected a whole .npz file, plain or packed with xz, found a damaged or other one ({error}). "
            "Get it again."
        ) from error
