"""``usimul sample``: a supervision file drawn from labels, of a file or of a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from usimul.cli.labels import source_options

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

CONFIDENCES = ("similarity-confidence", "confidence-difference")
"""Kinds that need the posterior as well."""


@click.command()
@click.argument("labels", metavar="SOURCE")
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(path_type=Path),
    help="Supervision file to make: .npz, .parquet, .jsonl or .csv.",
)
@click.option("--n", "n", required=True, type=int, help="Number of tuples.")
@click.option("--unlabeled", "n_unlabeled", default=0, show_default=True, help="Number of unlabeled points.")
@click.option(
    "--kind", type=click.Choice(KINDS + CONFIDENCES), default="triplets", show_default=True, help="Which answers."
)
@click.option("--prior", type=float, help="Share of positives to draw with. Default: the share in SOURCE.")
@click.option("--world", default="definition1", show_default=True, help="How triplets come about.")
@click.option("--release-shares", nargs=2, type=float, help="Shares of positives, for --world release.")
@click.option("--wrong-yes", type=float, help="Share of wrong yes answers, in expectation. Default: 0.")
@click.option("--positive", multiple=True, help="Label that counts as +1; repeatable. All others count as -1.")
@click.option("--replace/--no-replace", default=True, show_default=True, help="Whether a point may occur again.")
@click.option("--seed", default=0, show_default=True, help="Same seed, same draw.")
@click.option("--key", help="Name of the array in a .npz file of labels.")
@click.option("--column", help="Column of labels in a table. Default: label, or the only one.")
@click.option("--id-column", help="Column of ids in a table of labels. Default: id, if there is one.")
@click.option(
    "--by",
    type=click.Choice(["ids", "rows"]),
    help="What names points in the output. Default: ids, if SOURCE has some; rows are those of SOURCE.",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@source_options
def command(
    labels: str,
    output: Path,
    n: int,
    n_unlabeled: int,
    kind: str,
    prior: float | None,
    world: str,
    release_shares: tuple[float, float] | None,
    wrong_yes: float | None,
    positive: tuple[str, ...],
    replace: bool,
    seed: int,
    key: str | None,
    column: str | None,
    id_column: str | None,
    by: str | None,
    overwrite: bool,
    posterior: str | None,
    **of_sets: Any,
) -> None:
    """Draw tuples from SOURCE, as an honest annotator would answer, and write a supervision file.

    SOURCE is a file of labels (+1 and -1), .npy, .npz, or a table (.csv, .parquet, .jsonl), or the name of a data set;
    rows then refer to its training part. The output holds no labels, unless --kind labels asks for them. It names
    points by ids if SOURCE has some, else by row numbers. Ids need a table as output: a .npz file holds row numbers.
    """
    import inspect

    from usimul import sampling
    from usimul.cli.files import SUPERVISION, check_new_file, read_labels
    from usimul.cli.labels import find_source
    from usimul.supervision import Supervision, write_supervision
    from usimul.validation import InputError, check_labels

    check_new_file(output, SUPERVISION, overwrite=overwrite)
    source = find_source(labels, positive=positive, **of_sets)
    if source.data is None:
        y, ids = read_labels(Path(labels), key=key, column=column, id_column=id_column)
    else:
        y, ids = source.y, None
    ids = _names(labels, ids, output, by)
    if positive:
        import numpy as np

        names = y.astype(str)
        unknown = sorted(set(positive) - set(names.tolist()))
        if unknown:
            raise InputError(
                f"--positive must name labels that occur in {labels!r}. Got {unknown[0]!r}; "
                f"the labels are: {_listed(names)}. Write one as it stands there."
            )
        y = np.where(np.isin(names, positive), 1, -1)
    else:
        check_labels(y, str(labels), remedy=f"Say which count as +1: --positive LABEL; the labels are: {_listed(y)}.")
    sampler = getattr(sampling, Supervision.kinds()[kind].sampler)
    given: dict[str, Any] = {"n_unlabeled": n_unlabeled or None, "release_shares": release_shares or None}
    given["world"] = world if world != "definition1" else None
    given["posterior"] = posterior
    given["wrong_yes"] = wrong_yes or None
    given = {name: value for name, value in given.items() if value is not None}
    takes = inspect.signature(sampler).parameters
    for name in given:
        if name not in takes:
            option = "unlabeled" if name == "n_unlabeled" else name.replace("_", "-")
            raise InputError(f"--{option} does not belong to --kind {kind}; leave it out.")
    if "posterior" in takes:
        given["posterior"] = source.posterior(posterior, prior, seed)
    sup: Supervision = sampler(y, n, prior=prior, replace=replace, random_state=seed, **given)
    write_supervision(sup, output, ids=ids, overwrite=overwrite)
    click.echo(f"{sup!r} in {output}")
    if by == "rows" and source.data is None:
        click.echo(f"points named by row numbers of {labels}")
    if source.origin:
        click.echo(source.origin)


def _names(labels: str, ids: tuple[str, ...] | None, output: Path, by: str | None) -> tuple[str, ...] | None:
    """Return the ids to write, or None for row numbers, which belong to points in the order of the labels only."""
    from usimul.validation import InputError

    if by == "ids" and ids is None:
        raise InputError(f"--by ids needs ids beside the labels. {labels!r} has none; leave it out.")
    if by != "rows" and ids is not None and output.suffix.lower() == ".npz":
        raise InputError(
            f"{labels!r} names its points by ids, but {str(output)!r} can hold row numbers only. Write a table "
            "(.csv, .parquet, .jsonl), or pass --by rows if the points stand in the order of these labels."
        )
    return None if by == "rows" else ids


def _listed(labels: Any) -> str:
    """Return some of the different labels, as --positive takes them."""
    import numpy as np

    found = [str(label) for label in np.unique(labels)]
    return ", ".join(found[:20]) + (", ..." if len(found) > 20 else "")
