"""``usimul prior``: the share of positives, estimated from counted answers, from triplets, or from some labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from usimul.cli.options import points_options, supervision_options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from usimul.class_prior import PriorEstimate
    from usimul.class_prior.sensitivity import Assumed
    from usimul.points import Points
    from usimul.supervision import Supervision

FILE = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
FILE_OR_FOLDER = click.Path(exists=True, readable=True, path_type=Path)
NEW = click.Path(path_type=Path)
PLOTS = (".png", ".svg", ".pdf")
N_ASSUMED, REACH = 9, 0.1  # priors of the sensitivity, and how far they go beyond the interval


@click.command()
@click.argument("files", nargs=-1, type=FILE_OR_FOLDER, metavar="[POINTS] [SUPERVISION]")
@click.option("--side", help="`minority` if the positives are the rarer class, `majority` if the commoner one.")
@click.option("--method", default="auto", show_default=True, help="`acceptance`, `likelihood`, `labels`, or `auto`.")
@click.option("--labels", type=FILE, help="Labels, 1 and -1, of points drawn at random: .npy or a table.")
@click.option("--column", help="Column of labels in a table. Default: label, or the only one.")
@click.option("--level", default=0.95, show_default=True, help="Confidence of the interval.")
@click.option("--near-half", default="error", show_default=True, help="At 1/2: `error`, or `estimate` all the same.")
@click.option("--model", default="mlp-dropout", show_default=True, help="Network behind the likelihood.")
@click.option("--epochs", type=int, help="Default: as many as 500 steps need.")
@click.option("--bins", "n_bins", default=8, show_default=True, help="Bins of its scores.")
@click.option("--folds", default=2, show_default=True, help="Parts, each judged by classifiers trained on the others.")
@click.option("--networks", default=1, show_default=True, help="Classifiers averaged for each part.")
@click.option("--draws", "n_bootstrap", default=200, show_default=True, help="Bootstrap draws behind the interval.")
@click.option("--sensitivity", is_flag=True, help="Also: the label-free risk against the assumed prior.")
@click.option("--retrain", is_flag=True, help="Train again under each assumed prior. Implies --sensitivity.")
@click.option("--classifier", type=NEW, help="Model folder to judge in --sensitivity. Default: one is trained.")
@click.option("--assume", type=float, multiple=True, metavar="PRIOR", help="A prior for --sensitivity; repeatable.")
@click.option("--plot", type=NEW, help="Draw it: .png, .svg or .pdf (needs matplotlib). Implies --sensitivity.")
@click.option("--json", "json_file", type=NEW, help="Also write everything as a .json file.")
@click.option("--seed", default=0, show_default=True, help="Same seed, same machine: same bits.")
@click.option("--device", default="cpu", show_default=True, help="torch device.")
@points_options
@supervision_options
@click.option("--overwrite", is_flag=True, help="Replace existing files.")
def command(
    files: tuple[Path, ...],
    labels: Path | None,
    column: str | None,
    sensitivity: bool,
    retrain: bool,
    classifier: Path | None,
    assume: tuple[float, ...],
    plot: Path | None,
    json_file: Path | None,
    seed: int,
    reading: dict[str, Any],
    about: dict[str, Any],
    overwrite: bool,
    **settings: Any,
) -> None:
    """Estimate the share of positives, P(y = +1).

    From SUPERVISION alone, if the number of questions is known (--asked, if the file does not say it); with POINTS
    also from the triplets themselves; from --labels of points drawn at random. What is there is used together, unless
    --method says otherwise. Without labels two priors fit, p and 1 - p: --side says which.
    """
    if len(files) > 2:
        raise click.UsageError(f"at most two files are expected, POINTS and SUPERVISION. Got {len(files)}.")
    if not files and labels is None:
        raise click.UsageError("Name SUPERVISION, POINTS and SUPERVISION, or --labels FILE.")
    sensitivity = sensitivity or retrain or plot is not None or bool(assume) or classifier is not None
    if sensitivity and len(files) < 2:
        raise click.UsageError("--sensitivity and the options about it need POINTS and SUPERVISION.")
    if retrain and classifier is not None:
        raise click.UsageError("--retrain trains its own classifiers; leave --classifier out.")
    from usimul.cli.files import check_new_file, read_labels, read_points, read_supervision

    if json_file is not None:
        check_new_file(json_file, (".json",), overwrite=overwrite)
    if plot is not None:
        from usimul.class_prior.plot import need_matplotlib

        check_new_file(plot, PLOTS, overwrite=overwrite)
        need_matplotlib()
    _check_assumed(assume)
    given = None if labels is None else _labels(read_labels(labels, column=column)[0], labels)
    pool = read_points(files[0], **reading, fitting=True) if len(files) == 2 else None
    tuples = read_supervision(files[-1], pool, about) if files else None
    if sensitivity:
        _check_triplets(tuples)
    judged = None if classifier is None else _read_classifier(classifier, settings["device"])
    found = _estimate(pool, tuples, given, seed, settings)
    click.echo(str(found))
    rows: tuple[Assumed, ...] = ()
    if sensitivity and found.value is not None:
        assert pool is not None
        rows = _sensitivity(judged, pool, tuples, found, assume, retrain, seed, settings)
        _print(rows, retrain)
    _write(found, rows, plot, json_file, retrain)
    if found.value is None:
        click.echo("error: which of the two priors holds is not known. Pass --side, or --labels.", err=True)
        click.get_current_context().exit(2)


def _labels(values: NDArray[Any], path: Path) -> NDArray[Any]:
    from usimul.validation import InputError

    found = sorted({str(value) for value in values.tolist()})
    if not set(found) <= {"-1", "1", "-1.0", "1.0"}:
        shown = ", ".join(found[:6]) + (", ..." if len(found) > 6 else "")
        raise InputError(
            f"{str(path)!r} must hold labels 1 (positive) and -1, and nothing else. Got: {shown}. Translate them in "
            "the file; name the column with --column if this is the wrong one."
        )
    return values.astype(float).astype(int)


def _check_assumed(assume: tuple[float, ...]) -> None:
    from usimul.validation import check_real

    for prior in assume:
        check_real(prior, "--assume", low=0.0, high=1.0, closed="neither")


def _check_triplets(tuples: Supervision | None) -> None:
    from usimul.supervision import Triplets
    from usimul.validation import InputTypeError

    if not isinstance(tuples, Triplets):
        kind = "nothing" if tuples is None else tuples.kind
        raise InputTypeError(f"--sensitivity is judged by triplets. Got {kind}. Leave it out.")


def _read_classifier(path: Path, device: str) -> Any:
    from usimul.cli.predict import read_classifier

    return read_classifier(path, device)


def _estimate(
    pool: Points | None, tuples: Supervision | None, labels: NDArray[Any] | None, seed: int, settings: dict[str, Any]
) -> PriorEstimate:
    from usimul.class_prior import estimate_prior
    from usimul.supervision import Labels

    X = None if pool is None else pool.rows
    if isinstance(tuples, Labels):
        X = None
    trains = X is not None and settings["method"] in ("auto", "likelihood")
    if not trains:
        return estimate_prior(tuples, X, labels=labels, random_state=seed, **settings)
    from usimul.cli.progress import EpochBar

    assert pool is not None
    with EpochBar() as bar:
        return estimate_prior(
            tuples, X, labels=labels, random_state=seed, image_shape=pool.image_shape, progress=bar, **settings
        )


def _sensitivity(
    judged: Any,
    pool: Points,
    tuples: Any,
    found: PriorEstimate,
    assume: tuple[float, ...],
    retrain: bool,
    seed: int,
    settings: dict[str, Any],
) -> tuple[Assumed, ...]:
    from tqdm import tqdm

    from usimul.class_prior.sensitivity import prior_sensitivity
    from usimul.cli.predict import check_features
    from usimul.estimators import WeakClassifier

    if judged is None:
        judged = WeakClassifier(
            prior=found.value,
            model=settings["model"],
            epochs=settings["epochs"],
            prior_check="ignore",
            image_shape=pool.image_shape,
            device=settings["device"],
            random_state=seed,
        )
        if not retrain:
            from usimul.cli.progress import EpochBar

            with EpochBar() as bar:
                judged.fit(pool.rows, tuples, progress=bar)
    else:
        pool = check_features(judged, pool)
    priors = sorted(assume) or _assumed(found).tolist()
    with tqdm(desc="assumed priors", total=len(priors), disable=None if retrain else True, leave=False) as bar:
        return prior_sensitivity(
            judged,
            pool.rows,
            tuples,
            priors,
            retrain=retrain,
            random_state=seed,
            progress=lambda done, _: bar.update(done - bar.n) and None,
        )


def _assumed(found: PriorEstimate) -> NDArray[np.float64]:
    """Priors around the interval, on one side of 1/2."""
    import numpy as np

    assert found.value is not None
    assert found.interval is not None
    low, high = found.interval
    least, most = (0.02, 0.5) if found.value <= 0.5 else (0.5, 0.98)
    return np.round(np.linspace(max(least, low - REACH), min(most, high + REACH), N_ASSUMED), 4)


def _print(rows: tuple[Assumed, ...], retrained: bool) -> None:
    how = "one classifier; too low if these points were trained on, so read differences"
    if retrained:
        apart = rows[0].held_out == "points"
        how = "trained again under each, judged on held-out " + (
            "points" if apart else "triplets, of trained points; read differences"
        )
    click.echo(f"sensitivity          {how}")
    click.echo("  assumed prior   label-free risk       predicted positive")
    for row in rows:
        click.echo(f"  {row.prior:<15.4f} {row.risk:.4f} +- {row.standard_error:.4f}      {row.predicted_positive:.4f}")


def _write(
    found: PriorEstimate, rows: tuple[Assumed, ...], plot: Path | None, json_file: Path | None, retrain: bool
) -> None:
    from dataclasses import asdict

    from usimul.cli.files import whole_file

    if json_file is not None:
        content = {**found.as_dict(), "sensitivity": [asdict(row) for row in rows], "retrained": retrain}
        with whole_file(json_file, "w") as handle:
            json.dump(content, handle, indent=2)
            handle.write("\n")
        click.echo(f"written              {json_file}")
    if plot is not None and rows:
        from usimul.class_prior.plot import save_sensitivity

        with whole_file(plot) as handle:
            save_sensitivity(
                rows,
                handle,
                plot.suffix.lower()[1:],
                estimate=found.value,
                interval=found.interval,
                retrained=retrain,
            )
        click.echo(f"written              {plot}")
