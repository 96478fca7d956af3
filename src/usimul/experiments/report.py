"""One self-contained HTML page about a demo: table, curves as inline SVG, settings. It fetches nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from usimul.experiments.demo import DemoResult

__all__ = ["Series", "line_chart", "nice_ticks", "render_demo"]

WIDTH, HEIGHT = 440, 280
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 44

_TEXT = Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>')
_LINE = Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>')


@dataclass(frozen=True)
class Series:
    """One curve: its name, its values at 1, 2, ..., and the number of its colour and dash."""

    name: str
    values: Sequence[float]
    style: int = 0


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
    longest = max([len(s.values) for s in series] + [2])
    x_ticks = [t for t in nice_ticks(0.0, float(longest), 4) if t <= longest]
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
            _TEXT.format("tick", x, HEIGHT - BOTTOM + 17, "middle", f"{tick:g}"),
        ]
    parts.append(_LINE.format("axis", LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM))
    if reference is not None:
        y = y_of(reference[0])
        parts += [
            _LINE.format("reference", LEFT, y, WIDTH - RIGHT, y),
            _TEXT.format("tick", WIDTH - RIGHT, y - 5, "end", reference[1]),
        ]
    for s in series:
        points = " ".join(f"{x_of(i):.1f},{y_of(v):.1f}" for i, v in enumerate(s.values, start=1) if math.isfinite(v))
        parts.append(
            Markup('<polyline class="curve s{}" points="{}"><title>{}</title></polyline>').format(
                s.style, points, s.name
            )
        )
    middle = TOP + (HEIGHT - TOP - BOTTOM) / 2
    parts += [
        _TEXT.format("label", LEFT + (WIDTH - LEFT - RIGHT) / 2, HEIGHT - 6, "middle", x_label),
        Markup(
            '<text class="label" transform="translate(13 {:.1f}) rotate(-90)" text-anchor="middle">{}</text>'
        ).format(middle, y_label),
        Markup("</svg>"),
    ]
    return Markup("").join(parts)


def render_demo(result: DemoResult) -> str:
    """Return the page."""
    environment = Environment(
        loader=PackageLoader("usimul.experiments"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    constant = min(result.prior, 1.0 - result.prior)
    label_free = line_chart(
        [Series(row.method, row.label_free_risk, i) for i, row in enumerate(result.rows)],
        title="Label-free risk on test points by epoch, one curve for each method",
        x_label="epoch",
        y_label="label-free risk (error rate)",
        include=(0.0, 0.5),
        reference=(constant, "one class for all points"),
    )
    risks = [
        line_chart(
            [Series(row.method, row.risk, i)],
            title=f"Training risk of {row.method} by epoch",
            x_label="epoch",
            y_label="training risk (own units)",
        )
        for i, row in enumerate(result.rows)
    ]
    template = environment.get_template("demo.html")
    return template.render(result=result, label_free=label_free, risks=list(zip(result.rows, risks, strict=True)))
