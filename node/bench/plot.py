"""A bar chart of times with a logarithmic scale, as stand-alone SVG."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

ROW, LABELS, BARS, MARGIN = 26, 330, 520, 20


@dataclass(frozen=True, slots=True)
class Bar:
    """One time with its label, and an optional note."""

    label: str
    milliseconds: float
    note: str = ""


def bar_chart(title: str, subtitle: str, bars: Sequence[Bar]) -> str:
    """The chart. It has a grid line for each power of ten from below the shortest bar to above the longest."""
    shortest, longest = min(bar.milliseconds for bar in bars), max(bar.milliseconds for bar in bars)
    low, high = math.floor(math.log10(shortest)) - 0.3, math.ceil(math.log10(longest) + 0.001)
    width, top = LABELS + BARS + 2 * MARGIN, 78
    height = top + ROW * len(bars) + 40

    def x(milliseconds: float) -> float:
        return MARGIN + LABELS + BARS * (math.log10(milliseconds) - low) / (high - low)

    lines = []
    for power in range(math.ceil(low), high + 1):
        x_line = x(10.0**power)
        lines.append(f'<line x1="{x_line:.1f}" x2="{x_line:.1f}" y1="{top - 8}" y2="{height - 32}" class="grid"/>')
        lines.append(f'<text x="{x_line:.1f}" y="{height - 14}" class="tick">{_duration(10.0**power)}</text>')
    for number, bar in enumerate(bars):
        y = top + ROW * number
        end = x(bar.milliseconds)
        text = _duration(bar.milliseconds) + (f" · {bar.note}" if bar.note else "")
        lines.append(f'<text x="{MARGIN + LABELS - 10}" y="{y + 14}" class="label">{escape(bar.label)}</text>')
        lines.append(
            f'<rect x="{MARGIN + LABELS}" y="{y}" width="{end - MARGIN - LABELS:.1f}" height="18" class="bar"/>'
        )
        inside = end > MARGIN + LABELS + BARS * 0.62
        x_text, kind = (end - 6, "inside") if inside else (end + 6, "outside")
        lines.append(f'<text x="{x_text:.1f}" y="{y + 14}" class="{kind}">{escape(text)}</text>')
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-size="13"
  font-family="DejaVu Sans, Helvetica, Arial, sans-serif">
<style>
  svg {{ background: #ffffff; }} text {{ fill: #1d2b36; }} .title {{ font-size: 17px; font-weight: bold; }}
  .subtitle {{ font-size: 12px; fill: #4a5a66; }} .grid {{ stroke: #d6dee5; }} .bar {{ fill: #5b9bd5; }}
  .label {{ text-anchor: end; }} .tick {{ text-anchor: middle; font-size: 11px; fill: #4a5a66; }}
  .outside {{ font-size: 12px; }} .inside {{ font-size: 12px; text-anchor: end; fill: #ffffff; }}
</style>
<text x="{MARGIN}" y="28" class="title">{escape(title)}</text>
<text x="{MARGIN}" y="50" class="subtitle">{escape(subtitle)}</text>
{chr(10).join(lines)}
</svg>
"""


def _duration(milliseconds: float) -> str:
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.3g} s"
    if milliseconds < 1:
        return f"{milliseconds * 1000:.3g} µs"
    return f"{milliseconds:.3g} ms"
