"""Line charts as inline SVG: no plotting library, colours from the page's style sheet, so dark mode works."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

__all__ = ["Series", "line_chart", "nice_ticks"]

WIDTH, HEIGHT = 440, 280
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 44

_TEXT = Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>')
_LINE = Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>')


@dataclass(frozen=True)
class Series:
    """One curve: its name, its values, the number of its colour and dash, and where the values stand.

    Without ``at`` they stand at 1, 2, ...; ``spread`` is half the length of a bar through each value.
    """

    name: str
    values: Sequence[float]
    style: int = 0
    at: Sequence[float] | None = None
    spread: Sequence[float] | None = None

    @property
    def places(self) -> Sequence[float]:
        """Horizontal position of each value."""
        return range(1, len(self.values) + 1) if self.at is None else self.at


def nice_ticks(low: float, high: float, n: int = 5) -> list[float]:
    """Return about ``n`` round numbers that span ``[low, high]``.

    >>> nice_ticks(0.0, 0.47)
    [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    >>> nice_ticks(3.0, 3.0)
    [2.0, 2.5, 3.0, 3.5, 4.0]
    """
    if not high > low:
        low, high = low - 1.0, high + 1.0
    rough = (high - low) / n
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(m for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    y_label: str,
    include: Sequence[float] = (),
    reference: tuple[float, str] | None = None,
) -> Markup:
    """Draw curves as one SVG element that scales with its box; colours come from the page's style sheet.

    Parameters
    ----------
    series
        The curves. Values that are not finite are left out.
    title
        What the picture shows, for screen readers.
    x_label, y_label
        Axis titles, with units.
    include
        Values that the vertical axis must span.
    reference
        A horizontal line: its height and its name.
    """
    finite = [v for s in series for v in s.values if math.isfinite(v)] + list(include)
    if reference is not None:
        finite.append(reference[0])
    y_ticks = nice_ticks(min(finite, default=0.0), max(finite, default=1.0))
    longest = max([float(x) for s in series for x in s.places] + [2.0])
    x_ticks = [t for t in nice_ticks(0.0, longest, 4) if t <= longest]
    low, high = y_ticks[0], y_ticks[-1]

    def x_of(position: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * position / longest

    def y_of(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    parts = [Markup('<svg class="chart" viewBox="0 0 {} {}" role="img"><title>{}</title>').format(WIDTH, HEIGHT, title)]
    for tick in y_ticks:
        y = y_of(tick)
        parts += [
            _LINE.format("grid", LEFT, y, WIDTH - RIGHT, y),
            _TEXT.format("tick", LEFT - 6, y + 4, "end", f"{tick:g}"),
        ]
    for tick in x_ticks:
        x = x_of(tick)
        parts += [
            _LINE.format("axis", x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 4),
            _TEXT.format("tick", x, HEIGHT - BOTTOM + 17, "middle", f"{tick:,.10g}"),
        ]
    parts.append(_LINE.format("axis", LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM))
    if reference is not None:
        y = y_of(reference[0])
        parts += [
            _LINE.format("reference", LEFT, y, WIDTH - RIGHT, y),
            _TEXT.format("tick", WIDTH - RIGHT, y - 5, "end", reference[1]),
        ]
    for s in series:
        shown = [(x_of(x), y_of(v)) for x, v in zip(s.places, s.values, strict=True) if math.isfinite(v)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in shown)
        parts.append(
            Markup('<polyline class="curve s{}" points="{}"><title>{}</title></polyline>').format(
                s.style, points, s.name
            )
        )
        if s.at is not None:  # few measured places: show where they are
            parts += [
                Markup('<circle class="dot s{}" cx="{:.1f}" cy="{:.1f}" r="3"/>').format(s.style, *p) for p in shown
            ]
        for x, v, half in zip(s.places, s.values, s.spread or [], strict=False):
            if math.isfinite(v) and half > 0:
                ends = (y_of(max(low, v - half)), y_of(min(high, v + half)))
                parts.append(_LINE.format(f"bar s{s.style}", x_of(x), ends[0], x_of(x), ends[1]))
    middle = TOP + (HEIGHT - TOP - BOTTOM) / 2
    parts += [
        _TEXT.format("label", LEFT + (WIDTH - LEFT - RIGHT) / 2, HEIGHT - 6, "middle", x_label),
        Markup(
            '<text class="label" transform="translate(13 {:.1f}) rotate(-90)" text-anchor="middle">{}</text>'
        ).format(middle, y_label),
        Markup("</svg>"),
    ]
    return Markup("").join(parts)
