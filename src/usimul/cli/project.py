"""What commands take from ``usimul.toml``: defaults of what goes in, which words on the command line override.

Nothing that a command makes has a default here, so that no command replaces what another one has made.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from usimul.project import Project

__all__ = ["NAME", "PRIOR_FILE", "TAKES", "about_of", "defaults_of", "reading_of"]

NAME = "usimul.toml"
"""The name under which commands look for a project in the folder where they are called."""

PRIOR_FILE = "prior.json"
"""What `usimul run` calls the estimate of the prior in the folder of the project."""

_READING = {"key": "key", "id_column": "id_column", "ignore": "ignore", "resize": "resize", "mode": "mode"}
_POINTS = {"path": "points", **_READING}
_KIND = {"kind": "kind", "by": "by", "world": "world"}
_ABOUT = {**_KIND, "unlabeled": "unlabeled", "asked": "n_asked", "accepted": "n_accepted"}
_SUPERVISION = {"path": "supervision", **_ABOUT}
_NOISE = {"wrong_yes": "wrong_yes"}
_PRIOR = {"value": "prior"}
_TRAINING_KEYS = "method model epochs batch_size lr loss selection patience scaling prior_check seed device"
_TRAINING = {name: name for name in _TRAINING_KEYS.split()}
_DEVICE = {"device": "device"}

_JUDGING = {
    "judging": {"points": "points", "supervision": "supervision", "labels": "labels"},
    "points": _READING,
    "supervision": _KIND,
    "training": _DEVICE,
}

TAKES: dict[str, dict[str, dict[str, str]]] = {
    "check": {"points": _POINTS, "supervision": {**_SUPERVISION, **_NOISE}, "prior": _PRIOR},
    "prior": {"points": _READING, "supervision": _ABOUT, "prior": {"estimate": "method", "side": "side"}},
    "train": {"points": _POINTS, "supervision": {**_SUPERVISION, **_NOISE}, "prior": _PRIOR, "training": _TRAINING},
    "tune": {
        "points": _POINTS,
        "supervision": {**_SUPERVISION, **_NOISE},
        "prior": _PRIOR,
        "training": {"seed": "seed", **_DEVICE},
    },
    "predict": {"points": _POINTS, "training": _DEVICE},
    "evaluate": {**_JUDGING, "supervision": {**_KIND, **_NOISE}},
    "report": _JUDGING,
    "calibrate": _JUDGING,
    "export": {},
    "run": {},
}
"""By command and section: which key of the file is which parameter of the command."""

_READS_MODEL = ("predict", "evaluate", "report", "calibrate", "export")


def defaults_of(project: Project, command: str) -> dict[str, Any]:
    """Return the parameters of a command that the project gives, as click takes them."""
    found: dict[str, Any] = {}
    for section, names in TAKES.get(command, {}).items():
        found.update(_given(project, section, names))
    if command == "check" and project.get("training", "prior_check", "error") != "error":
        found.pop("prior", None)  # training says what a contradiction means; the check would stop there
        found.pop("wrong_yes", None)
    if command == "prior":  # which takes one file or two
        files = [project.get("points", "path"), project.get("supervision", "path")]
        found["files"] = [path for path in files if path is not None]
    if command in ("train", "tune"):
        found.update(_training(project, command))
    if command in _READS_MODEL:
        found["model"] = project.folder / "model"
    return found


def reading_of(project: Project) -> dict[str, Any]:
    """Return how points are read, for `usimul.points.read_points`."""
    return _given(project, "points", _READING)


def about_of(project: Project) -> dict[str, Any]:
    """Return how supervision is read."""
    return _given(project, "supervision", _ABOUT)


def _given(project: Project, section: str, names: dict[str, str]) -> dict[str, Any]:
    found = {name: project.get(section, key) for key, name in names.items()}
    return {name: value for name, value in found.items() if value is not None}


def _training(project: Project, command: str) -> dict[str, Any]:
    """Values that the command line writes in another form than the file, and an estimated prior if there is one."""
    found: dict[str, Any] = {}
    shape = project.get("training", "image_shape")
    if shape is not None and command == "train":
        found["image_shape"] = ",".join(str(side) for side in shape)
    options = project.get("training", "options")
    if options is not None and command == "train":
        found["options"] = [f"{name}={json.dumps(value)}" for name, value in options.items()]
    if command == "tune":
        keys = [key for key in (*_TRAINING, "image_shape", "options") if key not in ("seed", "device")]
        given = {key: project.get("training", key) for key in keys}
        found["fixed"] = [f"{key}={json.dumps(value)}" for key, value in given.items() if value is not None]
    estimated = project.folder / PRIOR_FILE
    if project.get("prior", "estimate") is not None and estimated.exists():
        found["prior"] = estimated_prior(estimated)
    return found


def estimated_prior(path: Path) -> float:
    """Return the value of a file that `usimul prior --json` wrote."""
    from usimul.files import parsing
    from usimul.validation import check_prior

    with parsing(path, "estimate of the prior", "`usimul prior --json FILE` writes one."):
        return check_prior(json.loads(path.read_text(encoding="utf-8"))["value"])
