"""``usimul sample``: a supervision file drawn from labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

KINDS = (
    "triplets",
    "similar-pairs",
    "dissimilar-pairs",
    "pair-answers",
    "compared-pairs",
    "triplet-answers",
    "unlabeled-sets",
    "unlabeled",
    "labels",
)
"""Kinds that labels are enough for. Named here so that ``--help`` loads nothing; a test compares."""


@click.command()
@click.argument("labels", type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path))
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="Supervision file to make (.npz).")
@click.option("--n", "n", required=True, type=int, help="Number of tuples.")
@click.option("--unlabeled", "n_unlabeled", default=0, show_default=True, help="Number of unlabeled points.")
@click.option("--kind", type=click.Choice(KINDS), default="triplets", show_default=True, help="Which answers.")
@click.option("--prior", type=float, help="Share of positives to draw with. Default: the share in LABELS.")
@click.option("--world", default="definition1", show_default=True, help="How triplets come about.")
@click.option("--release-shares", nargs=2, type=float, help="Shares of positives, for --world release.")
@click.option("--positive", multiple=True, help="Label that counts as +1; repeatable. All others count as -1.")
@click.option("--replace/--no-replace", default=True, show_default=True, help="Whether a point may occur again.")
@click.option("--seed", default=0, show_default=True, help="Same seed, same draw.")
@click.option("--key", help="Name of the array in a .npz file of labels.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
def command(
    labels: Path,
    output: Path,
    n: int,
    n_unlabeled: int,
    kind: str,
    prior: float | None,
    world: str,
    release_shares: tuple[float, float] | None,
    positive: tuple[str, ...],
    replace: bool,
    seed: int,
    key: str | None,
    overwrite: bool,
) -> None:
    """Draw tuples from LABELS (.npy, +1 and -1), as an honest annotator would answer, and write a supervision file.

    The file holds row numbers and no labels, unless --kind labels asks for them.
    """
    import inspect

    from usimul import sampling
    from usimul.cli.files import check_new_file, read_labels
    from usimul.supervision import Supervision
    from usimul.validation import InputError, check_labels

    check_new_file(output, (".npz",), overwrite=overwrite)
    y = read_labels(labels, key)
    if positive:
        import numpy as np

        names = y.astype(str)
        unknown = sorted(set(positive) - set(names.tolist()))
        if unknown:
            raise InputError(
                f"--positive must name labels that occur in {str(labels)!r}. Got {unknown[0]!r}; "
                f"the labels are: {_listed(names)}. Write one as it stands there."
            )
        y = np.where(np.isin(names, positive), 1, -1)
    else:
        check_labels(y, str(labels), remedy=f"Say which count as +1: --positive LABEL; the labels are: {_listed(y)}.")
    sampler = getattr(sampling, Supervision.kinds()[kind].sampler)
    given: dict[str, Any] = {"n_unlabeled": n_unlabeled or None, "release_shares": release_shares or None}
    given["world"] = world if world != "definition1" else None
    given = {name: value for name, value in given.items() if value is not None}
    for name in given:
        if name not in inspect.signature(sampler).parameters:
            option = "unlabeled" if name == "n_unlabeled" else name.replace("_", "-")
            raise InputError(f"--{option} does not belong to --kind {kind}; leave it out.")
    sup: Supervision = sampler(y, n, prior=prior, replace=replace, random_state=seed, **given)
    sup.save(output, overwrite=overwrite)
    click.echo(f"{sup!r} in {output}")


def _listed(labels: Any) -> str:
    """Return some of the different labels, as --positive takes them."""
    import numpy as np

    found = [str(label) for label in np.unique(labels)]
    return ", ".join(found[:20]) + (", ..." if len(found) > 20 else "")
