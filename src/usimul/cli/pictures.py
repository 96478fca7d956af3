"""A picture of some images of each class of a data set, with the names of the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from usimul.datasets import Dataset
from usimul.validation import InputError

__all__ = ["class_grid"]

IMAGES = 8  # of each class
SIDE = 64  # images are enlarged, by a whole number, to about this many pixels
GAP, MARGIN = 6, 12
TEXT_SIZE, TITLE_SIZE = 15, 17
GROUND, TEXT, FADED = (255, 255, 255), (20, 20, 20), (110, 110, 110)


def class_grid(data: Dataset, seed: int) -> Image.Image:
    """Draw one row for each original class, with images of the training part drawn at random.

    Examples
    --------
    >>> from usimul.datasets import load_dataset
    >>> class_grid(load_dataset("digits"), seed=0).mode
    'RGB'
    """
    if data.image_shape is None or data.original_train is None or data.image_shape[0] not in (1, 3):
        raise InputError(
            f"data set {data.name!r} is not made of images, so there is no picture of it. Leave --grid out."
        )
    rng = np.random.default_rng(seed)
    classes = np.unique(data.original_train)
    rows = {int(c): np.flatnonzero(data.original_train == c) for c in classes}
    chosen = {c: np.sort(rng.choice(found, min(IMAGES, found.size), replace=False)) for c, found in rows.items()}
    _, height, width = data.image_shape
    factor = max(1, round(SIDE / max(height, width)))
    height, width = height * factor, width * factor

    font, large = _font(TEXT_SIZE), _font(TITLE_SIZE)
    labels = {c: (data.class_names[c], f"{data.y_train[found[0]]:+d}") for c, found in chosen.items()}
    heading = (data.measured_on or data.name, f"task {data.task}: rows are classes, images of the training part")
    # Text is measured first, so that neither names nor heading are cut.
    column = max(_size(text, font)[0] for pair in labels.values() for text in pair) + 2 * GAP
    head = [_size(heading[0], large), _size(heading[1], font)]
    line = max(_size(text, font)[1] for pair in labels.values() for text in pair)
    pitch = max(height, 2 * line + GAP) + GAP
    top = MARGIN + sum(size[1] for size in head) + 3 * GAP
    full_width = 2 * MARGIN + max(column + IMAGES * (width + GAP) - GAP, *(size[0] for size in head))
    picture = Image.new("RGB", (full_width, top + len(chosen) * pitch - GAP + MARGIN), GROUND)
    pen = ImageDraw.Draw(picture)
    pen.text((MARGIN, MARGIN), heading[0], fill=TEXT, font=large)
    pen.text((MARGIN, MARGIN + head[0][1] + GAP), heading[1], fill=FADED, font=font)
    for number, (c, found) in enumerate(chosen.items()):
        y = top + number * pitch
        middle = y + (pitch - GAP) // 2
        pen.text((MARGIN, middle - line - GAP // 2), labels[c][0], fill=TEXT, font=font)
        pen.text((MARGIN, middle + GAP // 2), labels[c][1], fill=FADED, font=font)
        for place, row in enumerate(found):
            image = _image(data.X_train[row], data.image_shape).resize((width, height), Image.Resampling.NEAREST)
            picture.paste(image, (MARGIN + column + place * (width + GAP), y + (pitch - GAP - height) // 2))
    return picture


def _image(row: NDArray[np.float32], shape: tuple[int, ...]) -> Image.Image:
    pixels = np.clip(np.rint(row.reshape(shape) * 255), 0, 255).astype(np.uint8)
    return Image.fromarray(pixels[0] if shape[0] == 1 else np.moveaxis(pixels, 0, 2)).convert("RGB")


def _font(size: int) -> Any:
    return ImageFont.load_default(size)


def _size(text: str, font: Any) -> tuple[int, int]:
    """Width and height that a line of text takes, from the top of the line on."""
    left, _, right, bottom = font.getbbox(f"{text}|")  # the bar reaches as far down as any letter
    return int(np.ceil(right - left)), int(np.ceil(bottom))
