"""An experiment as data: which run stands in which cell of which table or curve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from usimul.experiments.spec import Run, RunSpec

__all__ = ["Cell", "Experiment"]


@dataclass(frozen=True)
class Cell:
    """One cell: where it stands, and the runs that may fill it.

    Parameters
    ----------
    row, column
        Names of its row and its column. In a figure, the curve and the position on the horizontal axis.
    specs
        One spec; or several that differ in training settings, of which the experiment's search takes one.
    """

    row: str
    column: str
    specs: tuple[RunSpec, ...]


@dataclass(frozen=True)
class Experiment:
    """A table or a figure of the paper, and the runs that make it.

    Parameters
    ----------
    name
        Key on the command line and in file names.
    title
        Heading.
    question
        What is asked, in one or two sentences.
    kind
        ``"table"``; ``"sweep"``: accuracy against the column, one curve a row; ``"curve"``: accuracy by epoch.
    axis
        Name of the columns, with unit where there is one.
    cells
        Rows and columns appear in the order of their first cell. An empty ``specs`` is a cell that is not run.
    seeds
        Seeds of each cell.
    paper
        The paper's accuracies in percent, by (row, column), as far as they are known here.
    notes
        What a reader must know, such as stand-ins for private sets.
    """

    name: str
    title: str
    question: str
    kind: str
    axis: str
    cells: tuple[Cell, ...]
    seeds: tuple[int, ...]
    paper: Mapping[tuple[str, str], float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> list[str]:
        """Names of the rows."""
        return list(dict.fromkeys(cell.row for cell in self.cells))

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(dict.fromkeys(cell.column for cell in self.cells))

    def cell(self, row: str, column: str) -> Cell | None:
        """Return a cell, if there is one."""
        return next((c for c in self.cells if (c.row, c.column) == (row, column)), None)

    def runs(self) -> Iterator[Run]:
        """Yield every run, seed by seed, so that all cells have one seed before any has two."""
        for seed in self.seeds:
            for cell in self.cells:
                for spec in cell.specs:
                    yield Run(spec, seed)

    def with_selection(self, selection: str) -> Experiment:
        """Return the same experiment with another rule for which epoch counts."""
        cells = tuple(replace(c, specs=tuple(replace(s, selection=selection) for s in c.specs)) for c in self.cells)
        return replace(self, cells=cells)

    def with_editions(self, editions: Mapping[str, str | None], notes: Mapping[str, str]) -> Experiment:
        """Return the same experiment on given editions of its data sets; ``notes`` name those that are parts."""

        def fixed(spec: RunSpec) -> RunSpec:
            return replace(spec, edition=editions.get(spec.data))

        cells = tuple(replace(c, specs=tuple(fixed(s) for s in c.specs)) for c in self.cells)
        said = tuple(notes[data] for data in self.data_sets() if data in notes)
        return replace(self, cells=cells, notes=(*self.notes, *said))

    def data_sets(self) -> list[str]:
        """Names of the data sets that it needs."""
        return list(dict.fromkeys(spec.data for cell in self.cells for spec in cell.specs))
