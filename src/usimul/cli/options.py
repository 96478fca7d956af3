"""Options that several commands share: how points and supervision are read."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

__all__ = ["held_out_option", "points_options", "supervision_options"]

Command = Callable[..., None]

KINDS = (
    "triplets",
    "similar-pairs",
    "dissimilar-pairs",
    "compared-pairs",
    "similarity-confidence",
    "confidence-difference",
    "unlabeled",
    "labels",
    "pair-answers",
    "triplet-answers",
    "unlabeled-sets",
)
"""All kinds of supervision. Named here so that ``--help`` loads nothing; a test compares."""

_POINTS = (
    click.option("--key", help="Name of the array in a .npz file of points. Default: X, or the only one."),
    click.option("--id-column", help="Column of ids in a table of points. Default: id, if there is one."),
    click.option("--ignore", multiple=True, metavar="COLUMN", help="Column that is no feature; repeatable."),
    click.option("--resize", nargs=2, type=int, metavar="HEIGHT WIDTH", help="Bring images to this size."),
    click.option("--mode", type=click.Choice(["grey", "rgb"]), help="Channels of images. Default: grey if all are."),
)
_SUPERVISION = (
    click.option("--kind", type=click.Choice(KINDS), help="Kind of supervision, if a table does not say."),
    click.option("--by", type=click.Choice(["ids", "rows"]), help="What names points in tables. Default: ids, if any."),
    click.option("--world", help="How triplets came about, if a table does not say."),
    click.option(
        "--unlabeled",
        type=click.Choice(["file", "pool"]),
        help="Unlabeled points: those that the file names, or every point of POINTS. Default: file.",
    ),
    click.option("--asked", "n_asked", type=int, help="How many tuples were asked about, if a table does not say."),
    click.option("--accepted", "n_accepted", type=int, help="How many were kept. Default with --asked: all rows."),
)


held_out_option = click.option(
    "--held-out",
    is_flag=True,
    help="The points of the tuples were kept from training, although POINTS is the same pool: no warning of that.",
)


def points_options(command: Command) -> Command:
    """Add the options of reading points; the command gets them as one dictionary, ``reading``."""
    return _gather(command, "reading", _POINTS, ("key", "id_column", "ignore", "resize", "mode"))


def supervision_options(command: Command) -> Command:
    """Add the options of reading supervision; the command gets them as one dictionary, ``about``."""
    return _gather(command, "about", _SUPERVISION, ("kind", "by", "world", "unlabeled", "n_asked", "n_accepted"))


def _gather(command: Command, into: str, options: tuple[Any, ...], names: tuple[str, ...]) -> Command:
    @functools.wraps(command)
    def gathered(*args: Any, **given: Any) -> None:
        return command(*args, **{into: {name: given.pop(name) for name in names}}, **given)

    found: Command = gathered
    for option in reversed(options):
        found = option(found)
    return found
