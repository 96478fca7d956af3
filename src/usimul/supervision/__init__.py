"""What was observed: frozen tuples of row indices into a pool of points. Never how it is learned, never copies.

A supervision object holds ``rows``, one tuple a line, and may also hold the rows of unlabeled points and the rows of a
few points whose label is known.
"""

from __future__ import annotations

import os

from usimul.supervision.base import Supervision
from usimul.supervision.files import read_file
from usimul.supervision.kinds import (
    WORLDS,
    ComparedPairs,
    ConfidenceDifference,
    DissimilarPairs,
    Labels,
    PairAnswers,
    SimilarityConfidence,
    SimilarPairs,
    TripletAnswers,
    Triplets,
    Unlabeled,
    UnlabeledSets,
)
from usimul.validation import FileFormatError, UsimulError

__all__ = [
    "WORLDS",
    "ComparedPairs",
    "ConfidenceDifference",
    "DissimilarPairs",
    "Labels",
    "PairAnswers",
    "SimilarPairs",
    "SimilarityConfidence",
    "Supervision",
    "TripletAnswers",
    "Triplets",
    "Unlabeled",
    "UnlabeledSets",
    "load_supervision",
]


def load_supervision(path: str | os.PathLike[str]) -> Supervision:
    """Read a supervision file; the object has the class that was saved.

    Raises
    ------
    FileFormatError
        If the file is damaged, is no supervision file, or is of another format version.
    """
    kind, content = read_file(path)
    known = Supervision.kinds()
    if not isinstance(kind, str) or kind not in known:
        raise FileFormatError(
            f"{str(path)!r} holds supervision of the unknown kind {kind!r}; known kinds: {', '.join(known)}."
        )
    try:
        return known[kind](**content)
    except UsimulError as error:
        raise FileFormatError(f"{str(path)!r} holds impossible supervision: {error}") from error
