"""``usimul export``: a model folder in, a file for other programs out."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--format", "kind", type=click.Choice(["onnx"]), default="onnx", show_default=True, help="Kind of file.")
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="File to make: .onnx.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
def command(model: Path, kind: str, output: Path, overwrite: bool) -> None:
    """Export the classifier saved in the folder MODEL as one file that other programs can run.

    An ONNX file takes raw rows of X, any number of them, and gives score and probability; scaling and weights are
    inside. It is kept only if ONNX Runtime computes the same from it as usimul. A model with a torch module of your own
    is exported in Python: usimul.export.export_onnx.
    """
    from usimul.files import check_new_file

    check_new_file(output, (".onnx",), overwrite=overwrite)

    from usimul.export import load_classifier
    from usimul.export.onnx import BATCHES, OPSET, export_onnx

    estimator = load_classifier(model)
    export_onnx(estimator, output, overwrite=overwrite)
    size = output.stat().st_size
    batches = ", ".join(str(n) for n in BATCHES)
    click.echo(f"input                X, float32, (n, {estimator.n_features_in_:,}), raw rows: scaling is inside")
    click.echo("outputs              score, probability, both (n,); a score of at least 0 is the positive class")
    click.echo(f"classes              {estimator.classes_[0]!s}, {estimator.classes_[1]!s} (positive)")
    click.echo(f"checked              ONNX Runtime computes the same on batches of {batches}")
    click.echo(f"saved to             {output} ({size:,} bytes, operator set {OPSET})")
