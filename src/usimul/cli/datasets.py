"""``usimul datasets``: sets that are known by name."""

from __future__ import annotations

from pathlib import Path

import click

FOLDER = click.Path(file_okay=False, path_type=Path)


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List the data sets that are known by name, or get one."""
    if ctx.invoked_subcommand is None:
        _list()


def _list() -> None:
    from usimul.datasets import RECORDS

    for record in RECORDS.values():
        where = "files needed" if record.needs_files else "built in"
        click.echo(f"{record.name:<15} {where:<13} {record.summary}")


@command.command("list")
def list_() -> None:
    """List the data sets."""
    _list()


@command.command("get")
@click.argument("name")
@click.option("--folder", type=FOLDER, help="Data folder. Default: $USIMUL_DATA, else the cache folder.")
@click.option("--base-url", help="Fetch from this address instead of the set's own.")
@click.option("--arrays", type=FOLDER, help="Also write X_train.npy, y_train.npy, X_test.npy, y_test.npy there.")
def get(name: str, folder: Path | None, base_url: str | None, arrays: Path | None) -> None:
    """Fetch the files of the set NAME (with checksums), and describe it.

    This is the only command that uses the network, and only if the files are not there yet.
    """
    from usimul.datasets import load_dataset

    data = load_dataset(name, folder=folder, download=True, base_url=base_url)
    click.echo(data.describe())
    if arrays is None:
        return
    import numpy as np

    from usimul.cli.files import check_new_file, whole_file

    arrays.mkdir(parents=True, exist_ok=True)
    parts = {part: arrays / f"{part}.npy" for part in ("X_train", "y_train", "X_test", "y_test")}
    for path in parts.values():
        check_new_file(path, (".npy",), overwrite=False)
    for part, path in parts.items():
        with whole_file(path) as handle:
            np.save(handle, getattr(data, part), allow_pickle=False)
    click.echo(f"arrays: {', '.join(p.name for p in parts.values())} in {arrays}")
