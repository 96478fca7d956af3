"""Train a classifier when nobody may see labels: from uncertain-similarity triplets and unlabeled points.

Names are imported when they are first used, so that labelling, reports and ``usimul --help`` never load torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from usimul.class_prior import estimate_prior
    from usimul.datasets import load_dataset, make_gaussians
    from usimul.estimators import USimULClassifier, WeakClassifier
    from usimul.export import load, save
    from usimul.methods import get_method, list_methods
    from usimul.sampling import sample_labels, sample_triplets
    from usimul.supervision import (
        ComparedPairs,
        ConfidenceDifference,
        DissimilarPairs,
        Labels,
        SimilarityConfidence,
        SimilarPairs,
        Triplets,
        Unlabeled,
    )

__version__ = "0.1.0"

_HOME = {
    "USimULClassifier": "estimators",
    "WeakClassifier": "estimators",
    "ComparedPairs": "supervision",
    "ConfidenceDifference": "supervision",
    "DissimilarPairs": "supervision",
    "Labels": "supervision",
    "SimilarPairs": "supervision",
    "SimilarityConfidence": "supervision",
    "Triplets": "supervision",
    "Unlabeled": "supervision",
    "estimate_prior": "class_prior",
    "get_method": "methods",
    "list_methods": "methods",
    "load": "export",
    "load_dataset": "datasets",
    "make_gaussians": "datasets",
    "sample_labels": "sampling",
    "sample_triplets": "sampling",
    "save": "export",
}

__all__ = [
    "ComparedPairs",
    "ConfidenceDifference",
    "DissimilarPairs",
    "Labels",
    "SimilarPairs",
    "SimilarityConfidence",
    "Triplets",
    "USimULClassifier",
    "Unlabeled",
    "WeakClassifier",
    "estimate_prior",
    "get_method",
    "list_methods",
    "load",
    "load_dataset",
    "make_gaussians",
    "sample_labels",
    "sample_triplets",
    "save",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'usimul' has no attribute {name!r}; it has: {', '.join(__all__)}")
    return getattr(importlib.import_module(f"usimul.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
