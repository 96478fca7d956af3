"""``usimul methods``: what can be trained with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from usimul.methods.base import Method


@click.command()
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List all methods, or explain the one called NAME."""
    from usimul.methods import get_method, list_methods

    if name is not None:
        _explain(get_method(name))
        return
    methods = list_methods()
    head = ("method", "learns from", "unbiased", "at 1/2", "unlabeled", "given")
    rows = [
        (
            m.name,
            m.supervision.__name__,
            _worlds(m),
            "yes" if m.defined_at_half else "no",
            "needed" if m.needs_unlabeled else "optional" if m.uses_unlabeled else "-",
            "confid." if m.needs_confidences else "-",
        )
        for m in methods
    ]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    click.echo("  ".join(cell.ljust(w) for cell, w in zip(head, widths, strict=True)).rstrip())
    for method, row in zip(methods, rows, strict=True):
        click.echo("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())
        click.echo(f"    {method.summary} [{_source(method)}]")
    click.echo("\nunbiased: the risk before its correction, in its own data, or in worlds: D definition1,")
    click.echo("P pair_plus_unlabeled. Methods with abs, relu or nn correct the parts of this risk, which biases it.")
    click.echo("at 1/2: defined at prior 0.5.  given: confidences come with each tuple.")
    click.echo("`usimul methods NAME` explains one.")


def _worlds(method: Method) -> str:
    short = {"definition1": "D", "pair_plus_unlabeled": "P", "release": "R", "": "yes"}
    return " ".join(short.get(w, w) for w in method.unbiased) or "-"


def _source(method: Method) -> str:
    if method.paper is None:
        return "ours" if method.needs_prior else "reference"
    return f"{method.paper.authors.split(',')[0]} {method.paper.year}"


def _explain(method: Method) -> None:
    yes = {True: "yes", False: "no"}
    recipe = method.recipe
    worlds = ", ".join(w or "its own data" for w in method.unbiased) or "none"
    steps = f", at least {recipe.min_steps} steps" if recipe.min_steps else ""
    click.echo(f"{method.name}: {method.summary}\n")
    correction = getattr(method, "correction", "none")
    corrected = correction != "none"
    for label, value in (
        ("risk, uncorrected" if corrected else "risk", method.formula),
        *([("correction", f"{correction}, as the first line says; it biases the risk")] if corrected else []),
        ("learns from", method.supervision.__name__),
        ("uncorrected unbiased" if corrected else "unbiased for", worlds),
        ("defined at prior 1/2", yes[method.defined_at_half]),
        ("needs the prior", yes[method.needs_prior]),
        (
            "unlabeled points",
            "needed" if method.needs_unlabeled else "optional" if method.uses_unlabeled else "not used",
        ),
        ("needs confidences", yes[method.needs_confidences]),
        ("wrong yes answers", "corrected for (wrong_yes)" if method.corrects_wrong_yes else "not corrected for"),
        ("models probability", yes[method.probability]),
        ("loss", recipe.loss),
        ("recipe", f"{recipe.epochs} epochs{steps}, batch {recipe.batch_size}, {recipe.optimizer}, lr {recipe.lr:g}"),
        ("options", ", ".join(f"{k}={v}" for k, v in method.options.items()) or "none"),
        ("reference", str(method.paper) if method.paper else "usimul (this library)"),
    ):
        click.echo(f"{label:<22}{value}")
    click.echo(f"\n{method.doc}")
