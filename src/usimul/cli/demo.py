"""``usimul demo``: the whole way on embedded data, in about a minute."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from usimul.experiments.demo import DemoResult


@click.command()
@click.option("--seed", default=0, show_default=True, help="Seed of all draws and trainings.")
@click.option("--prior", default=0.4, show_default=True, help="Share of positives, not 0.5.")
@click.option(
    "--report",
    default="usimul-demo.html",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="HTML page to write; an older one is replaced.",
)
@click.option("--quick", is_flag=True, help="Few triplets and few steps: shows that it runs, not how good it is.")
def command(seed: int, prior: float, report: Path, quick: bool) -> None:
    """Draw triplets from handwritten digits, train four methods on the same budget, and compare them."""
    from usimul.cli.files import check_new_file, whole_file

    check_new_file(report, (".html", ".htm"), overwrite=True)

    from usimul.cli.progress import EpochBar
    from usimul.experiments.demo import FULL, QUICK, run_demo
    from usimul.experiments.report import render_demo

    sizes = QUICK if quick else FULL
    click.echo(
        f"{sizes.n_triplets:,} triplets of handwritten digits, each with the answer that the first\n"
        f"belongs with at least one of the others, and {sizes.n_unlabeled:,} unlabeled digits: even or odd?\n"
    )
    with EpochBar() as bar:
        result = run_demo(prior=prior, seed=seed, sizes=sizes, progress=bar)
    with whole_file(report, "w") as handle:
        handle.write(render_demo(result))
    _print(result)
    click.echo(f"\nCurves and settings: {report}")


def _print(result: DemoResult) -> None:
    click.echo(f"{'method':<17} {'':<29} {'test':>8}  {'without labels':>14} {'sec':>6}")
    click.echo(f"{'':<17} {'':<29} {'accuracy':>8}  {'estimate':>14}")
    click.echo("-" * 78)
    for row in result.rows:
        estimate = f"{1 - row.label_free.value:.3f} +- {row.label_free.standard_error:.3f}"
        mark = "*" if row.constant else " "
        click.echo(
            f"{row.method:<17} {row.explained:<29} {row.accuracy:>8.3f} {estimate:>14}{mark} {row.seconds:>6.1f}"
        )
    click.echo("-" * 78)
    _paragraph(
        "Both numbers are of the same test points, none of which was trained on: the estimate from triplets of them, "
        "without a label."
    )
    if any(row.constant for row in result.rows):
        _paragraph("* one class for all points: the estimate is then that class's share, which the prior gives.")
    for row in result.rows:
        for note in row.notes:
            _paragraph(f"note: {note}")
        if row.restarts:
            _paragraph(f"note: {row.method} was stuck on a plateau and started again {row.restarts} times.")
    click.echo()
    _paragraph(" ".join(result.why))


def _paragraph(text: str) -> None:
    click.echo(textwrap.fill(text, 78))
