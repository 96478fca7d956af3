"""Trained classifiers as folders: safetensors weights, a JSON description, a model card. Never pickle.

A folder appears whole or not at all, and a damaged one is refused with the name of the file at fault: the checksum of
the weights, the names, shapes and types of all tensors, and every field of the description are checked before use.
"""

from __future__ import annotations

from usimul.export.base import FORMAT, FORMAT_VERSION
from usimul.export.onnx import ParityError, export_onnx
from usimul.export.reading import load, load_classifier
from usimul.export.writing import check_new_folder, save

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "ParityError",
    "check_new_folder",
    "export_onnx",
    "load",
    "load_classifier",
    "save",
]
