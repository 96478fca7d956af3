"""``usimul check``: what points and supervision hold, and everything that is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from usimul.cli.options import points_options, supervision_options

if TYPE_CHECKING:
    from usimul.points import Points
    from usimul.supervision import Supervision

FILE = click.Path(path_type=Path)


@click.command()
@click.argument("points", type=click.Path(exists=True, readable=True, path_type=Path))
@click.argument(
    "supervision", required=False, type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
)
@click.option(
    "--prior",
    type=float,
    help="Share of positives: tells whether answers contradict it and, of repeated ones, the share of wrong ones.",
)
@click.option("--wrong-yes", default=0.0, show_default=True, help="Share of wrong yes answers to expect; see --prior.")
@points_options
@supervision_options
@click.option("--output", "-o", type=FILE, help="Also write the points as .npz with ids, or as .npy without.")
@click.option("--supervision-output", type=FILE, help="Also write the supervision: .npz, .parquet, .jsonl or .csv.")
@click.option("--overwrite", is_flag=True, help="Replace existing files.")
def command(
    points: Path,
    supervision: Path | None,
    prior: float | None,
    output: Path | None,
    supervision_output: Path | None,
    overwrite: bool,
    wrong_yes: float,
    reading: dict[str, Any],
    about: dict[str, Any],
) -> None:
    """Look at POINTS, and at SUPERVISION over them; tell what they hold and all problems, by line, row or file.

    POINTS and SUPERVISION may be all that `usimul train` takes. The exit code is 2 if there are problems; nothing is
    written then.
    """
    from usimul.cli.files import SUPERVISION, check_new_file

    if supervision_output is not None and supervision is None:
        raise click.UsageError("--supervision-output needs SUPERVISION.")
    for path, suffixes in ((output, (".npz", ".npy")), (supervision_output, SUPERVISION)):
        if path is not None:
            check_new_file(path, suffixes, overwrite=overwrite)
    _check_rates(prior, wrong_yes)
    pool, wrong = _look_at_points(points, reading)
    sup = None
    if supervision is not None:
        if pool is None:
            click.echo("note: the supervision was not looked at, because its points cannot be read.", err=True)
        else:
            sup, also = _look_at_supervision(supervision, pool, about)
            also = also or (sup is not None and _contradicts(sup, prior, wrong_yes))
            if wrong and also:
                click.echo("note: problems of the supervision may follow from those of the points.", err=True)
            wrong = wrong or also
    if wrong:
        click.get_current_context().exit(2)
    if sup is not None:
        _tell_repeats(sup, prior, wrong_yes)
    click.echo("no problems found")
    if output is not None and pool is not None:
        _write_points(pool, output)
    if supervision_output is not None and sup is not None and pool is not None:
        from usimul.supervision import write_supervision

        nameless = output is not None and output.suffix.lower() == ".npy"
        by_rows = pool.ids is None or nameless or supervision_output.suffix.lower() == ".npz"
        write_supervision(sup, supervision_output, ids=None if by_rows else pool.ids, overwrite=overwrite)
        named = f"row numbers of {points}" if by_rows else "ids"
        click.echo(f"written              {supervision_output}, points named by {named}")


def _look_at_points(path: Path, reading: dict[str, Any]) -> tuple[Points | None, bool]:
    """Print what was found; return it, and whether something is wrong with it."""
    from usimul.points import scan_points
    from usimul.validation import Problems, UsimulError

    problems, pool = Problems(str(path)), None
    try:
        pool = scan_points(path, problems, **reading)
    except (UsimulError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        return None, True
    if pool is not None:
        names = pool.feature_names
        shown = "" if names is None else f": {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
        click.echo(f"points               {len(pool):,}")
        click.echo(f"features             {pool.n_features:,}{shown}")
        if pool.image_shape is not None:
            click.echo("image shape          {} x {} x {}, channels first".format(*pool.image_shape))
        click.echo(f"numbers              {pool.rows.dtype}")
        click.echo(f"ids                  {'none: row numbers' if pool.ids is None else f'such as {pool.ids[0]!r}'}")
    if problems:
        click.echo(f"error: {problems}", err=True)
    return pool, bool(problems)


def _look_at_supervision(path: Path, pool: Points, about: dict[str, Any]) -> tuple[Supervision | None, bool]:
    from usimul.cli.files import read_supervision
    from usimul.supervision import passed_over
    from usimul.validation import UsimulError

    try:
        sup = read_supervision(path, pool, about)
    except (UsimulError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        return None, True
    click.echo(f"kind                 {sup.kind}")
    click.echo(f"tuples               {sup.n_tuples:,}")
    click.echo(f"unlabeled            {sup.n_unlabeled:,}")
    click.echo(f"known labels         {0 if sup.known_rows is None else len(sup.known_rows):,}")
    click.echo(f"world                {sup.world or 'not said'}")
    asked = "not said" if sup.n_asked is None else f"{sup.n_asked:,}, of which {sup.n_accepted:,} were kept"
    click.echo(f"asked                {asked}")
    others = passed_over(path, sup)
    if others:
        click.echo(f"columns not used     {', '.join(others)}")
    return sup, False


def _check_rates(prior: float | None, wrong_yes: float) -> None:
    from usimul.validation import check_prior, check_real

    if prior is not None:
        check_prior(prior)
    check_real(wrong_yes, "wrong_yes", low=0.0, high=1.0)
    if wrong_yes and prior is None:
        raise click.UsageError("--wrong-yes needs --prior: how often answers are flipped depends on both.")


def _tell_repeats(sup: Supervision, prior: float | None, wrong_yes: float) -> None:
    """Say how often the same question was answered differently, for kinds that hold all answers."""
    from usimul.noise import disagreement, estimate_flip_rate, estimate_wrong_yes, repeats
    from usimul.supervision import PairAnswers, TripletAnswers

    if not isinstance(sup, (PairAnswers, TripletAnswers)):
        return
    found = repeats(sup)
    click.echo(f"asked repeatedly     {len(found.sizes):,} questions, {found.n_pairs:,} pairs of answers to compare")
    if not len(found.sizes):
        return
    flips = estimate_flip_rate(sup)
    share = found.n_disagreeing / found.n_pairs
    click.echo(f"disagreeing          {found.n_disagreeing:,} pairs, a share of {share:.3f}")
    click.echo(f"answers flipped      {flips.value:.3f}   95% interval {flips.low:.3f} to {flips.high:.3f}")
    if prior is not None:
        wrong = estimate_wrong_yes(sup, prior)
        click.echo(f"wrong yes answers    {wrong.value:.3f}   95% interval {wrong.low:.3f} to {wrong.high:.3f}")
    words = disagreement(sup, prior, wrong_yes)
    if words is not None:
        click.echo(f"warning: {words}", err=True)


def _contradicts(sup: Supervision, prior: float | None, wrong_yes: float) -> bool:
    """Say whether the answers contradict a stated prior, as training would."""
    from usimul.class_prior import prior_conflict
    from usimul.validation import check_prior

    conflict = None if prior is None else prior_conflict(sup, check_prior(prior), wrong_yes)
    if conflict is not None:
        click.echo(
            f"{'error' if conflict.counted else 'warning'}: prior {prior:g} contradicts them: {conflict}", err=True
        )
    return conflict is not None and conflict.counted


def _write_points(pool: Points, output: Path) -> None:
    from usimul.cli.files import whole_file
    from usimul.points import write_array_file

    with whole_file(output) as handle:
        write_array_file(pool, handle, output.suffix.lower())
    lost = ", without the ids" if output.suffix.lower() == ".npy" and pool.ids is not None else ""
    click.echo(f"written              {output}{lost}")
