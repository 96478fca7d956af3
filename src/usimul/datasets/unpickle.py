"""Reading a pickle of plain values and byte arrays without running anything that the pickle asks for.

Some sets are published as pickles. Unpickling calls whatever functions a file names, so here every name but the four
that a file of plain arrays needs is refused, and these four stand for classes of this module that call nothing.
"""

from __future__ import annotations

import io
import math
import pickle
from typing import Any

import numpy as np

from usimul.validation import FileFormatError

__all__ = ["load_plain_pickle"]


class _Array:
    """Stands for an array: keeps the state that the pickle gives, to be read by ``_to_array``."""

    def __init__(self) -> None:
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Inert:
    # With a __setstate__ of their own, the stand-ins themselves cannot be changed by a pickle that "builds" them.
    def __setstate__(self, state: Any) -> None:
        """Ignore the state: that of a type is its byte order, which bytes do not have."""


class _Type(_Inert):
    """Stands for ``numpy.dtype``."""

    def __init__(self, code: str | bytes, *flags: object) -> None:
        self.code = code


class _Reconstruct(_Inert):
    """Stands for the function that makes an empty array before its state is set."""

    def __new__(cls, *arguments: object) -> _Array:  # type: ignore[misc]
        return _Array()


class _Encode(_Inert):
    """Stands for ``_codecs.encode``, by which Python 3 writes bytes into old pickles."""

    def __new__(cls, text: str, encoding: str) -> bytes:  # type: ignore[misc]
        if encoding != "latin1":
            raise ValueError(f"text to be encoded as {encoding}")
        return text.encode("latin1")


_STAND_INS = {
    ("numpy.core.multiarray", "_reconstruct"): _Reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _Reconstruct,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _Encode,
}


class _PlainUnpickler(pickle.Unpickler):
    def __init__(self, raw: bytes, what: str) -> None:
        super().__init__(io.BytesIO(raw), encoding="bytes")
        self._what = what

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _STAND_INS[module, name]
        except KeyError:
            raise FileFormatError(
                f"{self._what}: expected a pickle of lists, bytes, numbers, and arrays, found one that asks for "
                f"{module}.{name}. Unpickling it could run foreign code, so it was not read; get the published file."
            ) from None


def load_plain_pickle(raw: bytes, what: str) -> dict[str, Any]:
    """Return the pickled dict, with text keys and byte arrays as uint8.

    Parameters
    ----------
    raw
        The pickle, of Python 2 or 3.
    what
        The file, for messages.

    Examples
    --------
    >>> load_plain_pickle(pickle.dumps({b"labels": [3, 4]}, protocol=2), "a file")
    {'labels': [3, 4]}
    """
    try:
        loaded = _PlainUnpickler(raw, what).load()
        if not isinstance(loaded, dict):
            raise ValueError(f"a {type(loaded).__name__} instead of a dict")
        return {_text(key): _to_array(value) if isinstance(value, _Array) else value for key, value in loaded.items()}
    except FileFormatError:
        raise
    except Exception as error:  # whatever the opcodes of a damaged pickle add up to
        raise FileFormatError(
            f"{what}: expected a whole pickle of a dict of lists and byte arrays, found a damaged or other one "
            f"({type(error).__name__}: {error}). Get it again."
        ) from error


def _text(key: str | bytes) -> str:
    return key.decode("ascii") if isinstance(key, bytes) else str(key)


def _to_array(stored: _Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    _, shape, kind, by_columns, raw = stored.state
    if not isinstance(kind, _Type) or _text(kind.code) != "u1":
        raise ValueError("an array of something else than bytes")
    if not isinstance(raw, bytes) or math.prod(shape) != len(raw):
        raise ValueError(f"an array of shape {shape} with other content")
    return np.frombuffer(raw, dtype=np.uint8).reshape(shape, order="F" if by_columns else "C")
