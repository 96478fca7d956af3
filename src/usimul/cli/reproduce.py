"""``usimul reproduce``: the paper's tables and figures, run as far as they are missing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from usimul.experiments.grid import Experiment
    from usimul.experiments.store import Store
    from usimul.experiments.tables import Table

BUDGETS = ("smoke", "small", "full")
WORLDS = ("definition1", "release")
SELECTIONS = ("last", "label-free", "oracle")
SEARCHES = ("none", "label-free", "oracle")
FIGURES = ("png", "svg", "pdf")
WORDS = ("all", "list", "status")
PRIVACY = "privacy"
"""Named here so that ``--help`` loads nothing; a test compares."""


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME...|all|list|status]")
@click.option("--budget", type=click.Choice(BUDGETS), default="smoke", show_default=True, help="How much is run.")
@click.option(
    "--world", type=click.Choice(WORLDS), default="definition1", show_default=True, help="How triplets arise."
)
@click.option(
    "--selection",
    type=click.Choice(SELECTIONS),
    default="last",
    show_default=True,
    help="Which epoch counts. oracle chooses on test labels, as the paper did, and is printed as such.",
)
@click.option(
    "--search",
    type=click.Choice(SEARCHES),
    default="none",
    show_default=True,
    help="Run a grid of rates and decays, and choose by label-free risk on fresh tuples, or (oracle) on test labels.",
)
@click.option("--jobs", default=None, type=int, help="Worker processes. Default: the number of cores.")
@click.option("--store", type=click.Path(file_okay=False, path_type=Path), default=Path("usimul-results"))
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path), help="Folder for tables. Default: in the store."
)
@click.option("--cluster", help="Address of a Dask scheduler (tcp://...) that does the runs.")
@click.option("--slurm", multiple=True, metavar="KEY=VALUE", help="Submit to Slurm with such parameters; repeatable.")
@click.option(
    "--figures", type=click.Choice(FIGURES), multiple=True, help="Figure formats (needs matplotlib); repeatable."
)
@click.option("--holm", is_flag=True, help="Correct the t-tests of a column for their number.")
@click.option("--retry-failed", is_flag=True, help="Try failed runs again.")
@click.option("--tables-only", is_flag=True, help="Run nothing; make tables of what is in the store.")
def command(
    names: tuple[str, ...],
    budget: str,
    world: str,
    selection: str,
    search: str,
    jobs: int | None,
    store: Path,
    output: Path | None,
    cluster: str | None,
    slurm: tuple[str, ...],
    figures: tuple[str, ...],
    holm: bool,
    retry_failed: bool,
    tables_only: bool,
) -> None:
    """Run the tables and figures called NAME, as far as the store misses runs, and write them with one HTML page.

    Call the same command again after any interruption: it goes on where it was. `usimul reproduce list` names all;
    `usimul reproduce status` says, from another terminal too, how far a store is.
    """
    from usimul.experiments.paper import EXPERIMENTS, build
    from usimul.experiments.store import Store
    from usimul.validation import check_choice, check_count

    if not names or names == ("list",):
        _list(budget, world)
        return
    if names == ("status",):
        _status(store)
        return
    for name in names:
        check_choice(name, (*EXPERIMENTS, PRIVACY, *WORDS), "table or figure")
    chosen = [n for n in (EXPERIMENTS if "all" in names else names) if n != PRIVACY]
    if jobs is not None:
        check_count(jobs, "--jobs")
    parameters = dict(_pair(text) for text in slurm) if slurm else None
    experiments = [build(name, budget, world, selection, search=search != "none") for name in chosen]
    results = Store(store)
    experiments = _on_disk_or_in_store(experiments, results)
    failed = 0
    if not tables_only and experiments:
        failed = _run(experiments, results, jobs, cluster, parameters, retry_failed)
    _write(experiments, results, output or store / "tables", names, budget, world, selection, search, figures, holm)
    for sentence in results.damage:
        click.echo(f"note: {sentence}", err=True)
    if failed:
        click.echo(f"{failed} runs failed; the page shows why, and --retry-failed tries them again.", err=True)


def _list(budget: str, world: str) -> None:
    from usimul.experiments.paper import BUDGETS as ALL
    from usimul.experiments.paper import EXPERIMENTS, build

    for name in EXPERIMENTS:
        experiment = build(name, budget, world)
        runs = len({run.id for run in experiment.runs()})
        click.echo(f"{name:<18} {runs:>5} runs  {experiment.title}")
    click.echo(f"{PRIVACY:<18}     0 runs  What one answer gives away, exactly")
    click.echo(f"\nbudget {budget}: {ALL[budget].words}. Runs that tables share are done once.")


def _status(folder: Path) -> None:
    from usimul.experiments.store import Store
    from usimul.validation import InputError

    if not (folder / "store.json").is_file():
        raise InputError(f"there is no store of results in {str(folder)!r}. Name one with --store.")
    store = Store(folder)
    found = store.status()
    click.echo(f"{found['done']} runs done, {found['failed']} failed, {found['running']} in work, in {folder}")
    if store.rows:
        seconds = sum(row["seconds"] for row in store.rows.values())
        last = max(row["when"] for row in store.rows.values())
        click.echo(f"{seconds / 3600:.2f} hours of work, last row {last}")
    for row in store.rows.values():
        if row["status"] == "failed":
            click.echo(f"failed: {row['spec']}, seed {row['seed']}: {row['error']}")
    for sentence in store.damage:
        click.echo(f"note: {sentence}")


def _run(
    experiments: list[Experiment],
    store: Store,
    jobs: int | None,
    cluster: str | None,
    parameters: dict[str, Any] | None,
    retry_failed: bool,
) -> int:
    from tqdm import tqdm

    from usimul.experiments.runner import missing, open_executor, run_missing

    absent = _absent(experiments)
    runs = [run for e in experiments for run in e.runs() if run.spec.data not in absent]
    # Seed by seed over all experiments: everything has one seed before anything has two.
    runs.sort(key=lambda run: run.seed)
    todo = missing(runs, store, retry_failed=retry_failed)
    wanted = len({run.id for run in runs})
    click.echo(f"{wanted} runs wanted, {wanted - len(todo)} already in the store, {len(todo)} to do.", err=True)
    if not todo:
        return 0
    if parameters is not None:
        parameters.setdefault("folder", os.fspath(store.folder / "slurm"))
    with tqdm(total=wanted, unit="run", disable=None, dynamic_ncols=True, initial=wanted - len(todo)) as bar:

        def progress(done: int, failed: int, total: int, seconds: float) -> None:
            bar.n = done + failed
            bar.set_postfix_str(f"{failed} failed" if failed else "")
            bar.refresh()

        pool = open_executor(jobs or os.cpu_count() or 1, cluster, parameters)
        return run_missing(runs, store, pool, retry_failed=retry_failed, progress=progress)


def _pair(text: str) -> tuple[str, Any]:
    from usimul.validation import InputError

    name, equals, value = text.partition("=")
    if not (name and equals):
        raise InputError(f"--slurm takes KEY=VALUE, such as --slurm timeout_min=60. Got {text!r}.")
    return name, int(value) if value.isdigit() else value


def _on_disk_or_in_store(experiments: list[Experiment], store: Store) -> list[Experiment]:
    """Fix which edition of each data set is meant: the one on the disk, else the one that the store has rows of."""
    from usimul.datasets import DatasetNotFoundError, get_record
    from usimul.datasets.download import find_files

    in_store: dict[str, set[str]] = {}
    for row in store.refresh().values():
        if "edition" in row["spec"]:
            in_store.setdefault(row["spec"]["data"], set()).add(row["spec"]["edition"])
    editions: dict[str, str | None] = {}
    notes: dict[str, str] = {}
    for name in dict.fromkeys(data for e in experiments for data in e.data_sets()):
        record = get_record(name)
        if not record.needs_files:
            continue
        try:
            found = find_files(record)[0]
        except DatasetNotFoundError:
            known = [edition for edition in record.editions if edition.name in in_store.get(name, set())]
            if not known:
                continue
            found = known[0]
        editions[name] = found.name
        if found.part:
            notes[name] = (
                f"{record.title}: only its {found.part} was at hand; its numbers are not those of the whole set."
            )
    return [e.with_editions(editions, notes) for e in experiments]


def _absent(experiments: list[Experiment]) -> set[str]:
    """Return the sets whose files are not there, and say how to get each; the rest is run."""
    from usimul.datasets import DatasetNotFoundError, get_record
    from usimul.datasets.download import find_files, how_to_get

    absent = set()
    for name in dict.fromkeys(data for e in experiments for data in e.data_sets()):
        record = get_record(name)
        try:
            if record.needs_files:
                find_files(record)
        except DatasetNotFoundError:
            absent.add(name)
            click.echo(f"note: data set {name!r} is not here; its cells stay dashes. {how_to_get(record)}.", err=True)
    return absent


def _write(
    experiments: list[Experiment],
    store: Store,
    folder: Path,
    names: tuple[str, ...],
    budget: str,
    world: str,
    selection: str,
    search: str,
    figures: tuple[str, ...],
    holm: bool,
) -> None:
    from usimul.cli.files import whole_file
    from usimul.experiments.claims import claims_markdown, judge_claims
    from usimul.experiments.disclosure import disclosure_markdown
    from usimul.experiments.page import render_page
    from usimul.experiments.paper import BUDGETS as ALL
    from usimul.experiments.tables import make_table

    rows = store.refresh()
    tables = [make_table(e, rows, search=search, correction="holm" if holm else "none") for e in experiments]
    target = folder / "-".join([budget, world, selection, *([f"search-{search}"] if search != "none" else [])])
    target.mkdir(parents=True, exist_ok=True)
    for table in tables:
        for suffix, text in (("md", table.markdown()), ("tex", table.latex()), ("csv", table.csv())):
            with whole_file(target / f"{table.experiment.name}.{suffix}", "w") as handle:
                handle.write(text if text.endswith("\n") else text + "\n")
        for suffix in figures:
            _figure(table, rows, target / f"{table.experiment.name}.{suffix}")
    privacy = disclosure_markdown() if PRIVACY in names or "all" in names else ""
    if privacy:
        with whole_file(target / f"{PRIVACY}.md", "w") as handle:
            handle.write(privacy + "\n")
    if tables:
        with whole_file(target / "claims.md", "w") as handle:
            handle.write(claims_markdown(judge_claims(tables, rows), world) + "\n")
    repeat = (
        f"usimul reproduce {' '.join(names)} --budget {budget} --world {world} --selection {selection} "
        f"--search {search}{' --holm' if holm else ''}{''.join(f' --figures {f}' for f in figures)} --store FOLDER"
    )
    page = target / "report.html"
    with whole_file(page, "w") as handle:
        handle.write(
            render_page(
                tables,
                rows,
                heading=f"Uncertain similarity: the paper's experiments, world {world}",
                command=repeat,
                budget=f"{budget}, {ALL[budget].words}",
                extra=privacy,
            )
        )
    width = min(_terminal_width(), 120)
    for table in tables:
        click.echo(table.terminal(width))
        click.echo()
    if privacy and not tables:
        click.echo(privacy)
    click.echo(f"tables, figures and report: {target}")


def _terminal_width() -> int:
    import shutil

    return shutil.get_terminal_size((100, 24)).columns


def _figure(table: Table, rows: dict[str, Any], path: Path) -> None:
    if table.experiment.kind == "table":
        return
    from usimul.experiments.figures import save_figure

    save_figure(table, rows, path)
