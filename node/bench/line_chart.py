"""Line charts as stand-alone SVG, with axes that begin at zero.

Each point is labelled with its value. Labels are placed so that they don't overlap.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

# A panel: the margins around the axes, and the size of the plot area.
LEFT, RIGHT, ABOVE, BELOW = 64, 36, 74, 52
WIDTH, HEIGHT = 420, 280
HEAD = 64
COLOURS = ("#2f6fb3", "#d1603d", "#3d8f5f", "#8a5bb0")
MARKERS = ("circle", "square", "diamond", "triangle")
_TICKS = 5
# The maximum width of a character and the height of a line, in the font size of the values.
_CHARACTER_WIDTH, _LINE_HEIGHT = 7.2, 15.0


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a line. Both coordinates are non-negative."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Line:
    """The points of a line, sorted by x."""

    label: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes. `unit` is appended to each value of y."""

    title: str
    x_label: str
    y_label: str
    unit: str
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle of the picture, by its edges."""

    left: float
    top: float
    right: float
    bottom: float

    def covers(self, other: "Box") -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def holds(self, other: "Box") -> bool:
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.top <= other.top
            and other.bottom <= self.bottom
        )


def ticks(maximum: float) -> list[float]:
    """Round numbers from zero to at least `maximum`, which are 1, 2 or 5 times a power of ten apart."""
    if maximum <= 0:
        return [0.0, 1.0]
    rough = maximum / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    # Tolerates rounding errors.
    step = next(times * power for times in (1, 2, 5, 10) if times * power >= rough * (1 - 1e-9))
    count = math.ceil(maximum / step * (1 - 1e-9))
    return [step * number for number in range(max(1, count) + 1)]


def line_charts(title: str, subtitle: str, panels: Sequence[Panel]) -> str:
    """The panels side by side, under one title."""
    width = (LEFT + WIDTH + RIGHT) * len(panels)
    height = HEAD + ABOVE + HEIGHT + BELOW
    drawn = "\n".join(
        line
        for number, panel in enumerate(panels)
        for line in _Drawing(panel, (LEFT + WIDTH + RIGHT) * number + LEFT, HEAD + ABOVE).lines()
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-size="13"
  font-family="DejaVu Sans, Helvetica, Arial, sans-serif">
<style>
  svg {{ background: #ffffff; }} text {{ fill: #1d2b36; }} .title {{ font-size: 17px; font-weight: bold; }}
  .subtitle {{ font-size: 12px; fill: #4a5a66; }} .panel {{ font-size: 14px; font-weight: bold; }}
  .grid {{ stroke: #e3e9ee; }} .axis {{ stroke: #4a5a66; }} .line {{ fill: none; stroke-width: 2; }}
  .x {{ text-anchor: middle; font-size: 11px; fill: #4a5a66; }}
  .y {{ text-anchor: end; font-size: 11px; fill: #4a5a66; }}
  .label {{ font-size: 12px; fill: #4a5a66; text-anchor: middle; }} .legend {{ font-size: 12px; }}
  .value {{ font-size: 11px; text-anchor: middle; paint-order: stroke; stroke: #ffffff; stroke-width: 3px; }}
</style>
<text x="20" y="28" class="title">{escape(title)}</text>
<text x="20" y="50" class="subtitle">{escape(subtitle)}</text>
{drawn}
</svg>
"""


@dataclass(slots=True)
class _Drawing:
    """Draws one panel. `left` and `top` are the upper left corner of its plot area."""

    panel: Panel
    left: float
    top: float
    _occupied: list[Box] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        panel = self.panel
        yield f'<text x="{self.left}" y="{self.top - 52}" class="panel">{escape(panel.title)}</text>'
        yield from self._legend()
        yield from self._axes()
        for number, line in enumerate(panel.lines):
            colour = COLOURS[number % len(COLOURS)]
            path = " ".join(f"{self._x(point.x):.1f},{self._y(point.y):.1f}" for point in line.points)
            yield f'<polyline points="{path}" class="line" stroke="{colour}"/>'
            for point in line.points:
                yield _marker(number, self._x(point.x), self._y(point.y))
                self._occupied.append(_around(self._x(point.x), self._y(point.y), 8, 8))
        yield from self._values()

    @property
    def _x_ticks(self) -> list[float]:
        return ticks(max(point.x for line in self.panel.lines for point in line.points))

    @property
    def _y_ticks(self) -> list[float]:
        return ticks(max(point.y for line in self.panel.lines for point in line.points))

    def _x(self, value: float) -> float:
        return self.left + WIDTH * value / self._x_ticks[-1]

    def _y(self, value: float) -> float:
        return self.top + HEIGHT * (1 - value / self._y_ticks[-1])

    def _legend(self) -> Iterator[str]:
        x = self.left + 6
        for number, line in enumerate(self.panel.lines):
            yield _marker(number, x, self.top - 30)
            yield f'<text x="{x + 10:.1f}" y="{self.top - 26}" class="legend">{escape(line.label)}</text>'
            x += 34 + _CHARACTER_WIDTH * len(line.label)

    def _axes(self) -> Iterator[str]:
        right, bottom = self.left + WIDTH, self.top + HEIGHT
        for value in self._y_ticks:
            y, kind = self._y(value), "grid" if value else "axis"
            yield f'<line x1="{self.left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" class="{kind}"/>'
            yield f'<text x="{self.left - 8}" y="{y + 4:.1f}" class="y">{value:,.6g}</text>'
        for value in self._x_ticks:
            x, kind = self._x(value), "grid" if value else "axis"
            yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{self.top}" y2="{bottom}" class="{kind}"/>'
            yield f'<text x="{x:.1f}" y="{bottom + 18}" class="x">{_short(value)}</text>'
        middle = self.top + HEIGHT / 2
        yield f'<text x="{self.left + WIDTH / 2}" y="{bottom + 40}" class="label">{escape(self.panel.x_label)}</text>'
        aside = self.left - 48
        turned = f'transform="rotate(-90 {aside} {middle})"'
        yield f'<text x="{aside}" y="{middle}" class="label" {turned}>{escape(self.panel.y_label)}</text>'

    def _values(self) -> Iterator[str]:
        points = ((number, point) for number, line in enumerate(self.panel.lines) for point in line.points)
        for number, point in sorted(points, key=lambda one: (one[1].x, -one[1].y)):
            text = f"{point.y:,.0f}{self.panel.unit}" if point.y >= 100 else f"{point.y:.3g}{self.panel.unit}"
            box = self._free_box(self._x(point.x), self._y(point.y), _CHARACTER_WIDTH * len(text))
            self._occupied.append(box)
            x, y = (box.left + box.right) / 2, box.bottom - 4
            colour = COLOURS[number % len(COLOURS)]
            yield f'<text x="{x:.1f}" y="{y:.1f}" class="value" style="fill: {colour}">{escape(text)}</text>'

    def _free_box(self, x: float, y: float, width: float) -> Box:
        """The nearest box for a value of this width that overlaps neither another value nor a marker."""
        # There is room for half of a value to the right of the axes.
        room = Box(self.left + 1, self.top - 20, self.left + WIDTH + RIGHT, self.top + HEIGHT)
        return next(
            (box for box in _near(x, y, width) if room.holds(box) and not any(map(box.covers, self._occupied))),
            _around(x, y - 14, width, _LINE_HEIGHT),
        )


def _near(x: float, y: float, width: float) -> Iterable[Box]:
    """Boxes around a point: above, below and beside it, with increasing distance."""
    for away in range(8):
        for up in (-1, 1):
            yield _around(x, y + up * (13 + _LINE_HEIGHT * away), width, _LINE_HEIGHT)
        for aside in (1, -1):
            for up in (-1, 1):
                yield _around(x + aside * (width / 2 + 6), y + up * _LINE_HEIGHT * away, width, _LINE_HEIGHT)


def _around(x: float, y: float, width: float, height: float) -> Box:
    return Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def _marker(number: int, x: float, y: float) -> str:
    """The marker of a line. Lines differ in shape and colour."""
    colour = COLOURS[number % len(COLOURS)]
    corners: tuple[tuple[float, float], ...]
    match MARKERS[number % len(MARKERS)]:
        case "circle":
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
        case "square":
            return f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" fill="{colour}"/>'
        case "diamond":
            corners = ((x, y - 5.5), (x + 5.5, y), (x, y + 5.5), (x - 5.5, y))
        case _:
            corners = ((x, y - 5), (x + 5, y + 4), (x - 5, y + 4))
    path = " ".join(f"{across:.1f},{down:.1f}" for across, down in corners)
    return f'<polygon points="{path}" fill="{colour}"/>'


def _short(value: float) -> str:
    """A number with M for millions and k for thousands."""
    for size, letter in ((1_000_000, " M"), (1_000, " k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"
