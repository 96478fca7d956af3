"""What a saved model is called and holds."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from usimul.estimators import USimULClassifier, WeakClassifier
from usimul.validation import UsimulError

__all__ = [
    "CARD",
    "CLASSES",
    "DESCRIPTION",
    "FORMAT",
    "FORMAT_VERSION",
    "LATER",
    "TRAINED_ON",
    "WEIGHTS",
    "check_weights",
]

FORMAT = "usimul-model"
FORMAT_VERSION = 1

WEIGHTS, DESCRIPTION, CARD = "weights.safetensors", "model.json", "README.md"
LATER: dict[str, type | tuple[type, ...]] = {"auto_": list, "held_out_": (str, type(None)), "stopped_": bool}
"""What models have only sometimes, or since a later version of the library, with its kinds of value."""
TRAINED_ON = ("n_tuples_", "n_unlabeled_", "n_points_", "n_asked_", "world_", "from_labels_")

CLASSES: dict[str, type[WeakClassifier]] = {c.__name__: c for c in (USimULClassifier, WeakClassifier)}


def check_weights(state: Mapping[str, Tensor], where: str, error: type[UsimulError]) -> None:
    """Raise unless all weights are finite."""
    for name, tensor in state.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise error(f"{where} holds weights that are NaN or infinite, in tensor {name!r}.")
