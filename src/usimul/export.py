"""Trained classifiers as folders: safetensors weights, a JSON description, a model card. Never pickle.

A folder appears whole or not at all, and a damaged one is refused with the name of the file at fault: the checksum of
the weights, the names, shapes and types of all tensors, and every field of the description are checked before use.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as tensor_bytes
from torch import Tensor, nn

from usimul import __version__
from usimul.batching import check_device
from usimul.calibration import Calibration
from usimul.estimators import USimULClassifier, WeakClassifier
from usimul.files import room_for
from usimul.methods import get_method
from usimul.methods.base import Method, Orientation
from usimul.models import MODELS, ModelSpec, ScoreNet, build_model
from usimul.supervision import Labels, Supervision, Triplets, load_supervision
from usimul.validation import FileFormatError, InputError, InputTypeError, UsimulError, check_parent, check_writable

__all__ = ["FORMAT", "FORMAT_VERSION", "check_new_folder", "load", "load_classifier", "save"]

FORMAT = "usimul-model"
FORMAT_VERSION = 1

WEIGHTS, DESCRIPTION, CARD = "weights.safetensors", "model.json", "README.md"
TRAINED_ON = ("n_tuples_", "n_unlabeled_", "world_", "from_labels_")

_CLASSES: dict[str, type[WeakClassifier]] = {c.__name__: c for c in (USimULClassifier, WeakClassifier)}
_MISSING = object()


def check_new_folder(path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Raise unless a model can be saved as the folder ``path``: call it before a long training.

    With ``overwrite``, an existing folder may be replaced, but only one that holds nothing but a saved model.
    """
    target = check_parent(path)
    if not target.exists() and not target.is_symlink():
        return target
    if not overwrite:
        raise InputError(
            f"`path` {str(target)!r} exists already. Choose another name, or replace it with overwrite=True "
            "(--overwrite on the command line)."
        )
    if target.is_symlink() or not target.is_dir():
        raise InputError(f"`path` {str(target)!r} is not a folder, and only a model folder is ever overwritten.")
    others = sorted(p.name for p in target.iterdir() if p.name not in (WEIGHTS, DESCRIPTION, CARD))
    if others:
        raise InputError(
            f"`path` {str(target)!r} holds other things than a saved model ({', '.join(others[:3])}), so it is not "
            "overwritten. Choose another name."
        )
    check_writable(target)  # or the old files could not be removed
    return target


def save(estimator: WeakClassifier | Supervision, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a fitted classifier as a folder, or a supervision object as an ``.npz`` file.

    Parameters
    ----------
    estimator
        A fitted classifier. If its model is a torch module of your own, you need that module again to load it.
    path
        The folder to make. It appears whole or not at all.
    overwrite
        Whether an existing model folder, or supervision file, may be replaced.

    Examples
    --------
    >>> import tempfile
    >>> from usimul.datasets import make_gaussians
    >>> data = make_gaussians(60, 20, random_state=0)
    >>> clf = WeakClassifier("supervised", model="linear", epochs=1, random_state=0).fit(data.X_train, data.y_train)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(clf, f"{folder}/model")
    ...     again = load(f"{folder}/model")
    >>> bool((again.decision_function(data.X_test) == clf.decision_function(data.X_test)).all())
    True
    """
    if isinstance(estimator, Supervision):
        estimator.save(path, overwrite=overwrite)
        return
    if not isinstance(estimator, WeakClassifier):
        raise InputTypeError(
            f"`estimator` must be a WeakClassifier, a USimULClassifier, or a supervision object. "
            f"Got {type(estimator).__name__}."
        )
    if not hasattr(estimator, "module_"):
        raise InputError(
            f"this {type(estimator).__name__} is not fitted yet, so there is nothing to save. Call fit first."
        )
    target = check_new_folder(path, overwrite=overwrite)
    state = {name: t.detach().cpu().contiguous().clone() for name, t in estimator.module_.state_dict().items()}
    _check_finite(state, "the fitted model", InputError)
    weights = tensor_bytes(state, metadata={"format": "pt"})
    description = _describe(estimator, weights)
    text = json.dumps(description, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    _write_folder(
        target,
        {WEIGHTS: weights, DESCRIPTION: text.encode(), CARD: _card(description, target.absolute().name).encode()},
    )


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
    reader = _Reader(folder / DESCRIPTION)
    check_device(device)
    state = _read_weights(folder / WEIGHTS, reader)
    estimator = reader.estimator(device)
    if estimator.n_features_in_ > sum(tensor.numel() for tensor in state.values()):  # before memory is asked for
        raise reader.bad(f"n_features_in_ is {estimator.n_features_in_}, more than there are weights")
    net = _build(reader, estimator, model)
    _fill(net, state, folder / WEIGHTS)
    estimator.module_ = net.to(device).eval()
    return estimator


# --- writing ------------------------------------------------------------------------------------------------------


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


def _describe(estimator: WeakClassifier, weights: bytes) -> dict[str, Any]:
    given = {name: _plain(value) for name, value in estimator.get_params(deep=False).items()}
    spec = estimator.model_
    named = isinstance(spec, str)
    if not named:
        given["model"] = _MISSING
    fitted = ("method_", "prior_", *TRAINED_ON, "history_", "n_epochs_", "n_restarts_", "interrupted_")
    description = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "made_with": {"usimul": __version__, "torch": torch.__version__},
        "estimator": next(c.__name__ for c in type(estimator).__mro__ if c.__name__ in _CLASSES),
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
    if hasattr(estimator, "auto_"):
        description["auto_"] = _plain(estimator.auto_)
    return description


def _body_name(module: nn.Module) -> str:
    return type(module.body if isinstance(module, ScoreNet) else module).__name__


def _describe_classes(classes: NDArray[Any]) -> dict[str, Any]:
    values = [_plain(v) for v in classes]
    if any(v is _MISSING or v is None for v in values):
        raise InputTypeError(f"`classes_` must be numbers or strings to be saved. Got {classes!r}.")
    return {"dtype": "object" if classes.dtype.kind == "O" else classes.dtype.str, "values": values}


def _write_folder(target: Path, files: Mapping[str, bytes]) -> None:
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    try:
        with room_for(target):
            partial.mkdir()
            for name, content in files.items():
                (partial / name).write_bytes(content)
        if target.exists():
            target.rename(old)
            try:
                partial.rename(target)
            except BaseException:
                old.rename(target)
                raise
        else:
            partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _card(d: Mapping[str, Any], name: str) -> str:
    method = get_method(d["method_"])
    negative, positive = d["classes_"]["values"]
    known = Orientation(**d["orientation_"]).explain(unbiased=method.unbiased_for(d["world_"]))
    calibration = _on_probabilities(Calibration(**d["calibration_"]), method)
    own = ", model=your_module" if d["model"]["kind"] == "custom" else ""
    stopped = "\n- **Training was interrupted**; these are the weights at that moment." if d["interrupted_"] else ""
    source = f"\n- Source of the method: {method.paper}" if method.paper else ""
    trained = len(d["history_"]["risk"])
    epochs = f"epoch {d['n_epochs_']} of {trained} was kept" if trained else "the first epoch was not finished"
    unlabeled = f" and {d['n_unlabeled_']:,} unlabeled points" if d["n_unlabeled_"] else ""
    world = f", world `{d['world_']}`" if d["world_"] else ""
    chosen = "epoch" if d["params"].get("selection") == "label-free" else ""
    if d["params"].get("method") == "auto" and d["interrupted_"]:  # else the best is trained again, on all
        chosen = "candidate"
    held_out_note = f"; a part of them was held out to choose the {chosen} without labels" if chosen else ""
    prior = "none, the method needs none" if d["prior_"] is None else f"{d['prior_']:g}"
    share = "with the share of positives that they have" if d["prior_"] is None else "at the prior above"
    return f"""# {name}

A binary classifier trained with usimul {d["made_with"]["usimul"]} (torch {d["made_with"]["torch"]}).

- Predicts `{positive!r}` (score of at least 0) or `{negative!r}` for rows of {d["n_features_in_"]:,} features.
- Method: `{d["method_"]}`, {method.summary}; learns from {method.supervision.__name__}.{source}
- Trained on: {d["n_tuples_"]:,} tuples{unlabeled}{world}{held_out_note}.
- Model: {d["model"]["name"]} ({d["model"]["kind"]}); {epochs}.{stopped}
- Class prior used in training, P({positive!r}): {prior}.
- Class names: {known}.

## Limits

- {calibration}
- It holds for points like those it was trained on, {share}; another share of positives
  needs another threshold.
- {_on_labels(d, method)}
  `usimul evaluate` estimates the error from fresh answers over new points, or measures it on labels.{_on_bias(method)}

## Use

    import usimul
    clf = usimul.load("{name}"{own})
    clf.predict(X)

or `usimul predict {name} points.npy --output predictions.csv`.
"""


def _on_probabilities(calibration: Calibration, method: Method) -> str:
    if calibration.kind != "none":
        return f"`predict_proba` is {calibration.explain()}; it holds for points like those."
    if method.probability:
        return "`predict_proba` models P(positive | x), as far as the training data allow; not calibrated."
    return "`predict_proba` is a monotone map of the score, **not a calibrated probability**."


def _on_labels(d: Mapping[str, Any], method: Method) -> str:
    """Return a sentence on the part that labels had in the training."""
    if not d["from_labels_"]:
        return "No label was needed for training, so nobody has measured its accuracy yet unless you have:"
    if method.supervision is Labels:
        return "It was trained on the labels of its training points. How it does on other points is not known yet:"
    source = " by a classifier that was trained on them" if method.needs_confidences else ""
    return (
        f"The answers that it was trained on were made from the labels of the training points{source}: a simulation,\n"
        "  not a collection. How it does on other points is not known yet:"
    )


def _on_bias(method: Method) -> str:
    if method.unbiased or method.probability:
        return ""
    if method.supervision is Triplets:
        return "\n- The risk of this method is biased for the triplets that its paper defines: judge it first."
    return "\n- What this method minimises is no unbiased estimate of the classification risk: judge it first."


# --- reading ------------------------------------------------------------------------------------------------------


class _Reader:
    """The description of a saved model; every access names the file when something is wrong with it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = _read_bytes(path)
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
        return FileFormatError(f"{str(self.path)!r} is damaged: {what}.")

    def get(self, name: str, kind: type | tuple[type, ...], inside: Mapping[str, Any] | None = None) -> Any:
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
        if name not in _CLASSES:
            raise self.bad(f"unknown estimator {name!r}")
        params = dict(self.get("params", dict))
        if isinstance(params.get("image_shape"), list):
            params["image_shape"] = tuple(params["image_shape"])
        try:
            made = _CLASSES[name](**{**params, "device": device})
        except TypeError as error:
            raise self.bad(f"the parameters do not fit {name} ({error})") from error
        made.method_ = self.get("method_", str)
        try:
            get_method(made.method_)
        except UsimulError as error:
            raise self.bad(f"unknown method {made.method_!r}") from error
        made.prior_ = self._prior(get_method(made.method_))
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
        if "auto_" in self.content:
            made.auto_ = self.get("auto_", list)
        return made

    def _prior(self, method: Method) -> float | None:
        prior = self.get("prior_", (int, float, type(None)))
        if prior is None and not method.needs_prior:
            return None
        if prior is None or not 0.0 < prior < 1.0:
            raise self.bad(f"prior_ is {prior}")
        return float(prior)

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
        made.world_ = self.get("world_", (str, type(None)))
        made.from_labels_ = self.get("from_labels_", bool)
        if made.n_tuples_ < 1 or made.n_unlabeled_ < 0:
            raise self.bad(f"it says trained on {made.n_tuples_} tuples and {made.n_unlabeled_} unlabeled points")

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


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise FileFormatError(f"{str(path)!r} is missing: {str(path.parent)!r} is not a whole model folder.") from None
    except OSError as error:
        raise FileFormatError(f"{str(path)!r} cannot be read ({error}).") from error


def _read_weights(path: Path, reader: _Reader) -> dict[str, Tensor]:
    record = reader.get("weights", dict)
    content = _read_bytes(path)
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
    _check_finite(state, repr(str(path)), FileFormatError)
    return state


def _check_finite(state: Mapping[str, Tensor], where: str, error: type[UsimulError]) -> None:
    for name, tensor in state.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise error(f"{where} holds weights that are NaN or infinite, in tensor {name!r}.")


def _build(reader: _Reader, estimator: WeakClassifier, model: ModelSpec | None) -> ScoreNet:
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
