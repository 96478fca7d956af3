"""What the SOURCE of ``usimul sample`` is, a file of labels or a data set, and where its posterior comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from usimul.datasets import Dataset

__all__ = ["Source", "find_source", "source_options"]

Command = TypeVar("Command", bound=Callable[..., Any])


def source_options(command: Command) -> Command:
    """Add the options that belong to data sets as sources of labels."""
    for option in (
        click.option(
            "--posterior",
            metavar="FILE|model|exact",
            help="P(y = +1 | x) of every point, for kinds with confidences: a .npy file; or of a data set by a "
            "classifier that is trained on its labels (model), or as known (exact).",
        ),
        click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Data folder of a data set."),
        click.option("--part", type=click.Choice(("train", "test")), help="Part of a data set. Default: train."),
        click.option("--edition", help="Which form of a data set's files."),
        click.option("--task", help="Which classes of a data set count as +1 and -1."),
    ):
        command = option(command)
    return command


@dataclass(frozen=True, eq=False)
class Source:
    """A data set and a part of it, or without a data set a file of labels that the command reads itself."""

    name: str
    data: Dataset | None = None
    part: str = ""
    edition: str | None = None

    @property
    def y(self) -> NDArray[np.int64]:
        """Labels of the part of the data set."""
        labels: NDArray[np.int64] = getattr(self.data, f"y_{self.part}")
        return labels

    @property
    def origin(self) -> str:
        """Say which points the rows of a draw are of, and how to get them; empty for files."""
        if self.data is None:
            return ""
        options = (f" --task {self.data.task}" if self.data.task else "") + (
            f" --edition {self.edition}" if self.edition else ""
        )
        return (
            f"rows: {'training' if self.part == 'train' else 'test'} part of {self.data.measured_on}\n"
            f"points: X_{self.part}.npy of `usimul datasets get {self.name}{options} --arrays FOLDER`"
        )

    def posterior(self, way: str | None, prior: float | None, seed: int) -> NDArray[np.float64]:
        """Return P(y = +1 | x) of every point, in a ``way`` that the user chose, for draws with ``prior``."""
        from usimul.validation import InputError

        if way is None:
            raise InputError(
                "kinds with confidences need the posterior of every point; pass --posterior FILE.npy, or for a data "
                "set --posterior model or --posterior exact."
            )
        if way not in ("model", "exact"):
            return _read_posterior(Path(way))
        if self.data is None:
            raise InputError(
                f"--posterior {way} needs a data set as SOURCE, which has points beside labels. Got the file "
                f"{self.name!r}. Pass --posterior FILE.npy, such as from usimul.posterior.fit_posterior."
            )
        return self._exact(self.data, prior) if way == "exact" else self._fitted(self.data, prior, seed)

    def _exact(self, data: Dataset, prior: float | None) -> NDArray[np.float64]:
        import inspect

        from usimul.datasets import get_record
        from usimul.validation import InputError

        known: NDArray[np.float64] | None = getattr(data, f"posterior_{self.part}")
        make = get_record(self.name).make
        if known is None or make is None:
            raise InputError(f"the posterior of data set {self.name!r} is not known; pass --posterior model.")
        if prior is None:
            return known
        from usimul.posterior import rescale  # brings torch along

        return rescale(known, inspect.signature(make).parameters["prior"].default, prior)

    def _fitted(self, data: Dataset, prior: float | None, seed: int) -> NDArray[np.float64]:
        from usimul.posterior import fit_posterior

        click.echo("training a classifier on the labels for the posterior ...", err=True)
        shape = data.image_shape
        return fit_posterior(
            getattr(data, f"X_{self.part}"),
            self.y,
            prior=prior,
            image_shape=None if shape is None else (shape[0], shape[1], shape[2]),
            random_state=seed,
        )


def _read_posterior(path: Path) -> NDArray[np.float64]:
    import numpy as np

    from usimul.points.arrays import read_array
    from usimul.validation import InputError

    found = read_array(path)
    if found.dtype.kind not in "fiub":
        raise InputError(f"{str(path)!r} must hold one probability for each point. Got dtype {found.dtype}.")
    return np.asarray(found, dtype=np.float64)


def find_source(
    name: str,
    *,
    positive: tuple[str, ...],
    task: str | None,
    edition: str | None,
    part: str | None,
    folder: Path | None,
) -> Source:
    """Return the data set called ``name``; if there is none, ``name`` must be a file."""
    from usimul.datasets import RECORDS, load_dataset
    from usimul.validation import InputError

    if name not in RECORDS:
        if not Path(name).is_file():
            raise InputError(_neither(name, RECORDS))
        for option, value in {"task": task, "edition": edition, "part": part, "folder": folder}.items():
            if value is not None:
                raise InputError(f"--{option} belongs to data sets, but {name!r} is a file of labels; leave it out.")
        return Source(name)
    if positive:
        raise InputError("--positive belongs to files of labels; choose the classes of a data set with --task.")
    data = load_dataset(name, task=task, edition=edition, folder=folder)
    return Source(name, data, part or "train", edition)


def _neither(name: str, known: Any) -> str:
    import difflib

    near = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    return f"{name!r} is neither a file of labels nor a data set (`usimul datasets` lists them).{hint}"
