"""The description of a saved model, ``model.json``: what is written, and the same fields checked when it is read."""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from usimul import __version__
from usimul.calibration import Calibration
from usimul.estimators import WeakClassifier
from usimul.export.base import CLASSES, FORMAT, FORMAT_VERSION, LATER, TRAINED_ON, WEIGHTS
from usimul.methods import get_method
from usimul.methods.base import Method, Orientation
from usimul.models import ScoreNet
from usimul.validation import FileFormatError, InputTypeError, UsimulError

__all__ = ["Reader", "describe", "read_bytes"]

_MISSING = object()


def _plain(value: Any) -> Any:
    """JSON form of a value, or ``_MISSING`` where there is none."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        items = {str(k): _plain(v) for k, v in value.items()}
        return _MISSING if any(v is _MISSING for v in items.values()) else items
    if isinstance(value, (list, tuple)):
        parts = [_plain(v) for v in value]
        return _MISSING if any(v is _MISSING for v in parts) else parts
    return _MISSING


def describe(estimator: WeakClassifier, weights: bytes) -> dict[str, Any]:
    """Return all that a folder says of a fitted classifier, as plain JSON values."""
    given = {name: _plain(value) for name, value in estimator.get_params(deep=False).items()}
    spec = estimator.model_
    named = isinstance(spec, str)
    if not named:
        given["model"] = _MISSING
    fitted = ("method_", "prior_", "wrong_yes_", *TRAINED_ON, "history_", "n_epochs_", "n_restarts_", "interrupted_")
    description = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "made_with": {
            "usimul": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "estimator": next(c.__name__ for c in type(estimator).__mro__ if c.__name__ in CLASSES),
        "params": {name: value for name, value in given.items() if value is not _MISSING},
        "params_left_out": sorted(name for name, value in given.items() if value is _MISSING),
        "model": {"kind": "named", "name": spec}
        if named
        else {"kind": "custom", "name": _body_name(estimator.module_)},
        "image_shape": _plain(estimator.image_shape),
        "n_features_in_": int(estimator.n_features_in_),
        "feature_names_in_": [str(n) for n in estimator.feature_names_in_]
        if hasattr(estimator, "feature_names_in_")
        else None,
        "classes_": _describe_classes(estimator.classes_),
        "orientation_": _plain(asdict(estimator.orientation_)),
        "calibration_": _plain(asdict(estimator.calibration_)),
        "weights": {"file": WEIGHTS, "bytes": len(weights), "sha256": hashlib.sha256(weights).hexdigest()},
    }
    description.update({name: _plain(getattr(estimator, name)) for name in fitted})
    for name in LATER:
        if hasattr(estimator, name):
            description[name] = _plain(getattr(estimator, name))
    return description


def _body_name(module: nn.Module) -> str:
    return type(module.body if isinstance(module, ScoreNet) else module).__name__


def _describe_classes(classes: NDArray[Any]) -> dict[str, Any]:
    values = [_plain(v) for v in classes]
    if any(v is _MISSING or v is None for v in values):
        raise InputTypeError(f"`classes_` must be numbers or strings to be saved. Got {classes!r}.")
    return {"dtype": "object" if classes.dtype.kind == "O" else classes.dtype.str, "values": values}


class Reader:
    """The description of a saved model; every access names the file when something is wrong with it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = read_bytes(path)
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FileFormatError(f"{str(path)!r} is not whole JSON ({error}). Save the model again.") from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise FileFormatError(f"{str(path)!r} does not describe a usimul model.")
        self.content: dict[str, Any] = content
        version = content.get("version")
        if version != FORMAT_VERSION:
            raise FileFormatError(
                f"{str(path)!r} has format version {version!r}; usimul {__version__} reads version {FORMAT_VERSION}. "
                "Load it with the usimul that wrote it, or save it again."
            )

    def bad(self, what: str) -> FileFormatError:
        """Return the error to raise for a field that cannot be."""
        return FileFormatError(f"{str(self.path)!r} is damaged: {what}.")

    def get(self, name: str, kind: type | tuple[type, ...], inside: Mapping[str, Any] | None = None) -> Any:
        """Return a field of the right type."""
        content = self.content if inside is None else inside
        if name not in content:
            raise self.bad(f"the field {name!r} is missing")
        value = content[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.bad(f"the field {name!r} holds {str(value)[:60]!r}")
        return value

    def estimator(self, device: str) -> WeakClassifier:
        """Return the estimator with its parameters and all fitted attributes but the module."""
        name = self.get("estimator", str)
        if name not in CLASSES:
            raise self.bad(f"unknown estimator {name!r}")
        params = dict(self.get("params", dict))
        if isinstance(params.get("image_shape"), list):
            params["image_shape"] = tuple(params["image_shape"])
        try:
            made = CLASSES[name](**{**params, "device": device})
        except TypeError as error:
            raise self.bad(f"the parameters do not fit {name} ({error})") from error
        made.method_ = self.get("method_", str)
        try:
            get_method(made.method_)
        except UsimulError as error:
            raise self.bad(f"unknown method {made.method_!r}") from error
        made.prior_ = self._prior(get_method(made.method_))
        made.wrong_yes_ = self._wrong_yes()
        made.classes_ = self._classes()
        made.n_features_in_ = self.get("n_features_in_", int)
        if made.n_features_in_ < 1:
            raise self.bad(f"n_features_in_ is {made.n_features_in_}")
        self._feature_names(made)
        self._trained_on(made)
        made.orientation_ = self._orientation()
        made.calibration_ = self._calibration()
        made.history_ = self._history()
        made.n_epochs_ = self.get("n_epochs_", int)
        made.n_restarts_ = self.get("n_restarts_", int)
        made.interrupted_ = self.get("interrupted_", bool)
        for name, kinds in LATER.items():
            if name in self.content:
                setattr(made, name, self.get(name, kinds))
        return made

    def _prior(self, method: Method) -> float | None:
        prior = self.get("prior_", (int, float, type(None)))
        if prior is None and not method.needs_prior:
            return None
        if prior is None or not 0.0 < prior < 1.0:
            raise self.bad(f"prior_ is {prior}")
        return float(prior)

    def _wrong_yes(self) -> float:
        if "wrong_yes_" not in self.content:  # written before there was a correction
            return 0.0
        share = self.get("wrong_yes_", (int, float))
        if not 0.0 <= share < 1.0:
            raise self.bad(f"wrong_yes_ is {share}")
        return float(share)

    def _classes(self) -> NDArray[Any]:
        record = self.get("classes_", dict)
        values = self.get("values", list, record)
        try:
            classes = np.array(values, dtype=np.dtype(self.get("dtype", str, record)))
        except (TypeError, ValueError, OverflowError) as error:
            raise self.bad(f"the classes cannot be read ({error})") from error
        if classes.shape != (2,) or classes.tolist() != values:
            raise self.bad(f"the classes are {values!r}, not two plain values")
        return classes

    def _feature_names(self, made: WeakClassifier) -> None:
        names = self.get("feature_names_in_", (list, type(None)))
        if names is None:
            return
        if len(names) != made.n_features_in_ or not all(isinstance(n, str) for n in names):
            raise self.bad("the feature names do not fit the number of features")
        made.feature_names_in_ = np.array(names, dtype=object)

    def _trained_on(self, made: WeakClassifier) -> None:
        made.n_tuples_ = self.get("n_tuples_", int)
        made.n_unlabeled_ = self.get("n_unlabeled_", int)
        # Written before these were kept: not known.
        made.n_points_ = self.get("n_points_", (int, type(None))) if "n_points_" in self.content else None
        made.n_asked_ = self.get("n_asked_", (int, type(None))) if "n_asked_" in self.content else None
        made.world_ = self.get("world_", (str, type(None)))
        made.from_labels_ = self.get("from_labels_", bool)
        if made.n_tuples_ < 1 or made.n_unlabeled_ < 0:
            raise self.bad(f"it says trained on {made.n_tuples_} tuples and {made.n_unlabeled_} unlabeled points")
        too_few = made.n_points_ is not None and made.n_points_ < 1
        if too_few or (made.n_asked_ is not None and made.n_asked_ < made.n_tuples_):
            raise self.bad(f"it says that there were {made.n_points_} points, and {made.n_asked_} questions")

    def _orientation(self) -> Orientation:
        record = self.get("orientation_", dict)
        strangers = sorted(set(record) - {"status", "flipped", "z"})
        if strangers:
            raise self.bad(f"the orientation has unknown fields ({', '.join(strangers)})")
        status, z = self.get("status", str, record), self.get("z", (int, float, type(None)), record)
        if status not in Orientation.STATUSES or (z is not None and not math.isfinite(z)):
            raise self.bad(f"the orientation is {status!r} with z {z}")
        return Orientation(status, self.get("flipped", bool, record), z)

    def _calibration(self) -> Calibration:
        if "calibration_" not in self.content:  # a model of before there was any
            return Calibration()
        record = self.get("calibration_", dict)
        kind, n = self.get("kind", str, record), self.get("n", int, record)
        temperature = self.get("temperature", (int, float), record)
        if kind not in Calibration.KINDS or not 0.0 < temperature < math.inf or n < 0:
            raise self.bad(f"the calibration is {kind!r} with temperature {temperature} from {n}")
        return Calibration(kind, float(temperature), n)

    def _history(self) -> dict[str, list[Any]]:
        history: dict[str, list[Any]] = self.get("history_", dict)
        if "risk" not in history or not all(isinstance(v, list) for v in history.values()):
            raise self.bad("the history is not a table by epoch")
        return history


def read_bytes(path: Path) -> bytes:
    """Read a file of a model folder; a missing one is named."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise FileFormatError(f"{str(path)!r} is missing: {str(path.parent)!r} is not a whole model folder.") from None
    except OSError as error:
        raise FileFormatError(f"{str(path)!r} cannot be read ({error}).") from error
