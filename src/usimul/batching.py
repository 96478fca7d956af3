"""The pool of points on its device, and index batches that carry every source in every step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from usimul.validation import InputError, IntArray

__all__ = ["IndexBatches", "check_device", "n_steps_per_epoch", "pool_tensor"]


def check_device(device: str | torch.device) -> None:
    """Raise unless torch can compute on ``device`` here."""
    try:
        float(torch.zeros(1, device=device).sum())  # of some devices only the result tells that they hold no numbers
    except (RuntimeError, AssertionError, TypeError) as error:  # torch asserts that it was built for the device
        why = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise InputError(
            f"`device` {device!r} cannot be used here: {why}. Use 'cpu', or install a torch that is built for this "
            "device."
        ) from error


def pool_tensor(X: np.ndarray, device: str | torch.device) -> Tensor:
    """Return the pool as a float32 tensor on the device; an aligned float32 array is not copied on the CPU."""
    return torch.from_numpy(np.require(X, dtype=np.float32, requirements=["C", "W"])).to(device)


def n_steps_per_epoch(sources: Mapping[str, IntArray], batch_size: int) -> int:
    """Return how many steps use every tuple once, with ``batch_size`` tuples of all sources together in each."""
    return max(1, math.ceil(sum(len(rows) for rows in sources.values()) / batch_size))


class IndexBatches:
    """Shuffled index batches over several sources, aligned so that each step holds its share of each source.

    One epoch has ``n_steps_per_epoch(sources, batch_size)`` steps, and within an epoch every tuple of every source is
    used once. A source with fewer tuples than steps is reshuffled until it fills them all, because a step without it
    would take a mean over nothing.

    Parameters
    ----------
    sources
        Row indices of each source, ``(n_tuples, width)``.
    batch_size
        Tuples of all sources together in one step.
    generator
        Source of randomness.
    device
        Where the pool lies.

    Examples
    --------
    >>> rows = {"a": np.arange(6).reshape(2, 3), "b": np.arange(4)[:, None]}
    >>> batches = IndexBatches(rows, 3, torch.Generator().manual_seed(0))
    >>> batches.n_steps, [tuple(i.numel() for i in index.values()) for index, _ in batches.epoch()]
    (2, [(1, 2), (1, 2)])
    """

    def __init__(
        self,
        sources: Mapping[str, IntArray],
        batch_size: int,
        generator: torch.Generator,
        device: str | torch.device = "cpu",
    ) -> None:
        self._rows = {name: torch.as_tensor(np.array(rows), device=device) for name, rows in sources.items()}
        self._generator = generator
        self.n_steps = n_steps_per_epoch(sources, batch_size)

    def _order(self, n: int) -> Tensor:
        rounds = math.ceil(self.n_steps / n)
        return torch.cat([torch.randperm(n, generator=self._generator) for _ in range(rounds)])

    def epoch(self) -> Iterator[tuple[dict[str, Tensor], dict[str, Tensor]]]:
        """Yield, for each step, the positions of tuples in each source and the pool rows they point to."""
        order = {name: self._order(len(rows)).to(rows.device) for name, rows in self._rows.items()}
        position = {name: o.tensor_split(self.n_steps) for name, o in order.items()}
        pointed = {name: rows[order[name]].tensor_split(self.n_steps) for name, rows in self._rows.items()}
        for step in range(self.n_steps):
            yield {n: p[step] for n, p in position.items()}, {n: r[step] for n, r in pointed.items()}
