r"""A project in one file, ``usimul.toml``: points, supervision, prior, training, judging, output.

The file is read whole and checked before anything is done with it: unknown keys, wrong types and values that contradict
each other become one error. Paths in it are relative to the folder of the file.

Examples
--------
>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     file = Path(folder) / "usimul.toml"
...     _ = file.write_text('[points]\npath = "points.csv"\n[prior]\nvalue = 0.4\n')
...     project = read_project(file)
>>> project.get("prior", "value"), project.get("training", "method")
(0.4, None)
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from usimul.files import parsing
from usimul.validation import InputError, Problems, check_prior, nearest

__all__ = ["SECTIONS", "Key", "Project", "project_text", "read_project"]

SIDES = ("minority", "majority")
ESTIMATES = ("auto", "acceptance", "likelihood")


@dataclass(frozen=True)
class Key:
    """One key of the file: what it may hold, an example in TOML, and a comment.

    Parameters
    ----------
    kinds
        Types that a value may have.
    example
        How `project_text` shows it.
    words
        The comment behind it.
    path
        Whether it names a file or folder, relative to the folder of the project.
    choices
        The words that it may be, if they are few.
    """

    kinds: tuple[type, ...]
    example: str
    words: str
    path: bool = False
    choices: tuple[str, ...] = ()


_TEXT, _WHOLE, _NUMBER = (str,), (int,), (int, float)

SECTIONS: dict[str, dict[str, Key]] = {
    "points": {
        "path": Key(_TEXT, '"points.csv"', "array, table, folder or .zip of images", path=True),
        "key": Key(_TEXT, '"X"', "name of the array in a .npz file"),
        "id_column": Key(_TEXT, '"id"', "column of ids in a table"),
        "ignore": Key((list,), '["name"]', "columns that are no features"),
        "resize": Key((list,), "[28, 28]", "height and width to bring images to"),
        "mode": Key(_TEXT, '"grey"', "channels of images", choices=("grey", "rgb")),
    },
    "supervision": {
        "path": Key(_TEXT, '"answers.csv"', "the answers: .npz, or a table with one tuple a row", path=True),
        "kind": Key(_TEXT, '"triplets"', "if the file does not say"),
        "by": Key(_TEXT, '"ids"', "what names points", choices=("ids", "rows")),
        "world": Key(_TEXT, '"definition1"', "how triplets came about, if the file does not say"),
        "unlabeled": Key(
            _TEXT, '"pool"', "unlabeled points: those the file names, or all of the pool", choices=("file", "pool")
        ),
        "wrong_yes": Key(_NUMBER, "0.05", "share of wrong answers among those kept, to correct for"),
        "asked": Key(_WHOLE, "4000", "questions asked, yes and no together; checks and estimates the prior"),
        "accepted": Key(_WHOLE, "3000", "how many of them were kept; default: all rows"),
    },
    "prior": {
        "value": Key(_NUMBER, "0.4", "share of positives, if it is known"),
        "estimate": Key(_TEXT, '"auto"', "else: how to estimate it", choices=ESTIMATES),
        "side": Key(
            _TEXT, '"minority"', "which side of 1/2 an estimate takes: positives are rarer or commoner", choices=SIDES
        ),
    },
    "training": {
        "method": Key(_TEXT, '"joint"', "see `usimul methods`; auto lets the data decide"),
        "model": Key(_TEXT, '"mlp"', "network; auto chooses between two MLPs"),
        "epochs": Key(_WHOLE, "60", "default: the method's recipe"),
        "batch_size": Key(_WHOLE, "256", "tuples in one step"),
        "lr": Key(_NUMBER, "0.001", "learning rate"),
        "loss": Key(_TEXT, '"logistic"', "default: the method's own"),
        "selection": Key(_TEXT, '"last"', "epoch that is kept", choices=("last", "label-free")),
        "patience": Key(_WHOLE, "10", "with label-free: epochs without improvement before it stops"),
        "scaling": Key(_TEXT, '"auto"', "of features", choices=("auto", "feature", "global", "none")),
        "prior_check": Key(_TEXT, '"error"', "if the answers contradict it", choices=("error", "warn", "ignore")),
        "image_shape": Key((list,), "[1, 28, 28]", "channels, height, width of flat rows"),
        "seed": Key(_WHOLE, "0", "same seed, same machine: same bits"),
        "device": Key(_TEXT, '"cpu"', "torch device"),
        "options": Key((dict,), "{ refine = true }", "options of the method"),
    },
    "judging": {
        "held_out": Key(_NUMBER, "0.2", "share of the points kept from training, to estimate the error on; 0: none"),
        "points": Key(_TEXT, '"new.csv"', "points to judge on instead", path=True),
        "supervision": Key(_TEXT, '"new_answers.csv"', "answers over them", path=True),
        "labels": Key(_TEXT, '"new_labels.csv"', "labels of them, if there are some", path=True),
    },
    "output": {
        "folder": Key(_TEXT, '"run"', "where `usimul run` leaves model, report, predictions, log", path=True),
        "predictions": Key(_TEXT, '"predictions.csv"', "name of the file of predictions: .csv, .npy, .parquet"),
    },
}
"""All keys by section, in the order of the commented file."""

PREDICTIONS = (".csv", ".parquet", ".pq", ".npy")
LEAST: dict[tuple[str, str], tuple[int, str]] = {
    ("supervision", "asked"): (1, "at least 1"),
    ("supervision", "accepted"): (1, "at least 1"),
    ("training", "epochs"): (1, "at least 1"),
    ("training", "batch_size"): (1, "at least 1"),
    ("training", "patience"): (1, "at least 1"),
    ("training", "seed"): (0, "at least 0"),
}

SHOWN = {
    ("supervision", "unlabeled"),
    ("training", "method"),
    ("training", "model"),
    ("training", "seed"),
    ("judging", "held_out"),
    ("output", "folder"),
    ("output", "predictions"),
}
"""Keys that stand in a new file without the mark of a comment; of the prior, it depends on what is known."""


@dataclass(frozen=True)
class Project:
    """What a project file says.

    Parameters
    ----------
    path
        The file.
    given
        Its values by section and key, checked; paths made complete.
    """

    path: Path
    given: dict[str, dict[str, Any]] = field(default_factory=dict)

    def get(self, section: str, key: str, default: Any = None) -> Any:
        """Return a value, or ``default`` if the file does not have it."""
        return self.given.get(section, {}).get(key, default)

    def need(self, section: str, key: str) -> Any:
        """Return a value that must be there."""
        if self.get(section, key) is None:
            raise InputError(
                f"{str(self.path)!r} must have `{key}` in [{section}], such as "
                f"{key} = {SECTIONS[section][key].example}."
            )
        return self.get(section, key)

    @property
    def folder(self) -> Path:
        """Where `usimul run` leaves what it makes."""
        return Path(self.get("output", "folder", self.path.parent / "run"))


def read_project(path: str | os.PathLike[str]) -> Project:
    """Read and check a project file; all that is wrong with it is told at once."""
    file = Path(path)
    with parsing(file, "TOML file", "`usimul init` writes a new one."):
        found = tomllib.loads(file.read_bytes().decode("utf-8-sig"))
    problems = Problems(str(file))
    given: dict[str, dict[str, Any]] = {}
    for section, values in found.items():
        if section not in SECTIONS:
            _unknown(problems, f"[{section}]" if isinstance(values, dict) else section, section, SECTIONS)
        elif not isinstance(values, dict):
            problems.add("Sections are written in square brackets", f"{section!r} is a value")
        else:
            given[section] = {
                key: _value(problems, file.parent, section, key, value)
                for key, value in values.items()
                if key in SECTIONS[section] or _unknown(problems, f"[{section}] {key}", key, SECTIONS[section])
            }
    if not problems:
        _check(problems, given)
    problems.refuse()
    return Project(file, given)


def _unknown(problems: Problems, shown: str, name: str, known: dict[str, Any]) -> bool:
    """Note an unknown name; a key that stands in the wrong section is told where it belongs."""
    homes = [section for section, keys in SECTIONS.items() if name in keys and known is not SECTIONS]
    hint = f"; it belongs in [{'] or ['.join(homes)}]" if homes else nearest(name, known, aside=True)
    problems.add("Only known keys are allowed", f"{shown} is unknown{hint}", advice="`usimul init --keys` lists all.")
    return False


def _value(problems: Problems, folder: Path, section: str, key: str, value: Any) -> Any:
    """Check one value; return it as commands take it."""
    about = SECTIONS[section][key]
    where = f"[{section}] {key}"
    if isinstance(value, bool) or not isinstance(value, about.kinds):
        kinds = " or ".join(
            {"str": "text", "int": "a whole number", "float": "a number", "list": "a list", "dict": "a table"}[
                k.__name__
            ]
            for k in about.kinds
        )
        problems.add("Values must be of the right kind", f"{where} must be {kinds}, and is {value!r}")
    elif about.choices and value not in about.choices:
        problems.add(
            "Values must be among those that exist",
            f"{where} must be one of {', '.join(about.choices)}, and is {value!r}",
        )
    elif about.path and isinstance(value, str):
        return folder / Path(value).expanduser()
    return value


def _check(problems: Problems, given: dict[str, dict[str, Any]]) -> None:
    """Note values that are of the right kind and yet cannot be, alone or together."""
    prior, judging = given.get("prior", {}), given.get("judging", {})
    if "value" in prior:
        try:
            check_prior(prior["value"])
        except InputError as error:
            problems.add("[prior] value must be a share", str(error).rstrip("."))
        for key in ("estimate", "side"):
            if key in prior:
                problems.add(
                    "The prior is either given or estimated",
                    f"[prior] has both `value` and `{key}`",
                    advice="Keep `value` if you know the share of positives, else `estimate` and `side`.",
                )
    if "estimate" in prior and "side" not in prior:
        problems.add(
            "An estimated prior needs a side, because answers fit p as well as 1 - p",
            "[prior] has `estimate` without `side`",
            advice='Say side = "minority" if the positives are the rarer class, "majority" if the commoner.',
        )
    if "side" in prior and "estimate" not in prior and "value" not in prior:
        problems.add("[prior] side is of an estimate", "[prior] has `side` without `estimate`")
    if given.get("supervision", {}).get("wrong_yes") and "estimate" in prior:
        problems.add(
            "An estimate of the prior takes the answers to be right",
            "[supervision] has `wrong_yes` and [prior] has `estimate`",
            advice="State the prior.",
        )
    _check_numbers(problems, given)
    held_out = judging.get("held_out", 0)
    if not 0 <= held_out <= 0.5:
        problems.add("[judging] held_out must be a share between 0 and 0.5", f"It is {held_out}")
    if ("supervision" in judging or "labels" in judging) and "points" not in judging:
        problems.add("[judging] supervision and labels are about [judging] points", "`points` is missing")
    if "points" in judging and not ("supervision" in judging or "labels" in judging):
        problems.add("[judging] points need answers or labels to judge by", "`supervision` or `labels` is missing")
    if "points" in judging and held_out:
        problems.add(
            "The error is judged on points held out or on other points",
            "[judging] has both `held_out` and `points`",
            advice="Drop one of them.",
        )
    name = given.get("output", {}).get("predictions")
    if isinstance(name, str) and Path(name).name != name:
        problems.add("[output] predictions is the name of a file in the output folder", f"It is {name!r}")
    elif isinstance(name, str) and Path(name).suffix.lower() not in PREDICTIONS:
        problems.add(f"[output] predictions must end in {', '.join(PREDICTIONS)}", f"It is {name!r}")


def _check_numbers(problems: Problems, given: dict[str, dict[str, Any]]) -> None:
    """Note numbers out of range, and lists of the wrong length."""
    for (section, key), (low, words) in LEAST.items():
        value = given.get(section, {}).get(key)
        if value is not None and not value >= low:
            problems.add("Numbers must be in range", f"[{section}] {key} must be {words}, and is {value}")
    rate, share = given.get("training", {}).get("lr"), given.get("supervision", {}).get("wrong_yes")
    if rate is not None and not rate > 0:
        problems.add("Numbers must be in range", f"[training] lr must be above 0, and is {rate}")
    if share is not None and not 0 <= share < 1:
        problems.add("Numbers must be in range", f"[supervision] wrong_yes must be a share below 1, and is {share}")
    for section, key, length in (("points", "resize", 2), ("training", "image_shape", 3)):
        sides = given.get(section, {}).get(key)
        if sides is not None and not (len(sides) == length and all(type(side) is int and side > 0 for side in sides)):
            problems.add("Sizes are whole numbers", f"[{section}] {key} must be {length} of them, and is {sides}")
    ignored = given.get("points", {}).get("ignore", [])
    if not all(isinstance(name, str) for name in ignored):
        problems.add("Columns have names", f"[points] ignore must be a list of text, and is {ignored}")


def project_text(values: dict[tuple[str, str], str] | None = None, notes: tuple[str, ...] = ()) -> str:
    """Return a commented project file, with ``values`` (in TOML) in place of the examples.

    >>> text = project_text({("prior", "value"): "0.3"})
    >>> [line.split("  ")[0] for line in text.splitlines() if "share of positives" in line]
    ['value = 0.3']
    """
    values = values or {}
    lines = [
        "# A usimul project. Every command called in this folder reads it; options on the command line override it.",
        "# `usimul run` does the whole way: check, prior, training, judging, predictions, report.",
        "# Paths are relative to this file. Lines that begin with # are not in force.",
        *(f"# {note}" for note in notes),
    ]
    for section, keys in SECTIONS.items():
        lines += ["", f"[{section}]"]
        for name, key in keys.items():
            inforce = (section, name) in values or ((section, name) in SHOWN and not _instead(section, name, values))
            text = f"{'' if inforce else '# '}{name} = {values.get((section, name), key.example)}"
            lines.append(f"{text:<38} # {key.words}")
    return "\n".join(lines) + "\n"


def _instead(section: str, name: str, values: dict[tuple[str, str], str]) -> bool:
    """Whether another value takes the place of a key that is shown by default."""
    return (section, name) == ("judging", "held_out") and ("judging", "points") in values
