"""The user's points, read once from end to end in constant memory: for predictions over files of any length.

What `usimul.points.read_points` tells before it hands out anything is told here when the end is reached: from the first
problem on nothing more is handed out, but the rest is still looked at. Ids are handed on as they come; that they
differ is not checked, because that takes memory for all of them.
"""

from __future__ import annotations

import itertools
import zipfile
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from usimul.files import JSONL, Table, open_csv, open_jsonl, parquet_module, parsing
from usimul.mapped import Rows
from usimul.points.base import CHUNK_VALUES, Points, check_ids, note_not_finite
from usimul.points.fast_csv import fast_parts
from usimul.points.frames import EMPTY, batch_parts, plan_of
from usimul.points.galleries import Gallery, folder_gallery, zip_gallery
from usimul.points.images import look_at
from usimul.points.tables import NO_ROWS, Columns, choose_columns, table_parts
from usimul.validation import Problems

__all__ = ["Part", "PointStream", "stream_images", "stream_parquet", "stream_points_object", "stream_table"]

ONE = "At least one point is expected"
MOST_ROWS = 1 << 16  # of a Parquet file together


@dataclass(frozen=True)
class Part:
    """Some rows: the number of the first, the features as finite float32, and the ids if the points have some."""

    start: int
    rows: NDArray[np.float32]
    ids: Sequence[str] | None


@dataclass
class PointStream:
    """Points that are handed out once, part by part; ``n_rows`` is None where only reading to the end would tell."""

    source: str
    n_features: int
    n_rows: int | None
    has_ids: bool
    feature_names: tuple[str, ...] | None
    image_shape: tuple[int, int, int] | None
    _problems: Problems = field(repr=False)
    _parts: Callable[[Problems], Iterator[Part]] = field(repr=False)

    def parts(self) -> Iterator[Part]:
        """Yield the parts; all problems of the source are raised together, at the end.

        Raises
        ------
        InputError
            With all problems that were found, of which some of each sort are listed.
        """
        empty = True
        for part in self._parts(self._problems):
            empty = False
            if not self._problems:
                yield part
        if empty and not self._problems:
            self._problems.add(ONE, NO_ROWS)
        self._problems.refuse()


def stream_points_object(points: Points, problems: Problems) -> PointStream:
    """Hand out points that were read already, or that lie in a mapped file."""

    def parts(problems: Problems) -> Iterator[Part]:
        for start, part in Rows(points.rows, repr(points.source)).chunks(points.chunk, finite=False):
            stop = start + len(part)
            note_not_finite(part, points.rows[start:stop], start, points.feature_names, problems)
            yield Part(start, part, None if points.ids is None else points.ids[start:stop])

    return PointStream(
        points.source,
        points.n_features,
        len(points),
        points.ids is not None,
        points.feature_names,
        points.image_shape,
        problems,
        parts,
    )


def stream_table(path: Path, id_column: str | None, ignore: Sequence[str], problems: Problems) -> PointStream:
    """Hand out the rows of a CSV or JSON lines file."""
    is_text = path.suffix.lower() not in JSONL
    table = open_csv(path, problems) if is_text else open_jsonl(path, problems, ignore)
    wanted = ignore if is_text else [name for name in ignore if name in table.columns]
    chosen = choose_columns(table.columns, id_column, wanted, problems)
    if chosen is None:
        problems.refuse()
    assert chosen is not None
    parts = _table_parts(path, table, chosen, is_text)
    return PointStream(str(path), len(chosen.names), None, chosen.id is not None, chosen.names, None, problems, parts)


def _table_parts(path: Path, table: Table, chosen: Columns, is_text: bool) -> Callable[[Problems], Iterator[Part]]:
    def parts(problems: Problems) -> Iterator[Part]:
        start, ended = (yield from _fast(path, table, chosen)) if is_text else (0, False)
        if ended:
            return
        # What follows is read with line numbers: all of it, or what the fast reader has doubts about.
        rest = Table(table.columns, itertools.islice(table.rows, start, None), unit=table.unit)
        for where, values, cells in table_parts(rest, chosen, is_text, problems):
            ids = None if chosen.id is None else check_ids(cells, where, table.unit, problems, repeats=True)
            yield Part(start, values.astype(np.float32), ids)
            start += len(values)

    return parts


def _fast(path: Path, table: Table, chosen: Columns) -> Generator[Part, None, tuple[int, bool]]:
    """Yield what the fast reader takes; return how many rows these are, and whether they are all."""
    start, parts = 0, fast_parts(path, table.columns, chosen)
    while True:
        try:
            values, names = next(parts)
        except StopIteration as end:
            return start, bool(end.value)
        yield Part(start, values.astype(np.float32), names)
        start += len(values)


def stream_parquet(path: Path, id_column: str | None, ignore: Sequence[str], problems: Problems) -> PointStream:
    """Hand out the rows of a Parquet file: pages are read as they are needed, never a whole group of rows."""
    parquet = parquet_module(f"Reading {str(path)!r}")
    opened: dict[str, Any] = {"page_checksum_verification": True, "buffer_size": 1 << 20}
    with parsing(path, "Parquet file"), parquet.ParquetFile(path, **opened) as file:
        plan, n_rows = plan_of(file.schema_arrow, id_column, ignore, problems), file.metadata.num_rows
    if not n_rows:
        problems.add(ONE, EMPTY)
    problems.refuse()
    assert plan is not None
    size = min(MOST_ROWS, max(1, CHUNK_VALUES // len(plan.names)))

    def parts(problems: Problems) -> Iterator[Part]:
        with parsing(path, "Parquet file"), parquet.ParquetFile(path, **opened) as file:
            batches = file.iter_batches(size, columns=plan.columns, use_threads=False)
            for start, values, cells in batch_parts(batches, plan, problems):
                with np.errstate(over="ignore"):
                    part = values.astype(np.float32)
                note_not_finite(part, values, start, plan.names, problems)
                where = range(start, start + len(part))
                ids = check_ids(cells, where, "row", problems, repeats=True) if plan.id else None
                yield Part(start, part, ids)

    return PointStream(str(path), len(plan.names), n_rows, plan.id is not None, plan.names, None, problems, parts)


def stream_images(path: Path, resize: tuple[int, int] | None, mode: str | None, problems: Problems) -> PointStream:
    """Hand out the images of a folder or of a ``.zip``: their headers are read first, their pixels part by part."""
    if path.is_dir():
        return _stream_gallery(folder_gallery(path), path, resize, mode, problems)
    with parsing(path, "zip archive"):
        archive = zipfile.ZipFile(path)  # closed when the stream is forgotten: its pictures are read from it
        gallery = zip_gallery(archive, problems)
        problems.refuse()
        assert gallery is not None
        return _stream_gallery(gallery, path, resize, mode, problems)


def _stream_gallery(
    gallery: Gallery, path: Path, resize: tuple[int, int] | None, mode: str | None, problems: Problems
) -> PointStream:
    pictures = gallery.pictures(problems)
    album = look_at(pictures, resize, mode, problems, most=gallery.most) if pictures else None
    if album is None:
        problems.refuse()
    assert album is not None
    size = max(1, CHUNK_VALUES // album.n_features)
    names = [name for name, _ in pictures]

    def parts(problems: Problems) -> Iterator[Part]:
        for start in range(0, len(names), size):
            ids = names[start : start + size]
            rows = np.zeros((len(ids), album.n_features), dtype=np.uint8)
            album.decode(start, rows, problems)
            yield Part(
                start, rows.astype(np.float32), check_ids(ids, range(start, start + len(ids)), "image", problems)
            )

    return PointStream(str(path), album.n_features, len(names), True, None, album.shape, problems, parts)
