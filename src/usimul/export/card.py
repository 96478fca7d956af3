"""The model card: what a stranger must know before using a saved model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from usimul.methods import get_method
from usimul.methods.base import Method, Orientation
from usimul.supervision import Labels, Triplets

__all__ = ["card"]


def card(d: Mapping[str, Any], name: str) -> str:
    """Return the card of a model as Markdown, from its description."""
    method = get_method(d["method_"])
    negative, positive = d["classes_"]["values"]
    known = Orientation(**d["orientation_"]).explain(unbiased=method.unbiased_for(d["world_"]))
    calibration = (
        "`predict_proba` models P(positive | x), as far as the training data allow."
        if method.probability
        else "`predict_proba` is a monotone map of the score, **not a calibrated probability**."
    )
    own = ", model=your_module" if d["model"]["kind"] == "custom" else ""
    stopped = "\n- **Training was interrupted**; these are the weights at that moment." if d["interrupted_"] else ""
    source = f"\n- Source of the method: {method.paper}" if method.paper else ""
    trained = len(d["history_"]["risk"])
    epochs = f"epoch {d['n_epochs_']} of {trained} was kept" if trained else "the first epoch was not finished"
    unlabeled = f" and {d['n_unlabeled_']:,} unlabeled points" if d["n_unlabeled_"] else ""
    world = f", world `{d['world_']}`" if d["world_"] else ""
    chosen = "epoch" if d["params"].get("selection") == "label-free" else ""
    if d["params"].get("method") == "auto" and d["interrupted_"]:  # else the best is trained again, on all
        chosen = "candidate"
    held_out_note = f"; a part of them was held out to choose the {chosen} without labels" if chosen else ""
    if chosen and d.get("held_out_"):
        held_out_note += f", divided by {d['held_out_']}"
    prior = "none, the method needs none" if d["prior_"] is None else f"{d['prior_']:g}"
    share = "with the share of positives that they have" if d["prior_"] is None else "at the prior above"
    noise = ""
    if d["wrong_yes_"]:
        noise = f"\n- Share of wrong yes answers that the training corrected for, as stated: {d['wrong_yes_']:g}."
    return f"""# {name}

A binary classifier trained with usimul {d["made_with"]["usimul"]} (torch {d["made_with"]["torch"]}).

- Predicts `{positive!r}` (score of at least 0) or `{negative!r}` for rows of {d["n_features_in_"]:,} features.
- Method: `{d["method_"]}`, {method.summary}; learns from {method.supervision.__name__}.{source}
- Trained on: {d["n_tuples_"]:,} tuples{unlabeled}{world}{held_out_note}.
- Model: {d["model"]["name"]} ({d["model"]["kind"]}); {epochs}.{stopped}
- Class prior used in training, P({positive!r}): {prior}.{noise}
- Class names: {known}.

## Limits

- {calibration}
- It holds for points like those it was trained on, {share}; another share of positives
  needs another threshold.
- {_on_labels(d, method)}
  `usimul evaluate` estimates the error from fresh answers over new points, or measures it on labels.{_on_bias(method)}

## Use

    import usimul
    clf = usimul.load("{name}"{own})
    clf.predict(X)

or `usimul predict {name} points.npy --output predictions.csv`.
"""


def _on_labels(d: Mapping[str, Any], method: Method) -> str:
    """Return a sentence on the part that labels had in the training."""
    if not d["from_labels_"]:
        return "No label was needed for training, so nobody has measured its accuracy yet unless you have:"
    if method.supervision is Labels:
        return "It was trained on the labels of its training points. How it does on other points is not known yet:"
    source = " by a classifier that was trained on them" if method.needs_confidences else ""
    return (
        f"The answers that it was trained on were made from the labels of the training points{source}: a simulation,\n"
        "  not a collection. How it does on other points is not known yet:"
    )


def _on_bias(method: Method) -> str:
    if method.unbiased or method.probability:
        return ""
    if method.supervision is Triplets:
        return "\n- The risk of this method is biased for the triplets that its paper defines: judge it first."
    return "\n- What this method minimises is no unbiased estimate of the classification risk: judge it first."
