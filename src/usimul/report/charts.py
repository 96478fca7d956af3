"""Line charts and histograms as inline SVG: no plotting library; colours from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

__all__ = ["Series", "histogram", "line_chart", "nice_ticks"]

WIDTH, HEIGHT = 440, 280
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 44

_TEXT = Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>')
_LINE = Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>')


@dataclass(frozen=True)
class Series:
    """One curve: its name, its values, the number of its colour and dash, and where the values stand.

    Without ``at`` they stand at 1, 2, ...; ``spread`` is half the length of a bar through each value, ``between`` are
    the ends of such a bar where they are not equally far. With ``dots``, values that have places are marked.
    """

    name: str
    values: Sequence[float]
    style: int = 0
    at: Sequence[float] | None = None
    spread: Sequence[float] | None = None
    between: Sequence[tuple[float, float]] | None = None
    dots: bool = True

    @property
    def bars(self) -> list[tuple[float, float, float]]:
        """Place and ends of each bar."""
        ends = self.between
        if ends is None:
            ends = [(v - half, v + half) for v, half in zip(self.values, self.spread or [], strict=False)]
        return [(x, *pair) for x, pair in zip(self.places, ends, strict=False) if pair[1] > pair[0]]

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


@dataclass(frozen=True)
class _Frame:
    """The rectangle of a chart: where numbers lie in it, its lines, ticks and titles."""

    x_ticks: Sequence[float]
    y_ticks: Sequence[float]
    x_range: tuple[float, float]

    def x(self, position: float) -> float:
        low, high = self.x_range
        return LEFT + (WIDTH - LEFT - RIGHT) * (position - low) / (high - low)

    def y(self, value: float) -> float:
        low, high = self.y_ticks[0], self.y_ticks[-1]
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    def start(self, title: str) -> list[Markup]:
        """Open the picture, and draw what lies below the data."""
        parts = [
            Markup('<svg class="chart" viewBox="0 0 {} {}" role="img"><title>{}</title>').format(WIDTH, HEIGHT, title)
        ]
        for tick in self.y_ticks:
            y = self.y(tick)
            parts += [
                _LINE.format("grid", LEFT, y, WIDTH - RIGHT, y),
                _TEXT.format("tick", LEFT - 6, y + 4, "end", f"{tick:g}"),
            ]
        for tick in self.x_ticks:
            x = self.x(tick)
            parts += [
                _LINE.format("axis", x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 4),
                _TEXT.format("tick", x, HEIGHT - BOTTOM + 17, "middle", f"{tick:,.10g}"),
            ]
        return [*parts, _LINE.format("axis", LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM)]

    def end(self, x_label: str, y_label: str) -> list[Markup]:
        """Write the titles of the axes, and close the picture."""
        middle = TOP + (HEIGHT - TOP - BOTTOM) / 2
        return [
            _TEXT.format("label", LEFT + (WIDTH - LEFT - RIGHT) / 2, HEIGHT - 6, "middle", x_label),
            Markup(
                '<text class="label" transform="translate(13 {:.1f}) rotate(-90)" text-anchor="middle">{}</text>'
            ).format(middle, y_label),
            Markup("</svg>"),
        ]


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    y_label: str,
    include: Sequence[float] = (),
    reference: tuple[float, str] | None = None,
    x_range: tuple[float, float] | None = None,
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
    x_range
        Ends of the horizontal axis; None takes 0 and the last place of a value.
    """
    finite = [v for s in series for v in s.values if math.isfinite(v)] + list(include)
    if reference is not None:
        finite.append(reference[0])
    y_ticks = nice_ticks(min(finite, default=0.0), max(finite, default=1.0))
    start, stop = x_range or (0.0, max([float(x) for s in series for x in s.places] + [2.0]))
    frame = _Frame([t for t in nice_ticks(start, stop, 4) if start <= t <= stop], y_ticks, (start, stop))
    low, high = y_ticks[0], y_ticks[-1]
    parts = frame.start(title)
    if reference is not None:
        y = frame.y(reference[0])
        parts += [
            _LINE.format("reference", LEFT, y, WIDTH - RIGHT, y),
            _TEXT.format("tick", WIDTH - RIGHT, y - 5, "end", reference[1]),
        ]
    for s in series:
        shown = [(frame.x(x), frame.y(v)) for x, v in zip(s.places, s.values, strict=True) if math.isfinite(v)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in shown)
        parts.append(
            Markup('<polyline class="curve s{}" points="{}"><title>{}</title></polyline>').format(
                s.style, points, s.name
            )
        )
        if s.at is not None and s.dots:  # few measured places: show where they are
            parts += [
                Markup('<circle class="dot s{}" cx="{:.1f}" cy="{:.1f}" r="3"/>').format(s.style, *p) for p in shown
            ]
        for x, *pair in s.bars:
            if all(map(math.isfinite, pair)):
                ends = (frame.y(max(low, pair[0])), frame.y(min(high, pair[1])))
                parts.append(_LINE.format(f"bar s{s.style}", frame.x(x), ends[0], frame.x(x), ends[1]))
    return Markup("").join(parts + frame.end(x_label, y_label))


def histogram(
    edges: Sequence[float], counts: Sequence[float], *, title: str, x_label: str, y_label: str, split: float = 0.0
) -> Markup:
    """Draw counts between edges as bars; those from ``split`` on have the second colour.

    >>> str(histogram([-1.0, 0.0, 1.0], [3, 5], title="t", x_label="x", y_label="y")).count("<rect")
    2
    """
    stop = (float(edges[0]), float(edges[-1]))
    x_ticks = [t for t in nice_ticks(*stop, 6) if stop[0] <= t <= stop[1]]
    frame = _Frame(x_ticks, nice_ticks(0.0, max(*counts, 1e-9), 4), stop)
    parts = frame.start(title)
    for left, right, count in zip(edges[:-1], edges[1:], counts, strict=True):
        style = int(0.5 * (left + right) >= split)
        place = (frame.x(left) + 0.5, frame.y(count), max(0.5, frame.x(right) - frame.x(left) - 1), frame.y(0.0))
        rect = '<rect class="block b{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>'
        parts.append(Markup(rect).format(style, *place[:3], place[3] - place[1]))
    if stop[0] < split < stop[1]:
        parts.append(_LINE.format("reference", frame.x(split), TOP, frame.x(split), HEIGHT - BOTTOM))
    return Markup("").join(parts + frame.end(x_label, y_label))
