"""What one run is: a frozen, validated record with a content hash that does not know the seed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from usimul.supervision import WORLDS
from usimul.validation import (
    InputError,
    check_choice,
    check_count,
    check_fraction,
    check_real,
)

__all__ = ["SELECTIONS", "Run", "RunSpec"]

SELECTIONS = ("last", "label-free", "oracle")
"""Which epoch counts: the last, the best by label-free risk on held-out tuples, the best on test labels."""


@dataclass(frozen=True)
class RunSpec:
    """Everything that decides the result of a run, but the seed.

    Parameters
    ----------
    data, task
        Name of the data set, and of the split into two classes (None: its default).
    edition
        Which form of the data set's files: a part of a set is other data than the whole. None for sets without files.
    method
        Registry key.
    prior, told
        Share of positives of all draws and of the test part, and what the method is told (None: the same).
    n, n_unlabeled
        Triplets and unlabeled points. A method with other tuples gets as many *points*: 3 n + n_unlabeled in all.
    world
        How triplets come about. Methods without triplets do not depend on it.
    model, loss, epochs, lr, weight_decay, optimizer, schedule
        As in `usimul.WeakClassifier`; None takes the method's recipe.
    step_points
        Points in one optimiser step, the same for all methods, so that they take equally many.
    selection
        Which epoch counts, see `SELECTIONS`. ``oracle`` looks at test labels, and is printed as such.
    curve
        Whether the test accuracy after each epoch is kept. It chooses nothing.
    options
        Options of the method, as JSON text.
    data_options
        Options of drawn data sets, as JSON text.

    Examples
    --------
    >>> spec = RunSpec("digits", "joint", 0.4, 100, 50)
    >>> spec.key == RunSpec.from_dict(spec.to_dict()).key, spec.key == RunSpec("digits", "joint", 0.3, 100, 50).key
    (True, False)
    """

    data: str
    method: str
    prior: float
    n: int
    n_unlabeled: int
    task: str | None = None
    edition: str | None = None
    told: float | None = None
    world: str = "definition1"
    model: str = "mlp"
    loss: str | None = None
    epochs: int | None = None
    lr: float | None = None
    weight_decay: float | None = None
    optimizer: str | None = None
    schedule: str | None = None
    step_points: int = 256
    selection: str = "last"
    curve: bool = False
    options: str = "{}"
    data_options: str = "{}"

    def __post_init__(self) -> None:
        check_fraction(self.prior, "prior")
        if self.told is not None:
            check_fraction(self.told, "told")
        check_count(self.n, "n")
        check_count(self.n_unlabeled, "n_unlabeled", low=0)
        check_count(self.step_points, "step_points", low=2)
        check_choice(self.world, WORLDS, "world")
        check_choice(self.selection, SELECTIONS, "selection")
        if self.epochs is not None:
            check_count(self.epochs, "epochs")
        if self.lr is not None:
            check_real(self.lr, "lr", low=0.0, closed="neither")
        if self.weight_decay is not None:
            check_real(self.weight_decay, "weight_decay", low=0.0)
        for name in ("options", "data_options"):
            try:
                given = json.loads(getattr(self, name))
            except (TypeError, ValueError) as error:
                raise InputError(f"`{name}` must be a JSON object as text. Got {getattr(self, name)!r}.") from error
            # One text for equal content, so that equal runs have equal keys.
            object.__setattr__(self, name, json.dumps(given, sort_keys=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, and those that have none."""
        return {f.name: v for f in fields(self) if (v := getattr(self, f.name)) != f.default}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Build from a mapping; a field that does not exist is an error that names the nearest ones."""
        known = [f.name for f in fields(cls)]
        for name in content:
            check_choice(name, known, "field of a run")
        missing = [f.name for f in fields(cls)[:5] if f.name not in content]
        if missing:
            raise InputError(f"a run needs the fields {', '.join(missing)}. Got only: {', '.join(content)}.")
        return cls(**content)

    @property
    def key(self) -> str:
        """Content hash. Fields at their defaults do not enter, so a new field does not change the keys of old runs."""
        text = json.dumps(self.to_dict(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def describe(self) -> str:
        """Return one line for logs."""
        return ", ".join(f"{name}={value}" for name, value in asdict(self).items() if name in self.to_dict())


@dataclass(frozen=True)
class Run:
    """A spec and a seed."""

    spec: RunSpec
    seed: int

    @property
    def id(self) -> str:
        """Name of this run in stores and claims."""
        return f"{self.spec.key}-{self.seed}"
