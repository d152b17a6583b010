"""The query box of the status page in a real browser: completion, errors at their position, plot, table and cost."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from strandline.clock import SystemClock
from support.fake_queries import FakeQueries
from support.page_node import PageNode
from support.watched_page import WatchedPage

pytestmark = pytest.mark.browser

Watched = Callable[..., WatchedPage]
Series = list[tuple[dict[str, str], list[tuple[int, float]]]]


def series() -> Series:
    """Counters and gauges of the last hour, and of the next ten minutes, which the tests take at most."""
    now = SystemClock().now_ms()
    times = range(now - 3_600_000, now + 600_000, 15_000)

    def rising(per_second: float, **labels: str) -> tuple[dict[str, str], list[tuple[int, float]]]:
        samples = [(when, (when - times[0]) / 1000 * per_second) for when in times]
        return {"__name__": "cpu_seconds_total"} | labels, samples

    return [
        rising(1, mode="idle", host="a"),
        rising(2, mode="user", host="a"),
        rising(3, mode="user", host="b"),
        ({"__name__": "temperature", "host": "a", "room": 'the "cold" one'}, [(when, 21.5) for when in times]),
        ({"__name__": "disk.free", "host": "a"}, [(when, 7.0) for when in times]),
    ]


@pytest.fixture(scope="module")
def node() -> Iterator[PageNode]:
    with PageNode(FakeQueries(series())) as node:
        yield node


def box(page: Page) -> Locator:
    return page.locator("#query")


def type_query(page: Page, text: str) -> None:
    """Type a text, the last letter with a key press."""
    box(page).fill(text[:-1])
    box(page).press_sequentially(text[-1])


def offered(page: Page) -> Locator:
    return page.locator("#completions [role=option] .word")


def test_functions_metrics_labels_and_values_are_completed_with_the_keyboard_alone(
    node: PageNode, watched: Watched
) -> None:
    page = watched().open(node.url)
    type_query(page, "rat")
    expect(offered(page).first).to_have_text("rate")
    expect(page.locator("#completions li").first).to_contain_text("(range vector)")
    page.keyboard.press("Tab")
    expect(box(page)).to_have_value("rate()")
    page.keyboard.type("cpu")
    expect(offered(page)).to_have_text(["cpu_seconds_total"])
    expect(box(page)).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#completions [aria-selected=true]")).to_have_text("cpu_seconds_totalmetric")
    expect(box(page)).to_have_attribute("aria-activedescendant", "completion-0")
    page.keyboard.press("Enter")
    expect(box(page)).to_have_value("rate(cpu_seconds_total)")
    expect(page.locator("#completions")).to_be_hidden()
    page.keyboard.type("{")
    # The labels of this metric, not of all.
    expect(offered(page)).to_have_text(["host", "mode"])
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    expect(box(page)).to_have_value('rate(cpu_seconds_total{mode="")')
    expect(offered(page)).to_have_text(["idle", "user"])
    page.keyboard.type("u")
    expect(offered(page)).to_have_text(["user"])
    page.keyboard.press("Tab")
    expect(box(page)).to_have_value('rate(cpu_seconds_total{mode="user")')
    page.keyboard.type("}[5")
    expect(offered(page)).to_have_text(["5m"])
    page.keyboard.press("Tab")
    page.keyboard.type("]")
    page.keyboard.press("Enter")
    expect(page.locator("#plot .lines path")).to_have_count(2)


def test_escape_closes_the_list_and_enter_runs_the_query(node: PageNode, watched: Watched) -> None:
    page = watched().open(node.url)
    type_query(page, "temp")
    expect(offered(page)).to_have_text(["temperature"])
    page.keyboard.press("Escape")
    expect(page.locator("#completions")).to_be_hidden()
    expect(box(page)).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Control+Space")
    expect(offered(page)).to_have_text(["temperature"])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(box(page)).to_have_value("temperature")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("> 20")
    page.keyboard.press("Enter")
    expect(page.locator("#plot .lines path")).to_have_count(1)
    assert box(page).input_value() == "temperature\n> 20"


def test_values_and_names_that_need_quotes_are_completed_with_quotes(node: PageNode, watched: Watched) -> None:
    page = watched().open(node.url, "#show=table")
    type_query(page, 'temperature{room="')
    expect(offered(page)).to_have_text(['the "cold" one'])
    page.keyboard.press("Tab")
    expect(box(page)).to_have_value('temperature{room="the \\"cold\\" one"')
    page.keyboard.type("} + on(ho")
    expect(offered(page)).to_have_text(["host"])
    page.keyboard.press("Tab")
    page.keyboard.type(") disk")
    expect(offered(page)).to_have_text(["disk.free"])
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#table tr")).to_have_text(['{host="a"}28.5'])


def test_an_error_is_highlighted_at_its_position_until_the_text_changes(node: PageNode, watched: Watched) -> None:
    watch = watched()
    watch.expected.append("400")
    page = watch.open(node.url)
    fault = page.locator("#query-backdrop .fault")
    for text, marked, line in (
        ("sum(temperature) +\n  sum(no_function(temperature))", "no_function", "Line 2, column 7: "),
        ("sum(temperature", "\u00a0", "Line 1, column 16: "),
        ('"\U0001f980" + rate(temperature)', "temperature", "Line 1, column 12: "),
    ):
        box(page).fill(text)
        box(page).press("Enter")
        expect(fault).to_have_text([marked])
        expect(page.locator("#explore-error")).to_contain_text(line)
        expect(box(page)).to_have_attribute("aria-invalid", "true")
    box_of_fault = fault.bounding_box()
    area = box(page).bounding_box()
    assert box_of_fault is not None
    assert area is not None
    assert box_of_fault["x"] - area["x"] > 60
    box(page).fill("temperature")
    expect(fault).to_have_count(0)
    box(page).press("Enter")
    expect(page.locator("#explore-error")).to_be_hidden()
    expect(page.locator("#plot .lines path")).to_have_count(1)


def test_an_expression_is_drawn_and_its_cost_and_annotations_are_shown(node: PageNode, watched: Watched) -> None:
    page = watched().open(node.url, "#query=sum+by+(mode)+(rate(cpu_seconds_total%5B5m%5D))")
    expect(page.locator("#legend tr")).to_have_text(['{mode="idle"}1', '{mode="user"}5'])
    expect(page.locator("#explore-count")).to_contain_text("3 series matched")
    cost = page.locator("#result-stats")
    expect(cost).to_contain_text("Series from shards2")
    expect(cost).to_contain_text("Samples read")
    expect(cost).to_contain_text("Time in shards")
    expect(cost).to_contain_text("Time in front")
    expect(page.locator("#result-infos")).to_be_hidden()
    # A click on a value narrows the selector inside of the expression.
    page.locator("#top-pairs button", has_text="mode = user").click()
    expect(box(page)).to_have_value('sum by (mode) (rate(cpu_seconds_total{mode="user"}[5m]))')
    expect(page.locator("#legend tr")).to_have_text(['{mode="user"}5'])
    box(page).fill("rate(temperature[5m])")
    box(page).press("Enter")
    expect(page.locator("#result-infos")).to_contain_text("might not be a counter")


def test_a_table_shows_the_values_at_the_end_of_the_range(node: PageNode, watched: Watched) -> None:
    page = watched().open(node.url, "#query=topk(2,rate(cpu_seconds_total%5B5m%5D))")
    expect(page.locator("#plot .lines path")).to_have_count(2)
    page.locator("#shows label", has_text="Table").click()
    expect(page.locator("#table tr")).to_have_text(['{host="b", mode="user"}3', '{host="a", mode="user"}2'])
    expect(page.locator("#plot-area")).to_be_hidden()
    assert "show=table" in page.url
    box(page).fill("vector(1) / 0")
    box(page).press("Enter")
    expect(page.locator("#table tr")).to_have_text(["{}+Inf"])
    box(page).fill("temperature[1m]")
    box(page).press("Enter")
    expect(page.locator("#table tr").locator("td").last.locator("div")).to_have_count(4)
    box(page).fill('"text"')
    box(page).press("Enter")
    expect(page.locator("#table tr")).to_have_text(["stringtext"])


def test_a_result_that_cannot_be_drawn_is_shown_as_a_table(node: PageNode, watched: Watched) -> None:
    watch = watched()
    watch.expected.append("400")
    page = watch.open(node.url, "#query=temperature%5B1m%5D")
    expect(page.locator("#table tr")).to_have_count(1)
    expect(page.locator("#explore-error")).to_be_hidden()


def test_format_breaks_a_long_query_into_lines_and_the_box_grows(node: PageNode, watched: Watched) -> None:
    page = watched().open(node.url)
    box(page).fill("sum by(mode)(rate(cpu_seconds_total[5m]))/on(host)group_left  sum(rate(cpu_seconds_total[5m])) > 5")
    before = box(page).bounding_box()
    page.locator("#format").click()
    expect(box(page)).to_have_value(re.compile("\n"))
    after = box(page).bounding_box()
    assert before is not None
    assert after is not None
    assert after["height"] > before["height"]
