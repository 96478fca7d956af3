"""Reader of the idx format, the one that MNIST and its followers are published in.

A file is two zero bytes, a type code, the number of dimensions, one big-endian 32-bit size per dimension, and then
exactly as many big-endian values as the sizes say. Packed (gzip) and plain files are told apart by their first bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from usimul.validation import FileFormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["content_sha256", "read_idx"]

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_CHUNK = 1 << 20


@contextmanager
def _open_content(path: Path) -> Iterator[IO[bytes]]:
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if packed:
                with gzip.GzipFile(fileobj=raw) as unpacked:
                    yield cast("IO[bytes]", unpacked)
            else:
                yield raw
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FileFormatError(f"{path}: expected a whole gzip file, found a damaged one ({error}).") from error


def _read_at_most(stream: IO[bytes], n_bytes: int) -> bytearray:
    # In pieces, because one large read() reserves memory for whatever size a damaged header claims.
    content = bytearray()
    while len(content) < n_bytes:
        piece = stream.read(min(_CHUNK, n_bytes - len(content)))
        if not piece:
            break
        content += piece
    return content


def content_sha256(path: str | os.PathLike[str], *, limit: int, unpack: bool = True) -> tuple[str, int]:
    """Return the SHA-256 and the length of a file's content, reading at most ``limit`` + 1 bytes.

    A gzip file is unpacked first, unless ``unpack`` is False.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.gz")
    ...     _ = path.write_bytes(gzip.compress(b"abc"))
    ...     digest, n_bytes = content_sha256(path, limit=3)
    >>> digest[:8], n_bytes
    ('ba7816bf', 3)
    """
    digest, n_bytes = hashlib.sha256(), 0
    with _open_content(Path(path)) if unpack else Path(path).open("rb") as stream:
        while n_bytes <= limit and (piece := stream.read(min(_CHUNK, limit + 1 - n_bytes))):
            digest.update(piece)
            n_bytes += len(piece)
    return digest.hexdigest(), n_bytes


def read_idx(
    path: str | os.PathLike[str],
    *,
    n_dimensions: int | None = None,
    dtype: DTypeLike | None = None,
    sha256: str | None = None,
) -> NDArray[Any]:
    """Read one idx file, plain or packed with gzip.

    Parameters
    ----------
    path
        The file.
    n_dimensions
        The number of dimensions that the file must have; None takes any.
    dtype
        The type that the values must have, in native byte order; None takes any of the six that the format knows.
    sha256
        SHA-256 that the unpacked content must have; None skips the check.

    Returns
    -------
    NDArray
        A writable array in native byte order.

    Raises
    ------
    FileFormatError
        If the file is cut short, too long, damaged, or not what the arguments ask for.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "labels-idx1-ubyte")
    ...     _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    ...     read_idx(path)
    array([7, 8, 9], dtype=uint8)
    """
    path = Path(path)
    with _open_content(path) as stream:
        magic = bytes(_read_at_most(stream, 4))
        if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in _TYPES or magic[3] == 0:
            codes = ", ".join(f"{code:02x}" for code in _TYPES)
            raise FileFormatError(
                f"{path}: expected an idx file (bytes 00 00, a type code out of {codes}, a number of dimensions), "
                f"found bytes '{magic.hex(' ')}'."
            )
        kind, n_found = np.dtype(_TYPES[magic[2]]), magic[3]
        native = kind.newbyteorder("=")
        if dtype is not None and native != np.dtype(dtype):
            raise FileFormatError(f"{path}: expected values of type {np.dtype(dtype)}, found {native}.")
        if n_dimensions is not None and n_found != n_dimensions:
            raise FileFormatError(f"{path}: expected {n_dimensions} dimensions, found {n_found}.")
        sizes = bytes(_read_at_most(stream, 4 * n_found))
        if len(sizes) < 4 * n_found:
            raise FileFormatError(
                f"{path}: expected {4 * n_found} bytes with the sizes of {n_found} dimensions, found {len(sizes)}."
            )
        shape = tuple(int.from_bytes(sizes[i : i + 4], "big") for i in range(0, len(sizes), 4))
        expected = math.prod(shape) * kind.itemsize
        content = _read_at_most(stream, expected + 1)
    if len(content) != expected:
        found = f"only {len(content)}" if len(content) < expected else "more"
        raise FileFormatError(
            f"{path}: expected {expected} bytes of values for shape {shape} and type {native}, found {found}."
        )
    if sha256 is not None:
        digest = hashlib.sha256(magic + sizes)
        digest.update(content)
        if digest.hexdigest() != sha256:
            raise FileFormatError(
                f"{path}: expected unpacked content with SHA-256 {sha256}, found {digest.hexdigest()}. "
                "It is another file under this name, or damaged: delete it and fetch it again."
            )
    return np.frombuffer(content, dtype=kind).reshape(shape).astype(native, copy=False)
