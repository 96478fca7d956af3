"""Every linear risk as a list of Terms, and the corrections: the only code that turns scores into a risk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from usimul.losses import Loss
from usimul.validation import check_choice

__all__ = ["CORRECTIONS", "Risk", "Term", "class_terms", "correct", "estimate_error", "evaluate"]


@dataclass(frozen=True)
class Term:
    """Mean over tuples of ``weight * loss(score[source, columns], label)``.

    Parameters
    ----------
    source
        Name of the source of points.
    columns
        Positions inside the tuple; their losses are averaged.
    label
        +1 or -1.
    weight
        A number, or a tensor with one weight for each tuple of the source.
    part
        Partial risk that the term belongs to. A correction acts on each part by itself.
    """

    source: str
    columns: tuple[int, ...]
    label: int
    weight: float | Tensor
    part: str


def class_terms(
    weights: ArrayLike,
    sources: Sequence[tuple[str, tuple[int, ...]]],
    *,
    parts: tuple[str, str] = ("positive", "negative"),
) -> list[Term]:
    """Terms of a risk whose sources are mixtures of the classes: one part for each class.

    Parameters
    ----------
    weights
        From `usimul.mixture.solve`, one row for each source.
    sources
        Name and columns of each source.
    parts
        Names of the partial risks of label +1 and of label -1.
    """
    table = np.asarray(weights, dtype=np.float64)
    return [
        Term(source, columns, label, float(row[side]), parts[side])
        for side, label in enumerate((+1, -1))
        for (source, columns), row in zip(sources, table, strict=True)
    ]


CORRECTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "none": lambda part: part,
    "relu": torch.relu,
    "abs": torch.abs,
}
"""What is done to the mini-batch mean of a partial risk, which is non-negative in population."""


def correct(part: Tensor, correction: str) -> Tensor:
    """Apply a correction by name: ``none`` r, ``relu`` max(0, r), ``abs`` |r|."""
    return CORRECTIONS[check_choice(correction, CORRECTIONS, "correction")](part)


@dataclass(frozen=True)
class Risk:
    """A corrected risk, the uncorrected partial risks it was made from, and the names of those that are corrected."""

    total: Tensor
    parts: Mapping[str, Tensor]
    correctable: tuple[str, ...] = ()

    @property
    def raw(self) -> Tensor:
        """The uncorrected risk, without gradient."""
        return torch.stack([part.detach() for part in self.parts.values()]).sum()

    @property
    def negative(self) -> Tensor:
        """Whether any partial risk is negative."""
        return (torch.stack([part.detach() for part in self.parts.values()]) < 0).any()

    @property
    def corrected(self) -> Tensor:
        """Whether a correction acts: on a part that is negative and has one."""
        if not self.correctable:
            return torch.zeros((), dtype=torch.bool, device=self.total.device)
        return (torch.stack([self.parts[name].detach() for name in self.correctable]) < 0).any()


def evaluate(
    terms: Sequence[Term],
    scores: Mapping[str, Tensor],
    loss: Loss,
    correction: str = "none",
    index: Mapping[str, Tensor] | None = None,
) -> Risk:
    """Evaluate a linear risk on the scores of a batch.

    Parameters
    ----------
    terms
        The risk.
    scores
        Scores of each source, ``(n, width)``.
    loss
        Function of scores and a label.
    correction
        Applied to each part; see `CORRECTIONS`.
    index
        Positions of the batch's tuples in their source, needed when a term has one weight for each tuple.

    Examples
    --------
    >>> from usimul.losses import square
    >>> terms = [Term("a", (0,), +1, 2.0, "positive"), Term("b", (0,), +1, -1.0, "positive")]
    >>> z = {"a": torch.tensor([[0.0]]), "b": torch.tensor([[3.0]])}
    >>> evaluate(terms, z, square, "abs").total
    tensor(2.)
    """
    apply = CORRECTIONS[check_choice(correction, CORRECTIONS, "correction")]
    values: dict[tuple[str, tuple[int, ...], int], Tensor] = {}
    parts: dict[str, Tensor] = {}
    for term in terms:
        key = (term.source, term.columns, term.label)
        if key not in values:
            source = scores[term.source]
            chosen = source if len(term.columns) == source.shape[1] else source[:, list(term.columns)]
            values[key] = loss(chosen, term.label)
        if isinstance(term.weight, Tensor):
            weight = term.weight if index is None else term.weight[index[term.source]]
            value = (weight[:, None].to(values[key].dtype) * values[key]).mean()
        else:
            value = term.weight * values[key].mean()
        parts[term.part] = parts[term.part] + value if term.part in parts else value
    total = torch.stack([apply(part) for part in parts.values()]).sum()
    return Risk(total, parts, () if correction == "none" else tuple(parts))


def estimate_error(terms: Sequence[Term], scores: Mapping[str, NDArray[np.float64]]) -> tuple[float, float]:
    """Estimate the error rate by an unbiased risk with the 0-1 loss, and its standard error.

    Parameters
    ----------
    terms
        An unbiased risk over all tuples of every source.
    scores
        Scores of each source, ``(n, width)``.
    """
    by_source: dict[str, NDArray[np.float64]] = {}
    for term in terms:
        positive = np.asarray(scores[term.source])[:, list(term.columns)] >= 0
        wrong = (positive != (term.label > 0)).mean(axis=1)
        weight = term.weight.numpy() if isinstance(term.weight, Tensor) else term.weight
        by_source[term.source] = by_source.get(term.source, 0.0) + weight * wrong
    value = sum(float(part.mean()) for part in by_source.values())
    variance = sum(float(part.var(ddof=1)) / len(part) for part in by_source.values() if len(part) > 1)
    return value, float(np.sqrt(variance))
