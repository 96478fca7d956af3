"""A trained classifier as one ONNX file: raw rows of X in, score and probability out, without usimul or torch.

The file is run by ONNX Runtime against the classifier on several batch sizes before it appears under its name.

Reference: the ONNX specification, https://onnx.ai, operator set 18.
"""

from __future__ import annotations

import contextlib
import copy
import json
import logging
import math
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from usimul import __version__
from usimul.estimators import WeakClassifier
from usimul.files import check_new_file, whole_file
from usimul.models import ScoreNet
from usimul.training import scores
from usimul.validation import InputError, InputTypeError, UsimulError, missing_dependency

__all__ = ["BATCHES", "OPSET", "ParityError", "export_onnx"]

OPSET = 18  # the one that torch's exporter writes natively; later ones would only be converted to
BATCHES = (1, 2, 7, 64, 1000)
TOLERANCE = 1e-4  # of scores, relative to the largest or to 1; of probabilities
LARGEST = (1 << 31) - (1 << 24)  # a protobuf message ends at 2 GB, and the graph needs some room


class ParityError(UsimulError, ArithmeticError):
    """An exported model does not compute what the classifier computes."""


def export_onnx(estimator: WeakClassifier, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a fitted classifier as one ONNX file, weights and scaling inside.

    The graph has one input, ``X``, float32 ``(n, n_features)`` with any ``n``, and two outputs of shape ``(n,)``:
    ``score`` (at least 0 means the positive class) and ``probability`` of the positive class, as `predict_proba` gives
    it. The names of the classes, the method, the prior, and the version are metadata of the model.

    Parameters
    ----------
    estimator
        A fitted classifier, also one with a torch module of your own.
    path
        The file to make, ``.onnx``. It appears when ONNX Runtime has computed the same from it, or not at all.
    overwrite
        Whether an existing file may be replaced.

    Raises
    ------
    ParityError
        If the exported model computes something else; nothing is kept then.

    Examples
    --------
    >>> import tempfile
    >>> import onnxruntime
    >>> from usimul.datasets import make_gaussians
    >>> data = make_gaussians(60, 20, random_state=0)
    >>> clf = WeakClassifier("supervised", model="linear", epochs=1, random_state=0).fit(data.X_train, data.y_train)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     session = onnxruntime.InferenceSession(export_onnx(clf, f"{folder}/model.onnx"))
    >>> score, probability = session.run(None, {"X": data.X_test.astype(np.float32)})
    >>> bool(np.allclose(score, clf.decision_function(data.X_test), atol=1e-4))
    True
    """
    if not isinstance(estimator, WeakClassifier):
        raise InputTypeError(f"`estimator` must be a fitted classifier of usimul. Got {type(estimator).__name__}.")
    check_is_fitted(estimator, "module_")
    target = check_new_file(Path(path), (".onnx",), overwrite=overwrite)
    for package in ("onnx", "onnxscript", "onnxruntime"):
        _check_installed(package)
    n_bytes = sum(tensor.numel() * tensor.element_size() for tensor in estimator.module_.state_dict().values())
    if n_bytes > LARGEST:
        raise InputError(
            f"an ONNX file with its weights inside may have at most 2 GB. The weights of this model have {n_bytes:,} "
            "bytes. Train a smaller network."
        )
    network = _Shipped(estimator)
    model = _to_onnx(network, estimator.n_features_in_)
    _strip(model)
    _describe(model, estimator)
    content: bytes = model.SerializeToString()
    _check_parity(content, network, estimator)
    with whole_file(target) as handle:
        handle.write(content)
    return target


class _Shipped(nn.Module):
    """The network of a classifier with both of its outputs, on the CPU."""

    def __init__(self, estimator: WeakClassifier) -> None:
        super().__init__()
        self.net = copy.deepcopy(estimator.module_).cpu().eval()
        # The probability is sigmoid(slope * score + intercept), whatever the estimator has in between; if it were
        # another function, parity would be lost.
        low, high = _logit(estimator.probability_of(np.array([-1.0, 1.0])))
        self.slope, self.intercept = (high - low) / 2, (high + low) / 2

    def forward(self, X: Tensor) -> tuple[Tensor, Tensor]:
        score = self.net(X)
        return score, torch.sigmoid(self.slope * score + self.intercept)


def _logit(probability: NDArray[np.float64]) -> list[float]:
    return [math.log(p) - math.log1p(-p) for p in probability.tolist()]


def _check_installed(package: str) -> None:
    import importlib

    try:
        importlib.import_module(package)
    except ImportError as error:
        raise missing_dependency(package, "onnx", "Exporting to ONNX") from error


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Keep what torch's exporter says about itself and about packages that are not needed off the screen."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _to_onnx(network: nn.Module, n_features: int) -> Any:
    """Return the graph of a network as an ONNX model, with any number of rows."""
    try:
        with _quietly():
            program = torch.onnx.export(
                network,
                (torch.zeros(3, n_features),),
                dynamo=True,
                input_names=["X"],
                output_names=["score", "probability"],
                dynamic_shapes=({0: torch.export.Dim("n", min=1)},),
                opset_version=OPSET,
                external_data=False,
                verbose=False,
            )
    except Exception as error:  # the exporter has many kinds of errors, with pages of text
        name = type(network.net.body if isinstance(network.net, ScoreNet) else network.net).__name__
        first = next((line.strip() for line in str(error.__cause__ or error).splitlines() if line.strip()), "")
        raise InputError(
            f"torch could not turn the model ({name}) into ONNX: {type(error).__name__}: {first[:200]} A network "
            "must do the same operations for every batch, whatever its size and its numbers."
        ) from error
    assert program is not None
    return program.model_proto


def _strip(model: Any) -> None:
    """Remove what the exporter notes about the source code, such as paths of this machine."""
    graphs = [model.graph, *model.functions]
    for graph in graphs:
        parts = [graph, *graph.node, *graph.value_info]
        if graph is model.graph:
            parts += [*graph.input, *graph.output, *graph.initializer]
        for part in parts:
            part.ClearField("doc_string")
            part.ClearField("metadata_props")
    model.ClearField("metadata_props")


def _describe(model: Any, estimator: WeakClassifier) -> None:
    negative, positive = estimator.classes_.tolist()
    names = getattr(estimator, "feature_names_in_", None)
    about = {
        "usimul_version": __version__,
        "torch_version": torch.__version__,
        "method": estimator.method_,
        "world": estimator.world_,
        "prior": None if estimator.prior_ is None else f"{estimator.prior_:g}",
        "classes": json.dumps([negative, positive], ensure_ascii=False),
        "class_names": estimator.orientation_.status,
        "n_features": str(estimator.n_features_in_),
        "feature_names": None if names is None else json.dumps([str(name) for name in names], ensure_ascii=False),
        "decision": "score >= 0 is the second class; probability is that of the second class",
    }
    model.producer_name, model.producer_version = "usimul", __version__
    for key, value in about.items():
        if value is not None:
            model.metadata_props.add(key=key, value=value)


def _check_parity(content: bytes, network: _Shipped, estimator: WeakClassifier) -> None:
    """Raise unless ONNX Runtime computes from the file what the classifier computes, on raw points of many sizes."""
    import onnx
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        onnx.checker.check_model(onnx.load_model_from_string(content))
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # both packages have errors of their own
        raise ParityError(f"ONNX Runtime cannot load what was exported ({error}); nothing was kept.") from error
    generator = torch.Generator().manual_seed(0)
    for n in BATCHES:
        X = _points(network.net, n, estimator.n_features_in_, generator)
        try:
            found = session.run(["score", "probability"], {"X": X.numpy()})
        except Exception as error:
            raise ParityError(
                f"ONNX Runtime cannot run what was exported on {n} rows ({error}); nothing was kept."
            ) from error
        expected = scores(network.net, X)
        for name, got, wanted, size in (
            ("score", found[0], expected, max(1.0, float(np.abs(expected).max()))),
            ("probability", found[1], estimator.probability_of(expected), 1.0),
        ):
            off = float(np.abs(got - wanted).max()) if got.shape == wanted.shape else math.inf
            if not off <= TOLERANCE * size:
                raise ParityError(
                    f"the exported model must compute what the classifier computes. On {n} rows the {name} is off by "
                    f"{off:.3g}, and {TOLERANCE * size:.3g} is allowed; nothing was kept. Report it, with the model."
                )


def _points(net: nn.Module, n: int, n_features: int, generator: torch.Generator) -> Tensor:
    """Points such as the scaling of the network was made for, some of them far out."""
    X = torch.randn(n, n_features, generator=generator)
    X[::5] *= 10.0
    return X / net.scale + net.shift if isinstance(net, ScoreNet) else X
