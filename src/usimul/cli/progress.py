"""Progress of long work as one line on stderr."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tqdm import tqdm

if TYPE_CHECKING:
    from usimul.training import Epoch

__all__ = ["CountBar", "EpochBar", "RowBar"]


class _Bar:
    """What all bars share: one that is there while work goes on, and gone afterwards. Silent off a terminal."""

    def __init__(self) -> None:
        self._bar: Any = None

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class RowBar(_Bar):
    """A callback for ``predict_file(progress=...)``: rows that are done, and how many a second."""

    def __call__(self, done: int, total: int | None) -> None:
        """Show how far it is; ``total`` is None if nobody knows yet."""
        if self._bar is None:
            self._bar = tqdm(total=total, unit=" rows", unit_scale=True, disable=None, leave=False, dynamic_ncols=True)
        self._bar.update(done - self._bar.n)


class EpochBar(_Bar):
    """A callback for ``fit(progress=...)``: one bar for each candidate, moved by each epoch. Silent off a terminal."""

    def __init__(self) -> None:
        super().__init__()
        self._name = ""
        self._last = 0

    def __call__(self, name: str, number: int, n_epochs: int, epoch: Epoch) -> None:
        """Show one epoch; a smaller number than before means that training was started again."""
        if self._bar is None or name != self._name:
            self.close()
            self._bar = tqdm(desc=name, total=n_epochs, unit="epoch", disable=None, leave=False, dynamic_ncols=True)
        again = self._name == name and number <= self._last
        self._name, self._last = name, number
        self._bar.set_description(f"{name}{', started again' if again else ''}", refresh=False)
        shown = {"risk": f"{epoch.risk:.4f}"}
        if epoch.weak_risk is not None:
            shown["label-free"] = f"{epoch.weak_risk:.4f}"
        self._bar.set_postfix(shown, refresh=False)
        self._bar.n = number
        self._bar.refresh()


class CountBar(_Bar):
    """A callback of (done, total): one bar."""

    def __init__(self, name: str, unit: str) -> None:
        super().__init__()
        self._name, self._unit = name, unit

    def __call__(self, done: int, total: int) -> None:
        """Show how many are done."""
        if self._bar is None:
            self._bar = tqdm(
                desc=self._name, total=total, unit=self._unit, disable=None, leave=False, dynamic_ncols=True
            )
        self._bar.n = done
        self._bar.refresh()
