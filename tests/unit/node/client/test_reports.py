"""Reports of the commands that query a node."""

from collections.abc import Iterable

import pytest

from strandline.node.client.answers import ListResult, Point, SampledSeries
from strandline.node.client.node_client import Steps
from strandline.node.client.reports import NamesReport, QueryReport, SeriesReport
from strandline.node.json_values import json_value
from strandline.node.output import Block, Table

pytestmark = pytest.mark.unit

T = 1_763_290_800_000
HOUR = 3_600_000
STEPS = Steps(T, T + 60_000, 15_000)


def lines(blocks: Iterable[Block]) -> list[str]:
    return [line for block in blocks for line in (block.splitlines() if isinstance(block, str) else [str(block)])]


def sampled(name: str, *points: tuple[int, str]) -> SampledSeries:
    return SampledSeries({"__name__": name}, tuple(Point(time, value) for time, value in points))


def answered(*items: SampledSeries, more: bool = False) -> ListResult[SampledSeries]:
    return ListResult(items, more, ())


def test_series_are_lines_and_in_json_labels() -> None:
    report = SeriesReport.of(ListResult(({"__name__": "up", "a": "\x1b"}, {"b": "c"}), False, ("careful",)))
    assert lines(report.blocks()) == ['up{a="\\x1b"}', '{b="c"}']
    assert list(report.notes()) == ["careful"]
    assert json_value(report) == {
        "data": [{"__name__": "up", "a": "\x1b"}, {"b": "c"}],
        "truncated": False,
        "warnings": ["careful"],
    }


def test_names_are_lines() -> None:
    report = NamesReport.of(ListResult(("a", "b\nc"), True, ()), "values")
    assert lines(report.blocks()) == ["a", '"b\\nc"']
    assert list(report.notes()) == ["there are more values than these 2; --limit 0 lists all that the node returns"]
    assert json_value(report) == {"data": ["a", "b\nc"], "truncated": True, "warnings": []}


def test_long_lists_stay_in_order() -> None:
    names = tuple(f"n{number:05}" for number in range(1701))
    assert lines(NamesReport.of(ListResult(names, False, ()), "names").blocks()) == list(names)


def test_warnings_of_a_node_are_printed_without_control_characters() -> None:
    report = NamesReport.of(ListResult((), False, ("\x1b[31mred\n",)), "names")
    assert list(report.notes()) == ["\\x1b[31mred"]


def test_a_query_is_a_table_of_times_and_values() -> None:
    report = QueryReport.of(answered(sampled("a", (T, "1")), sampled("b", (T + 1, "NaN"))), 10)
    [table] = report.blocks()
    assert table == Table(
        ("series", "time", "value"),
        (("a", "2025-11-16T11:00:00Z", "1"), ("b", "2025-11-16T11:00:00.001Z", "NaN")),
    )
    assert json_value(report) == {
        "data": [
            {"metric": {"__name__": "a"}, "values": [[T / 1000, "1"]]},
            {"metric": {"__name__": "b"}, "values": [[T / 1000 + 0.001, "NaN"]]},
        ],
        "truncated": False,
        "warnings": [],
        "infos": [],
    }


def test_warnings_and_infos_of_a_query_are_notes_and_separate_fields_in_json() -> None:
    result = ListResult((sampled("a", (T, "1")),), False, ("a shard is away",), ("metric might not be a counter",))
    report = QueryReport.of(result, 10)
    assert list(report.notes()) == ["a shard is away", "metric might not be a counter"]
    document = json_value(report)
    assert isinstance(document, dict)
    assert (document["warnings"], document["infos"]) == (["a shard is away"], ["metric might not be a counter"])


def test_a_range_is_a_table_with_at_most_limit_lines() -> None:
    result = answered(sampled("a", (T, "1"), (T + 15_000, "2")), sampled("b", (T, "3")))
    report = QueryReport.of(result, 2, steps=STEPS)
    [table] = report.blocks()
    assert isinstance(table, Table)
    assert [row[::2] for row in table.rows] == [("a", "1"), ("a", "2")]
    assert list(report.notes()) == ["only the first 2 of 3 lines are shown; --limit 0 shows all"]
    [table] = QueryReport.of(result, 0, steps=STEPS).blocks()
    assert isinstance(table, Table)
    assert len(table.rows) == 3
    assert list(QueryReport.of(result, 0, steps=STEPS).notes()) == []


def test_a_range_on_a_terminal_is_a_plot_on_the_grid_of_its_steps() -> None:
    result = answered(sampled("a", (T, "0"), (T + 30_000, "7"), (T + 60_000, "NaN")))
    report = QueryReport.of(result, 1, steps=STEPS, plot_width=60)
    assert lines(report.blocks()) == [
        "2025-11-16T11:00:00Z to 2025-11-16T11:01:00Z, every 15s",
        "a",
        "  ▁ █    0 to 7, last NaN, 1 not finite",
    ]
    assert list(report.notes()) == [], "a plot has two lines per series for any number of points"


def test_a_plot_counts_values_that_are_not_finite() -> None:
    result = answered(sampled("a", (T, "\x1b"), (T - 15_000, "1"), (T + 75_000, "1")))
    assert lines(QueryReport.of(result, 9, steps=STEPS, plot_width=60).blocks())[1:] == [
        "a",
        "    1 to 1, last 1, 1 not finite",
    ]


def test_an_empty_result_has_a_note() -> None:
    report = QueryReport.of(answered(), 10)
    assert list(report.blocks()) == []
    at_a_moment = "no series has a sample at that time, or up to query.lookback (5m by default) before it"
    assert list(report.notes()) == [at_a_moment]
    assert list(QueryReport.of(answered(), 10, steps=STEPS).notes()) == ["no series has a sample in that range"]


def test_an_empty_result_with_long_steps_has_a_hint() -> None:
    [note] = QueryReport.of(answered(), 10, steps=Steps(T, T + 24 * HOUR, HOUR)).notes()
    assert "other samples between the steps are not used" in note
    assert "the step is 1h: use a shorter --step" in note
