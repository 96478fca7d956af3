"""The model card: what a stranger must know before using a saved model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from usimul.calibration import Calibration
from usimul.methods import get_method
from usimul.methods.base import Method, Orientation
from usimul.supervision import Labels, Triplets

__all__ = ["card"]

SHOWN = 30  # names of features
WORLDS = {
    "definition1": "three independent points, kept if the first shares its class with one of the others",
    "pair_plus_unlabeled": "a similar pair and one independent point, in shuffled order",
    "release": "points with the class shares of the paper's released experiment; no triplet was formed",
}


def card(d: Mapping[str, Any], name: str) -> str:
    """Return the card of a model as Markdown, from its description."""
    method = get_method(d["method_"])
    negative, positive = d["classes_"]["values"]
    known = Orientation(**d["orientation_"]).explain(unbiased=method.unbiased_for(d["world_"]))
    calibration = _on_probabilities(Calibration(**d["calibration_"]), method)
    own = ", model=your_module" if d["model"]["kind"] == "custom" else ""
    source = f"\n- Source of the method: {method.paper}" if method.paper else ""
    prior = "none, the method needs none" if d["prior_"] is None else f"{d['prior_']:g}"
    share = "with the share of positives that they have" if d["prior_"] is None else "at the prior above"
    noise = ""
    if d["wrong_yes_"]:
        noise = f"\n- Share of wrong yes answers that the training corrected for, as stated: {d['wrong_yes_']:g}."
    return f"""# {name}

A binary classifier trained with {", ".join(f"{k} {v}" for k, v in d["made_with"].items())}.

- Predicts `{positive!r}` (score of at least 0) or `{negative!r}` for rows of {d["n_features_in_"]:,} features.
- Method: `{d["method_"]}`, {method.summary}; learns from {method.supervision.__name__}.{source}
- Class prior used in training, P({positive!r}): {prior}.{noise}
- Class names: {known}.

## Data

- Points: {_on_pool(d)}, {_on_features(d)}.
- {_on_answers(d)}
- Where the points come from, whom they describe, and who gave the answers is not known to the program: write it here.

## Training

- Model: {d["model"]["name"]} ({d["model"]["kind"]}); {_on_epochs(d)}.
- Settings: {_on_settings(d)}; all others were those of the method.
{_on_estimate(d)}
## Limits

- {calibration}
- It holds for points like those it was trained on, {share}; another share of positives
  needs another threshold.
- {_on_labels(d, method)}
  `usimul evaluate` estimates the error from fresh answers over new points, or measures it on labels.{_on_bias(method)}
- The weights were made from answers about the points, and may tell something about them.
- No licence is stated: who made the model says who may use it.

## Use

    import usimul
    clf = usimul.load("{name}"{own})
    clf.predict(X)

or `usimul predict {name} points.npy --output predictions.csv`. {_on_columns(d)}
"""


def _on_probabilities(calibration: Calibration, method: Method) -> str:
    if calibration.kind != "none":
        return f"`predict_proba` is {calibration.explain()}; it holds for points like those."
    if method.probability:
        return "`predict_proba` models P(positive | x), as far as the training data allow; not calibrated."
    return "`predict_proba` is a monotone map of the score, **not a calibrated probability**."


def _on_pool(d: Mapping[str, Any]) -> str:
    return "a pool whose size was not kept" if d["n_points_"] is None else f"a pool of {d['n_points_']:,}"


def _on_features(d: Mapping[str, Any]) -> str:
    names = d["feature_names_in_"]
    if d["image_shape"]:
        return "images of {} x {} x {} (channels, height, width)".format(*d["image_shape"])
    if names is None:
        return f"{d['n_features_in_']:,} features without names"
    shown = ", ".join(f"`{name}`" for name in names[:SHOWN])
    return f"{len(names):,} features: {shown}" + (f", and {len(names) - SHOWN:,} more" if len(names) > SHOWN else "")


def _on_columns(d: Mapping[str, Any]) -> str:
    if d["feature_names_in_"] is None:
        return "The columns must stand in the order of the training."
    return "The columns of a table may stand in any order; missing and new ones are refused."


def _on_answers(d: Mapping[str, Any]) -> str:
    asked = "" if d["n_asked_"] is None else f", kept out of {d['n_asked_']:,} that were asked about"
    unlabeled = f"; and {d['n_unlabeled_']:,} unlabeled points" if d["n_unlabeled_"] else ""
    world = f" World `{d['world_']}`: {WORLDS.get(d['world_'], 'not described here')}." if d["world_"] else ""
    chosen = "epoch" if d["params"].get("selection") == "label-free" else ""
    if d["params"].get("method") == "auto" and d["interrupted_"]:  # else the best is trained again, on all
        chosen = "candidate"
    held_out = f" A part of them was held out to choose the {chosen} without labels." if chosen else ""
    if chosen and d.get("held_out_"):
        held_out = f"{held_out[:-1]}, divided by {d['held_out_']}."
    return f"Trained on {d['n_tuples_']:,} tuples{asked}{unlabeled}.{world}{held_out}"


def _on_epochs(d: Mapping[str, Any]) -> str:
    trained = len(d["history_"]["risk"])
    epochs = f"epoch {d['n_epochs_']} of {trained} was kept" if trained else "the first epoch was not finished"
    seconds = f", {sum(d['history_']['seconds']):,.0f} s" if trained else ""
    again = f"; training was started again {d['n_restarts_']} times" if d["n_restarts_"] else ""
    stopped = ". **Training was interrupted**; these are the weights at that moment" if d["interrupted_"] else ""
    return f"{epochs}{seconds}{again}{stopped}"


def _on_settings(d: Mapping[str, Any]) -> str:
    """Return the parameters that somebody chose; what is None or said elsewhere is left out."""
    elsewhere = {"method", "prior", "model", "image_shape", "prior_check", "wrong_yes", "verbose", "device"}
    if d["params"].get("selection") != "label-free" and d["params"].get("method") != "auto":
        elsewhere.add("validation_fraction")  # nothing was held out
    given = {k: v for k, v in d["params"].items() if k not in elsewhere and v is not None}
    return ", ".join(f"{name} {value}" for name, value in sorted(given.items()))


def _on_estimate(d: Mapping[str, Any]) -> str:
    """Return a line on the label-free risk of the epoch or candidate that was kept, if there is one."""
    risks = d["history_"].get("weak_risk", [])
    kept = risks[d["n_epochs_"] - 1] if 0 < d["n_epochs_"] <= len(risks) else None
    tried = [row["weak_risk"] for row in d.get("auto_", [])]
    lines = []
    if kept is not None:
        lines.append(f"- Label-free risk of that epoch on held-out tuples: {kept:.4f}.")
    if tried:
        lines.append(f"- Best of {len(tried)} candidates; its label-free risk on held-out tuples: {min(tried):.4f}.")
    if lines and d.get("held_out_") != "points":
        lines.append("  It ranked them. As an estimate of the error it is too low: those points were trained on.")
    return "".join(f"{line}\n" for line in lines)


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
