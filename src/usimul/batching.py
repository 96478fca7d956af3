"""The pool of points, in memory or in a file, and index batches that carry every source in every step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from usimul.mapped import Moments, Rows, is_mapped
from usimul.validation import InputError, IntArray

__all__ = [
    "IndexBatches",
    "MappedPool",
    "Pool",
    "TensorPool",
    "as_pool",
    "check_device",
    "n_steps_per_epoch",
    "pool_tensor",
]

CHUNK_VALUES = 1 << 22  # numbers of a file handed out together; 32 MB as float32


class Pool(ABC):
    """All points, ``(n_points, n_features)``: what training, scoring and scaling may ask of them.

    Rows are handed out as float32 tensors on ``device``, wherever the pool lies.
    """

    shape: tuple[int, int]
    device: torch.device

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def check(self) -> None:
        """Raise unless all numbers are finite."""

    @abstractmethod
    def gather(self, rows: Tensor) -> Tensor:
        """Rows by number, in any order and with repeats."""

    @abstractmethod
    def part(self, rows: IntArray) -> Pool:
        """Return the pool of these rows, in this order."""

    @abstractmethod
    def chunks(self, size: int) -> Iterator[Tensor]:
        """Yield all rows in order, at most ``size`` together."""

    @abstractmethod
    def moments(self, *, by_feature: bool) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation, of each feature or of all numbers together."""


class TensorPool(Pool):
    """A pool in the memory of its device; whoever made the tensor has looked at its numbers."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self.shape = (tensor.shape[0], tensor.shape[1])
        self.device = tensor.device

    def check(self) -> None:
        """Do nothing: validation has been before."""

    def gather(self, rows: Tensor) -> Tensor:
        """Rows by number."""
        return self._tensor.index_select(0, rows)

    def part(self, rows: IntArray) -> TensorPool:
        """Return a pool of copies."""
        return TensorPool(self._tensor[torch.as_tensor(rows, device=self.device)])

    def chunks(self, size: int) -> Iterator[Tensor]:
        """Yield views."""
        return (self._tensor[start : start + size] for start in range(0, len(self), size))

    def moments(self, *, by_feature: bool) -> tuple[Tensor, Tensor]:
        """In the precision of the tensor."""
        if by_feature:
            return self._tensor.mean(dim=0), self._tensor.std(dim=0)
        return self._tensor.mean(), self._tensor.std()


class MappedPool(Pool):
    """A pool in a mapped file, of which only the rows of a step or a chunk are ever in memory.

    Parameters
    ----------
    rows
        Rows of the file.
    device
        Where rows are handed out.
    chosen
        Numbers of the rows that are the pool; None takes all.
    """

    def __init__(self, rows: Rows, device: str | torch.device = "cpu", chosen: IntArray | None = None) -> None:
        self._rows = rows
        self._chosen = chosen
        self._found: Moments | None = None
        self.shape = (len(rows) if chosen is None else len(chosen), rows.shape[1])
        self.device = torch.device(device)

    def check(self) -> None:
        """Read the file once; its moments are known afterwards."""
        self._moments()

    def gather(self, rows: Tensor) -> Tensor:
        """Rows by number, read in the order of the file."""
        return self._take(rows.cpu().numpy())

    def part(self, rows: IntArray) -> MappedPool:
        """Return a pool that reads from the same file."""
        return MappedPool(self._rows, self.device, rows if self._chosen is None else self._chosen[rows])

    def chunks(self, size: int) -> Iterator[Tensor]:
        """Yield copies, fewer rows together when they are long."""
        size = max(1, min(size, CHUNK_VALUES // self.shape[1]))
        if self._chosen is None:
            for _, values in self._rows.chunks(size):
                yield torch.from_numpy(values).to(self.device)
        else:
            for start in range(0, len(self), size):
                yield self._take(np.arange(start, min(start + size, len(self))))

    def moments(self, *, by_feature: bool) -> tuple[Tensor, Tensor]:
        """In double precision, from one pass over the file."""
        found = self._moments()
        mean, deviation = found.by_feature() if by_feature else found.overall()
        return torch.as_tensor(mean), torch.as_tensor(deviation)

    def _moments(self) -> Moments:
        if self._found is None:
            self._found = self._rows.moments(self._chosen)
        return self._found

    def _take(self, rows: IntArray) -> Tensor:
        values = self._rows.take(rows if self._chosen is None else self._chosen[rows])
        return torch.from_numpy(values).to(self.device)


def as_pool(points: Pool | Tensor | NDArray[np.generic], device: str | torch.device = "cpu") -> Pool:
    """Return the pool of some points: a mapped file stays where it is, an array goes to the device."""
    if isinstance(points, Pool):
        return points
    if isinstance(points, Tensor):
        return TensorPool(points)
    if is_mapped(points):
        return MappedPool(Rows(points), device)
    return TensorPool(pool_tensor(points, device))


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
