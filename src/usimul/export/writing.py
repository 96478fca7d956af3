"""Writing a model folder: it appears whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import save as tensor_bytes

from usimul.estimators import WeakClassifier
from usimul.export.base import CARD, DESCRIPTION, WEIGHTS, check_weights
from usimul.export.card import card
from usimul.export.description import describe
from usimul.files import room_for
from usimul.supervision import Supervision
from usimul.validation import InputError, InputTypeError, check_parent, check_writable

__all__ = ["check_new_folder", "save"]


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
    >>> from usimul.export import load
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
    check_weights(state, "the fitted model", InputError)
    weights = tensor_bytes(state, metadata={"format": "pt"})
    description = describe(estimator, weights)
    text = json.dumps(description, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    _write_folder(
        target,
        {WEIGHTS: weights, DESCRIPTION: text.encode(), CARD: card(description, target.absolute().name).encode()},
    )


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
