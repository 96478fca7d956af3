"""Reading a model folder: all of it is checked before any of it is used."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor, nn

from usimul.batching import check_device
from usimul.estimators import WeakClassifier
from usimul.export.base import DESCRIPTION, WEIGHTS, check_weights
from usimul.export.description import Reader, read_bytes
from usimul.models import MODELS, ModelSpec, ScoreNet, build_model
from usimul.supervision import load_supervision
from usimul.validation import FileFormatError, InputError, UsimulError

__all__ = ["load", "load_classifier"]


def load(path: str | os.PathLike[str], *, model: ModelSpec | None = None, device: str = "cpu") -> Any:
    """Read a classifier that `save` wrote, ready to predict; or a supervision object from an ``.npz`` file.

    Parameters
    ----------
    path
        A model folder, or a supervision file.
    model
        The torch module, or the function that makes one, that the classifier was trained with; only for a classifier
        whose model was not one of the named ones.
    device
        torch device to predict on.

    Raises
    ------
    FileFormatError
        If a file is missing, damaged, or of another format version.

    Examples
    --------
    >>> import tempfile
    >>> from usimul.export import save
    >>> from usimul.supervision import Triplets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Triplets([[0, 1, 2]], n_points=3), f"{folder}/answers.npz")
    ...     load(f"{folder}/answers.npz")
    Triplets(1 tuples, pool of 3)
    """
    folder = Path(path)
    if folder.is_file():
        if folder.suffix == ".npz":
            return load_supervision(folder)
        raise FileFormatError(f"{str(folder)!r} is neither a model folder nor an .npz supervision file.")
    return load_classifier(folder, model=model, device=device)


def load_classifier(
    path: str | os.PathLike[str], *, model: ModelSpec | None = None, device: str = "cpu"
) -> WeakClassifier:
    """Read a classifier that `save` wrote; the part of `load` that is not about supervision files."""
    folder = Path(path)
    if folder.is_file():
        raise InputError(f"{str(folder)!r} is a file; a model is a folder. Name the folder that `usimul train` made.")
    if not folder.is_dir():
        raise InputError(f"there is no model folder {str(folder)!r}. Make one with `usimul train`, or usimul.save.")
    reader = Reader(folder / DESCRIPTION)
    check_device(device)
    state = _read_weights(folder / WEIGHTS, reader)
    estimator = reader.estimator(device)
    if estimator.n_features_in_ > sum(tensor.numel() for tensor in state.values()):  # before memory is asked for
        raise reader.bad(f"n_features_in_ is {estimator.n_features_in_}, more than there are weights")
    net = _build(reader, estimator, model)
    _fill(net, state, folder / WEIGHTS)
    estimator.module_ = net.to(device).eval()
    return estimator


def _read_weights(path: Path, reader: Reader) -> dict[str, Tensor]:
    record = reader.get("weights", dict)
    content = read_bytes(path)
    expected = reader.get("bytes", int, record)
    if len(content) != expected:
        kind = "truncated" if len(content) < expected else "too long"
        raise FileFormatError(f"{str(path)!r} is {kind}: {len(content)} bytes, {expected} expected.")
    if hashlib.sha256(content).hexdigest() != reader.get("sha256", str, record):
        raise FileFormatError(
            f"{str(path)!r} is not what was saved: its SHA-256 differs from the one in {DESCRIPTION!r}. "
            "Copy the folder again from its source."
        )
    try:
        state: dict[str, Tensor] = load_tensors(content)
    except (SafetensorError, KeyError, ValueError) as error:
        raise FileFormatError(f"{str(path)!r} is not a safetensors file ({error}).") from error
    check_weights(state, repr(str(path)), FileFormatError)
    return state


def _build(reader: Reader, estimator: WeakClassifier, model: ModelSpec | None) -> ScoreNet:
    record = reader.get("model", dict)
    kind, name = reader.get("kind", str, record), reader.get("name", str, record)
    folder = str(reader.path.parent)
    if kind == "custom":
        if model is None:
            raise InputError(
                f"the model in {folder!r} was trained with a torch module of the user's own ({name}), which is not in "
                "the folder. Load it with load(path, model=<that module, or the function that makes it>)."
            )
        estimator.model = estimator.model_ = model
        return build_model(model, estimator.n_features_in_, estimator.image_shape, seed=0)
    if kind != "named" or name not in MODELS:
        raise reader.bad(f"unknown model {name!r} of kind {kind!r}")
    if model is not None:
        raise InputError(
            f"`model` is only for models of your own. {folder!r} holds the named model {name!r}; leave it out."
        )
    estimator.model_ = name
    try:
        return build_model(name, estimator.n_features_in_, estimator.image_shape, seed=0)
    except UsimulError as error:
        raise reader.bad(f"model {name!r} cannot be built ({error})") from error


def _fill(net: nn.Module, state: Mapping[str, Tensor], path: Path) -> None:
    wanted = net.state_dict()
    extra, missing = sorted(set(state) - set(wanted)), sorted(set(wanted) - set(state))
    if extra or missing:
        parts = [f"unexpected tensors: {', '.join(extra[:3])}"] * bool(extra)
        parts += [f"missing tensors: {', '.join(missing[:3])}"] * bool(missing)
        raise FileFormatError(f"{str(path)!r} does not fit the model ({'; '.join(parts)}).")
    for name, tensor in state.items():
        if tensor.shape != wanted[name].shape or tensor.dtype != wanted[name].dtype:
            raise FileFormatError(
                f"{str(path)!r} does not fit the model: tensor {name!r} is {tensor.dtype} {tuple(tensor.shape)}, "
                f"{wanted[name].dtype} {tuple(wanted[name].shape)} expected."
            )
    if not bool(state["sign"].abs() == 1.0):
        raise FileFormatError(f"{str(path)!r} does not fit the model: tensor 'sign' is {state['sign']:g}, not 1 or -1.")
    net.load_state_dict(dict(state))
