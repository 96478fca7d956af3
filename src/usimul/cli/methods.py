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
    head = ("method", "learns from", "unbiased for", "at 1/2", "unlabeled")
    rows = [
        (
            m.name,
            m.supervision.__name__,
            _worlds(m),
            "yes" if m.defined_at_half else "no",
            "needed" if m.needs_unlabeled else "optional" if m.supervision.width > 1 else "-",
        )
        for m in list_methods()
    ]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    click.echo("  ".join(cell.ljust(w) for cell, w in zip(head, widths, strict=True)).rstrip())
    for method, row in zip(list_methods(), rows, strict=True):
        click.echo("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())
        click.echo(f"    {method.summary}")
    click.echo("\nunbiased for: worlds where the uncorrected risk is unbiased; D definition1, P pair_plus_unlabeled.")
    click.echo("at 1/2: whether the method is defined at prior 0.5.   `usimul methods NAME` explains one.")


def _worlds(method: Method) -> str:
    short = {"definition1": "D", "pair_plus_unlabeled": "P", "release": "R", "": "yes"}
    return " ".join(short.get(w, w) for w in method.unbiased) or "-"


def _explain(method: Method) -> None:
    yes = {True: "yes", False: "no"}
    recipe = method.recipe
    worlds = ", ".join(w or "its own data" for w in method.unbiased) or "none"
    steps = f", at least {recipe.min_steps} steps" if recipe.min_steps else ""
    click.echo(f"{method.name}: {method.summary}\n")
    for label, value in (
        ("risk", method.formula),
        ("learns from", method.supervision.__name__),
        ("unbiased for", worlds),
        ("defined at prior 1/2", yes[method.defined_at_half]),
        ("needs the prior", yes[method.needs_prior]),
        ("needs unlabeled", yes[method.needs_unlabeled]),
        ("models probability", yes[method.probability]),
        ("loss", recipe.loss),
        ("recipe", f"{recipe.epochs} epochs{steps}, batch {recipe.batch_size}, {recipe.optimizer}, lr {recipe.lr:g}"),
        ("options", ", ".join(f"{k}={v}" for k, v in method.options.items()) or "none"),
        ("reference", str(method.paper) if method.paper else "usimul (this library)"),
    ):
        click.echo(f"{label:<22}{value}")
    click.echo(f"\n{method.doc}")
