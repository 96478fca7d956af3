"""``usimul datasets``: sets that are known by name."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from usimul.datasets import Dataset, DatasetRecord
    from usimul.datasets.state import Copy

FOLDER = click.Path(file_okay=False, path_type=Path)
WIDTH = 80

folder_option = click.option("--folder", type=FOLDER, help="Data folder. Default: $USIMUL_DATA, else the cache folder.")
task_option = click.option("--task", help="Which classes count as +1 and -1. Default: the set's first task.")
edition_option = click.option("--edition", help="Which form of the files. Default: the first that is there.")


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List the data sets that are known by name, or get one."""
    if ctx.invoked_subcommand is None:
        _list(None)


@command.command("list")
@folder_option
def list_(folder: Path | None) -> None:
    """List the data sets: how each is had, whether it is here, its tasks. Looks at names of files only."""
    _list(folder)


def _list(folder: Path | None) -> None:
    from usimul.datasets import RECORDS
    from usimul.datasets.state import presence

    rows = [("name", "had", "now", "tasks")]
    rows += [
        (record.name, _how(record), presence(record, folder), ", ".join(task.name for task in record.tasks) or "-")
        for record in RECORDS.values()
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths[-1] = 0
    for number, row in enumerate(rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(_wrapped(line, sum(widths) + 2 * (len(widths) - 1)))
        if number:
            click.echo(_wrapped(f"  {RECORDS[row[0]].summary}", 4))
    click.echo("\nnow: here; part (of the set); incomplete (files are missing); missing.")
    click.echo("`usimul datasets describe NAME` and `usimul datasets status` say more.")


def _how(record: DatasetRecord) -> str:
    if not record.needs_files:
        return "drawn" if record.make else "built in"
    return "fetched" if any(edition.can_be_fetched for edition in record.editions) else "by hand"


def _wrapped(line: str, indent: int) -> str:
    return textwrap.fill(
        line, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False, tabsize=1
    )


@command.command("status")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@folder_option
@click.option("--verify", is_flag=True, help="Compare every file with its SHA-256; exit code 1 if one is damaged.")
def status(names: tuple[str, ...], folder: Path | None, verify: bool) -> None:
    """Say which editions of the sets lie in which folder. Without a NAME: of all sets that need files."""
    from usimul.datasets import RECORDS, get_record
    from usimul.datasets.download import data_roots, how_to_get
    from usimul.datasets.state import copies

    records = [get_record(name) for name in names] or [r for r in RECORDS.values() if r.needs_files]
    found = {record.name: copies(record, folder) for record in records}
    wrong = _damage([copy for some in found.values() for copy in some]) if verify else {}
    for record in records:
        click.echo(f"{record.name}:" if found[record.name] else f"{record.name}: {_absent(record)}")
        if names and record.needs_files and not found[record.name]:
            click.echo(f"  {how_to_get(record)}.")
        loaded = next((copy for copy in found[record.name] if not copy.missing), None)
        for copy in found[record.name]:
            _show(copy, copy is loaded)
            for line in wrong.get(id(copy), []):
                click.echo(f"    damaged: {line}")
            if verify and not wrong.get(id(copy)):
                click.echo("    undamaged, as far as it is here" if copy.missing else "    undamaged")
    click.echo(f"folders: {', '.join(map(str, data_roots(folder)))}")
    if any(wrong.values()):
        click.echo("Delete the damaged files and get them again.", err=True)
        click.get_current_context().exit(1)


def _absent(record: DatasetRecord) -> str:
    return "missing" if record.needs_files else "needs no files"


def _show(copy: Copy, loaded: bool) -> None:
    part = f" ({copy.edition.part})" if copy.edition.part else ""
    total = len(copy.edition.files)
    size = f"{len(copy.paths)} of {total} files" if copy.missing else f"{total} file{'s' if total > 1 else ''}"
    taken = ", taken by default" if loaded else ""
    click.echo(f"  {copy.edition.name}{part} in {copy.folder}: {size}, {_megabytes(copy.n_bytes)}{taken}")
    if copy.missing:
        click.echo(f"    missing: {', '.join(file.published_name for file in copy.missing)}")
    for part_path in copy.unfinished:
        click.echo(f"    unfinished: {part_path.name}, {_megabytes(part_path.stat().st_size)}; `get` continues it")


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 50_000 else f"{n_bytes:,} bytes"


def _damage(found: list[Copy]) -> dict[int, list[str]]:
    from tqdm import tqdm

    from usimul.datasets.state import damage

    total = sum(copy.n_bytes for copy in found)
    with tqdm(total=total, unit="B", unit_scale=True, desc="checking", leave=False, disable=None) as bar:
        return {id(copy): damage(copy, bar.update) for copy in found}


@command.command("get")
@click.argument("name")
@task_option
@edition_option
@folder_option
@click.option("--base-url", help="Fetch from this address instead of the set's own.")
@click.option(
    "--arrays",
    type=FOLDER,
    help="Also write X_train.npy, y_train.npy, X_test.npy, y_test.npy there, and the original classes and groups "
    "(patients) of the points, where there are any.",
)
@click.option("--overwrite", is_flag=True, help="Replace existing arrays.")
def get(
    name: str,
    task: str | None,
    edition: str | None,
    folder: Path | None,
    base_url: str | None,
    arrays: Path | None,
    overwrite: bool,
) -> None:
    """Fetch the files of the set NAME (with checksums), and describe it.

    This is the only command that uses the network, and only if the files are not there yet. A broken transfer is
    continued by the next call.
    """
    from usimul.datasets import get_record, load_dataset
    from usimul.datasets.state import presence

    record = get_record(name)
    if task is not None:
        record.task(task)
    # Before as well as after: the terms are to be known before the files are on the disk.
    click.echo(f"{record.title}\nlicence: {record.licence}\ncite: {record.citation}\n")
    data = load_dataset(name, task=task, edition=edition, folder=folder, download=True, base_url=base_url)
    click.echo(data.describe())
    if edition is None and presence(record, folder) == "part":
        whole = next((e.name for e in record.editions if e.can_be_fetched and not e.part), None)
        if whole is not None:
            click.echo(f"\nThis is a part of the set. The whole: `usimul datasets get {name} --edition {whole}`.")
    if arrays is not None:
        _write_arrays(data, arrays, overwrite)


def _write_arrays(data: Dataset, folder: Path, overwrite: bool) -> None:
    import numpy as np

    from usimul.cli.files import check_new_file, whole_file

    found = {f"{name}_{part}": getattr(data, f"{name}_{part}") for part in ("train", "test") for name in ("X", "y")}
    for name, attribute in (("classes", "original"), ("groups", "groups")):
        for part in ("train", "test"):
            if (array := getattr(data, f"{attribute}_{part}")) is not None:
                found[f"{name}_{part}"] = array
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / f"{name}.npy" for name in found}
    for path in paths.values():
        check_new_file(path, (".npy",), overwrite=overwrite)
    for name, path in paths.items():
        with whole_file(path) as handle:
            np.save(handle, found[name], allow_pickle=False)
    click.echo(f"arrays: {', '.join(path.name for path in paths.values())} in {folder}")


@command.command("describe")
@click.argument("name")
@task_option
@edition_option
@folder_option
@click.option("--seed", default=0, show_default=True, help="Of the division into parts, where none was published.")
@click.option("--grid", type=click.Path(dir_okay=False, path_type=Path), help="Picture of some images (.png) to write.")
@click.option("--overwrite", is_flag=True, help="Replace an existing picture.")
def describe(
    name: str,
    task: str | None,
    edition: str | None,
    folder: Path | None,
    seed: int,
    grid: Path | None,
    overwrite: bool,
) -> None:
    """Describe the set NAME: sizes, classes and how often they occur, tasks, terms; optionally show images of it."""
    from usimul.datasets import get_record, load_dataset

    record = get_record(name)
    if grid is not None:
        from usimul.cli.files import check_new_file

        check_new_file(grid, (".png",), overwrite=overwrite)
    data = load_dataset(name, task=task, edition=edition, folder=folder, random_state=seed)
    picture = None
    if grid is not None:
        from usimul.cli.pictures import class_grid

        picture = class_grid(data, seed)
    click.echo(data.describe())
    if record.note:
        click.echo(_wrapped(f"note: {record.note}", 2))
    _class_table(record, data)
    _tasks_and_editions(record)
    if picture is not None and grid is not None:
        from usimul.cli.files import whole_file

        with whole_file(grid) as handle:
            picture.save(handle, format="PNG")
        click.echo(f"\npicture: {grid}")


def _tasks_and_editions(record: DatasetRecord) -> None:
    for number, task in enumerate(record.tasks):
        click.echo("" if number else "\ntasks:\n", nl=False)
        click.echo(_wrapped(f"  {task.name}: {task.classes}", 4))
        click.echo(_wrapped(f"    from: {task.origin}", 4))
    for number, edition in enumerate(record.editions):
        part = f" ({edition.part})" if edition.part else ""
        fetched = f"fetched with `usimul datasets get {record.name}`"
        had = fetched if edition.can_be_fetched else edition.by_hand or "comes with this program"
        click.echo("" if number else "\neditions:\n", nl=False)
        click.echo(_wrapped(f"  {edition.name}{part}: {had}", 4))


def _class_table(record: DatasetRecord, data: Dataset) -> None:
    if data.original_train is None or data.original_test is None:
        return
    import numpy as np

    task = record.task(data.task)
    counts = [np.bincount(part, minlength=len(data.class_names)) for part in (data.original_train, data.original_test)]
    width = max(map(len, ("class", *data.class_names)))
    click.echo(f"\n{'class':<{width}}  counts as  training      test")
    for index, (label, n_train, n_test) in enumerate(zip(data.class_names, *counts, strict=True)):
        side = "+1" if index in task.positive else "-1" if index in task.negative else "dropped"
        shown = "" if side == "dropped" else f"{n_train:>10,}{n_test:>10,}"
        click.echo(f"{label:<{width}}  {side:<8}{shown}".rstrip())
