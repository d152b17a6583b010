"""Line charts, read back from their SVG."""

import math
import xml.etree.ElementTree as ET
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.bench.line_chart import HEIGHT, WIDTH, Box, Line, Panel, Point, line_charts, ticks

pytestmark = pytest.mark.unit

SVG = "{http://www.w3.org/2000/svg}"
DIRECT = Line("direct", [Point(2_500, 4.0), Point(5_000, 8.0), Point(10_000, 16.0)])
ON_SPARK = Line("on Spark", [Point(2_500, 12.0), Point(5_000, 14.0), Point(10_000, 18.0)])
PANEL = Panel("Against lag", "records", "seconds", " s", [DIRECT, ON_SPARK])


def drawn(*panels: Panel) -> ET.Element:
    return ET.fromstring(line_charts("Starts", "on a machine", panels))  # noqa: S314 - our own text


def texts(picture: ET.Element, kind: str) -> list[ET.Element]:
    return [text for text in picture.iter(f"{SVG}text") if text.get("class") == kind]


def words(picture: ET.Element, kind: str) -> list[str]:
    return ["".join(text.itertext()) for text in texts(picture, kind)]


def places(line: ET.Element) -> list[tuple[float, float]]:
    return [tuple(map(float, pair.split(","))) for pair in line.get("points", "").split()]  # type: ignore[misc]


def value_boxes(picture: ET.Element) -> list[Box]:
    """The boxes of the value labels. A width of 6.5 per character is more than any digit has at that size."""
    boxes = []
    for text in texts(picture, "value"):
        x, y, half = float(text.get("x", 0)), float(text.get("y", 0)), 6.5 * len(text.text or "") / 2
        boxes.append(Box(x - half, y - 10, x + half, y + 3))
    return boxes


@given(st.floats(1e-3, 1e9))
def test_ticks_are_round_numbers_that_just_reach_the_maximum(maximum: float) -> None:
    drawn = ticks(maximum)
    step = drawn[1]
    assert drawn[0] == 0
    assert drawn == pytest.approx([step * number for number in range(len(drawn))])
    assert 3 <= len(drawn) <= 7
    assert drawn[-1] >= maximum * (1 - 1e-6)
    assert drawn[-2] < maximum
    leading = step / 10 ** math.floor(math.log10(step) + 1e-9)
    assert round(leading, 6) in (1, 2, 5)


@pytest.mark.parametrize(
    ("maximum", "expected"),
    [
        (0, [0, 1]),
        (5, [0, 1, 2, 3, 4, 5]),
        (10_000, [0, 2_000, 4_000, 6_000, 8_000, 10_000]),
        (0.7, [0, 0.2, 0.4, 0.6, 0.8]),
    ],
)
def test_a_round_maximum_is_the_last_tick(maximum: float, expected: list[float]) -> None:
    assert ticks(maximum) == pytest.approx(expected)


def test_points_are_drawn_at_their_values_on_axes_from_zero() -> None:
    picture = drawn(PANEL)
    direct, on_spark = picture.iter(f"{SVG}polyline")
    (x_axis, y_axis) = [line for line in picture.iter(f"{SVG}line") if line.get("class") == "axis"]
    left, bottom = float(y_axis.get("x1", 0)), float(x_axis.get("y1", 0))
    # The axes end at 10,000 records and 20 seconds.
    assert places(direct) == [
        (left + WIDTH / 4, bottom - HEIGHT * 0.2),
        (left + WIDTH / 2, bottom - HEIGHT * 0.4),
        (left + WIDTH, bottom - HEIGHT * 0.8),
    ]
    assert places(on_spark)[0] == (left + WIDTH / 4, bottom - HEIGHT * 0.6)


def test_every_line_and_axis_is_labelled() -> None:
    picture = drawn(PANEL, Panel("Against series", "series", "seconds", " s", [Line("warm", [Point(1e6, 3.2)])]))
    assert words(picture, "title") == ["Starts"]
    assert words(picture, "subtitle") == ["on a machine"]
    assert words(picture, "panel") == ["Against lag", "Against series"]
    assert words(picture, "legend") == ["direct", "on Spark", "warm"]
    assert words(picture, "label") == ["records", "seconds", "series", "seconds"]


def test_axes_have_numbers_and_each_point_its_value() -> None:
    picture = drawn(PANEL)
    assert words(picture, "x") == ["0", "2 k", "4 k", "6 k", "8 k", "10 k"]
    assert words(picture, "y") == ["0", "5", "10", "15", "20"]
    assert sorted(words(picture, "value")) == sorted(["4 s", "8 s", "16 s", "12 s", "14 s", "18 s"])


def test_millions_are_written_as_such() -> None:
    picture = drawn(Panel("", "series", "seconds", " s", [Line("warm", [Point(1_000_000, 3.14159)])]))
    assert words(picture, "x") == ["0", "200 k", "400 k", "600 k", "800 k", "1 M"]
    assert words(picture, "value") == ["3.14 s"]


def test_lines_differ_in_shape_as_well_as_in_colour() -> None:
    lines = [Line(str(number), [Point(1, number + 1)]) for number in range(4)]
    picture = drawn(Panel("", "", "", "", lines))
    symbols = [
        (element.tag, len(places(element)), element.get("fill"))
        for element in picture
        if element.get("fill") and element.tag != f"{SVG}text"
    ]
    assert len(set(symbols)) == 4
    assert len({(tag, corners) for tag, corners, _ in symbols}) == 4
    assert len({colour for *_, colour in symbols}) == 4


def test_names_are_escaped_in_a_picture() -> None:
    picture = drawn(Panel("a < b & c", "x > y", '"quoted"', " <s>", [Line("<line>", [Point(1, 2)])]))
    assert words(picture, "panel") == ["a < b & c"]
    assert words(picture, "legend") == ["<line>"]
    assert words(picture, "value") == ["2 <s>"]


def test_panels_are_side_by_side() -> None:
    picture = drawn(PANEL, PANEL)
    one, other = texts(picture, "panel")
    first = places(next(picture.iter(f"{SVG}polyline")))
    assert float(other.get("x", 0)) > max(x for x, _ in first) > float(one.get("x", 0))
    _, _, width, _ = map(float, picture.get("viewBox", "").split())
    assert all(x < width for line in picture.iter(f"{SVG}polyline") for x, _ in places(line))


times = st.floats(0.01, 300)


@given(st.lists(st.tuples(times, times, times), min_size=1, max_size=4))
def test_no_value_covers_another_or_leaves_the_picture(seconds: list[tuple[float, float, float]]) -> None:
    lines = [
        Line(str(number), [Point(x, y) for x, y in zip((2_500, 5_000, 10_000), values, strict=True)])
        for number, values in enumerate(seconds)
    ]
    picture = drawn(Panel("", "", "", " s", lines))
    boxes = value_boxes(picture)
    assert len(boxes) == 3 * len(lines)
    assert not [pair for pair in combinations(boxes, 2) if pair[0].covers(pair[1])]
    _, _, width, height = map(float, picture.get("viewBox", "").split())
    assert all(Box(0, 0, width, height).holds(box) for box in boxes)


def test_points_that_coincide_have_each_their_value() -> None:
    lines = [Line(str(number), [Point(1_000, 5.0)]) for number in range(4)]
    boxes = value_boxes(drawn(Panel("", "", "", " s", lines)))
    assert len(boxes) == 4
    assert not [pair for pair in combinations(boxes, 2) if pair[0].covers(pair[1])]
