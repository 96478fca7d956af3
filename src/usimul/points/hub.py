"""Points from a Hugging Face ``datasets.Dataset``: its images, or its columns of numbers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from usimul.files import columns_missing
from usimul.points.base import ID, Points, check_ids
from usimul.points.frames import points_of_arrow
from usimul.points.images import points_of_images
from usimul.validation import Problems

__all__ = ["points_of_dataset"]


def points_of_dataset(
    data: Any,
    source: str,
    id_column: str | None,
    ignore: Sequence[str],
    size: tuple[int, int] | None,
    mode: str | None,
    problems: Problems,
) -> Points | None:
    """Take the one column of images, if there is one; else every column of numbers, as of an Arrow table.

    A column of classes is never a feature: it has to be ignored by name.
    """
    import datasets

    plain = data.with_format(None)
    kinds = {name: kind for name, kind in plain.features.items() if name not in ignore}
    images = [name for name, kind in kinds.items() if isinstance(kind, datasets.Image)]
    if len(images) > 1:
        problems.add("One column of images is expected", f"there are: {', '.join(images)}", advice="Ignore the others.")
        return None
    if not images:
        for name, kind in kinds.items():
            if isinstance(kind, datasets.ClassLabel):
                problems.add(
                    "Features must not be labels",
                    f"column {name!r} holds classes ({', '.join(kind.names[:6])})",
                    advice=f"Leave it out: ignore=[{name!r}].",
                )
        table = data.with_format("arrow")[:]
        return points_of_arrow(table, source, id_column, ignore, problems)
    if columns_missing([id_column] if id_column else [], list(plain.features), problems):
        return None
    if not len(data):
        problems.add("At least one point is expected", "the data set has no rows")
        return None
    by = id_column or (ID if ID in kinds else None)
    ids = None if by is None else check_ids(plain[by][:], range(len(plain)), "row", problems)
    column = plain.select_columns(images)
    pictures = [(f"row {row}", functools.partial(_picture, column, row, images[0])) for row in range(len(plain))]
    return points_of_images(pictures, source, size, mode, problems, ids=ids)


def _picture(column: Any, row: int, name: str) -> Any:
    return column[row][name]
