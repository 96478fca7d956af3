"""``usimul init``: a commented project file."""

from __future__ import annotations

import json
from pathlib import Path

import click

KNOWN = click.Path(exists=True, readable=True, path_type=Path)


@click.command()
@click.argument("points", required=False, type=KNOWN)
@click.argument("supervision", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--prior", type=float, help="Share of positives, if it is known.")
@click.option(
    "--side",
    type=click.Choice(["minority", "majority"]),
    help="If it is to be estimated: whether the positives are the rarer or the commoner class.",
)
@click.option("--asked", type=int, help="How many questions were asked, yes and no together.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where `usimul run` leaves the results. Default: run.")
@click.option("--output", "-o", default="usimul.toml", show_default=True, type=click.Path(path_type=Path))
@click.option("--keys", is_flag=True, help="Only list all keys that the file may have.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
def command(
    points: Path | None,
    supervision: Path | None,
    prior: float | None,
    side: str | None,
    asked: int | None,
    folder: Path | None,
    output: Path,
    keys: bool,
    overwrite: bool,
) -> None:
    """Write usimul.toml, a project file with a comment on every key, for POINTS and the answers of SUPERVISION.

    Commands called in its folder read it, and options on the command line override it. `usimul run` does the whole
    way. Nothing is read of POINTS and SUPERVISION here: `usimul check` looks at them.
    """
    from usimul.project import SECTIONS, project_text

    if keys:
        for section, known in SECTIONS.items():
            for name, key in known.items():
                click.echo(f"{f'[{section}] {name}':<28} {key.words}")
        return

    from usimul.files import whole_file
    from usimul.validation import InputError, check_count, check_parent, check_prior

    if prior is not None and side is not None:
        raise click.UsageError("The prior is given (--prior) or estimated (--side), not both.")
    check_parent(output, "output")
    if output.suffix != ".toml":
        raise InputError(f"{str(output)!r} must end in .toml.")
    if output.exists() and not overwrite:
        raise InputError(f"{str(output)!r} exists already. Choose another name, or pass --overwrite.")
    values: dict[tuple[str, str], str] = {}
    for section, path in (("points", points), ("supervision", supervision)):
        if path is not None:
            values[section, "path"] = _text(_relative(path, output))
    if asked is not None:
        values["supervision", "asked"] = str(check_count(asked, "asked"))
    if prior is not None:
        values["prior", "value"] = repr(check_prior(prior))
    if side is not None:
        values.update({("prior", "estimate"): _text("auto"), ("prior", "side"): _text(side)})
    if folder is not None:
        values["output", "folder"] = _text(_relative(folder, output))
    missing = [
        *(f"[{section}] path" for section in ("points", "supervision") if (section, "path") not in values),
        *(["[prior] value, or estimate and side"] if prior is None and side is None else []),
    ]
    notes = (f"Still to be filled in: {'; '.join(missing)}.",) if missing else ()
    with whole_file(output, "w") as handle:
        handle.write(project_text(values, notes))
    click.echo(f"written              {output}")
    if missing:
        click.echo(f"to fill in           {'; '.join(missing)}")
    click.echo("next                 usimul check, then usimul run")


def _relative(path: Path, output: Path) -> str:
    """Return the path as seen from the folder of the project, or whole if it lies elsewhere."""
    try:
        return path.resolve().relative_to(output.resolve().parent).as_posix()
    except ValueError:
        return path.resolve().as_posix()


def _text(value: str) -> str:
    """Return a TOML string; the escapes of JSON are among those of TOML."""
    return json.dumps(value, ensure_ascii=False)
