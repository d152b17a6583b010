"""The status page in a real browser: selectors, the plot, the top lists and hostile labels."""

import asyncio
import re
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from strandline.index.cardinality import LabelCardinality, ValueCardinality
from strandline.node.query.answers import CardinalityAnswer
from strandline.node.query.queries import QueryScope
from strandline.node.query.shard_requests import CardinalityRequest, SeriesRequest
from support.fake_queries import FakeQueries
from support.page_node import PageNode
from support.watched_page import WatchedPage

pytestmark = pytest.mark.browser

Watched = Callable[..., WatchedPage]
NOW = int(time.time() * 1000)
TIMES = range(NOW - 3_600_000, NOW + 600_000, 15_000)


def steady(value: float, **labels: str) -> tuple[dict[str, str], list[tuple[int, float]]]:
    """A series with a constant value throughout the hour."""
    name = labels.pop("name", "cpu")
    return {"__name__": name} | labels, [(when, value) for when in TIMES]


SERIES = [
    steady(0, mode="idle", host="a"),
    steady(10, mode="user", host="a"),
    steady(5, mode="user", host="b"),
    steady(1, name="up", host="a"),
]


@pytest.fixture
def node() -> Iterator[PageNode]:
    with PageNode(FakeQueries(SERIES)) as node:
        yield node


def shown(page: Page, count: int) -> None:
    expect(page.locator("#explore-count")).to_contain_text(f"{count} series matched")


def test_top_lists_show_metrics_labels_and_pairs_of_all_series(node: PageNode, watched: Watched) -> None:
    page = watched().open(node.url)
    expect(page.locator("#top-metrics button")).to_have_text(["cpu3", "up1"])
    expect(page.locator("#top-labels button")).to_have_text(["__name__2", "host2", "mode2"])
    expect(page.locator("#top-pairs button").first).to_have_text("__name__ = cpu3")
    expect(page.locator("#explore-count")).to_contain_text("4 series in total")
    expect(page.locator("#result-note")).to_contain_text("Write a query")


def test_clicks_lead_from_a_metric_to_a_label_and_to_one_of_its_values(node: PageNode, watched: Watched) -> None:
    page = watched().open(node.url)
    page.locator("#top-metrics button", has_text="cpu").click()
    expect(page.locator("#query")).to_have_value("cpu")
    shown(page, 3)
    page.locator("#top-labels button", has_text="mode").click()
    expect(page.locator("#third-title")).to_have_text("Values of mode")
    expect(page.locator("#top-pairs button")).to_have_text(["user2", "idle1"])
    page.locator("#top-pairs button", has_text="user").click()
    expect(page.locator("#query")).to_have_value('cpu{mode="user"}')
    shown(page, 2)
    page.locator("#all-pairs").click()
    expect(page.locator("#third-title")).to_have_text("Label pairs by series")


def test_a_view_can_be_shared_by_its_address_and_left_by_going_back(node: PageNode, watched: Watched) -> None:
    page = watched().open(node.url, "#selector=cpu%7Bhost%3D%22a%22%7D&range=6h&label=mode")
    shown(page, 2)
    expect(page.locator("#query")).to_have_value('cpu{host="a"}')
    expect(page.locator('#ranges input[value="6h"]')).to_be_checked()
    expect(page.locator("#third-title")).to_have_text("Values of mode")
    page.locator("#top-pairs button", has_text="idle").click()
    shown(page, 1)
    page.go_back()
    shown(page, 2)
    expect(page.locator("#query")).to_have_value('cpu{host="a"}')


def test_the_range_limits_what_is_queried(node: PageNode, watched: Watched) -> None:
    page = watched().open(node.url, "#selector=cpu&range=15m")
    shown(page, 3)
    page.locator("#ranges label", has_text="24 h").click()
    expect(page).to_have_url(re.compile("#.*range=24h"))
    expect(page.locator("#result-note")).to_contain_text("a point every 5 min")
    spans = [
        request.within.last - request.within.first
        for request in node.queries.requests
        if isinstance(request, CardinalityRequest) and request.within is not None
    ]
    assert spans == [900_000, 86_400_000]


def test_custom_times_are_utc(node: PageNode, watched: Watched) -> None:
    page = watched(timezone_id="America/New_York").open(node.url)
    page.locator("#ranges label", has_text="from").click()
    page.locator("#from").fill("2026-11-15T10:00:00")
    page.locator("#to").fill("2026-11-15T11:00:00")
    page.locator("#to").blur()
    expect(page).to_have_url(re.compile("#start=1794736800&end=1794740400$"))
    page.locator("#to").fill("2026-11-15T09:00:00")
    page.locator("#to").blur()
    expect(page.locator("#explore-error")).to_have_text("The end of the range is before its start.")


def test_the_plot_draws_one_line_per_series_at_the_height_of_its_values(node: PageNode, watched: Watched) -> None:
    page = watched().open(node.url, "#selector=cpu")
    lines = page.locator("#plot .lines path")
    expect(lines).to_have_count(3)
    expect(page.locator("#result-note")).to_contain_text("3 series drawn")
    ticks = page.locator("#plot .axis text[text-anchor=end]")
    axis = {float(tick.text_content() or ""): tick.bounding_box() for tick in ticks.all()}
    assert min(axis) == 0
    assert max(axis) == 10
    labels = page.locator("#legend tr td:first-child").all_text_contents()
    for label, line in zip(labels, lines.all(), strict=True):
        value = {'cpu{host="a", mode="idle"}': 0, 'cpu{host="a", mode="user"}': 10, 'cpu{host="b", mode="user"}': 5}[
            label
        ]
        drawn = line.bounding_box()
        assert drawn is not None
        low, high = axis[0], axis[10]
        assert low is not None
        assert high is not None
        expected = low["y"] + (high["y"] - low["y"]) * value / 10 + low["height"] / 2
        assert drawn["y"] + drawn["height"] / 2 == pytest.approx(expected, abs=4)
        # From the first sample, an hour ago, to now: the full width.
        assert drawn["width"] > 1000


def test_the_values_at_a_time_are_read_with_pointer_and_keyboard(node: PageNode, watched: Watched) -> None:
    page = watched().open(node.url, "#selector=cpu")
    expect(page.locator("#legend tr")).to_have_count(3)
    page.locator("#plot").hover(position={"x": 600, "y": 12})
    expect(page.locator("#plot-readout")).to_contain_text('cpu{host="a", mode="user"} · 10')
    expect(page.locator("#plot-readout")).to_contain_text("UTC")
    expect(page.locator("#legend .number")).to_have_text(["0", "10", "5"])
    page.locator("#plot").hover(position={"x": 600, "y": 250})
    expect(page.locator("#plot-readout")).to_contain_text('cpu{host="a", mode="idle"} · 0')
    page.mouse.move(10, 10)
    expect(page.locator("#legend-time")).to_have_text("Last value")
    page.locator("#plot").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#legend-time")).to_contain_text("UTC")


def test_a_series_can_be_isolated_and_the_others_shown_again(node: PageNode, watched: Watched) -> None:
    page = watched().open(node.url, "#selector=cpu")
    expect(page.locator("#plot .lines path")).to_have_count(3)
    page.locator("#legend button").nth(1).click()
    expect(page.locator("#plot .lines path")).to_have_count(1)
    page.locator("#legend button").nth(1).click()
    expect(page.locator("#plot .lines path")).to_have_count(3)


def test_a_gap_in_the_samples_is_a_gap_in_the_line(watched: Watched) -> None:
    half = [(when, 1.0) for when in TIMES if not NOW - 2_400_000 < when < NOW - 1_200_000]
    with PageNode(FakeQueries([({"__name__": "cpu"}, half)])) as node:
        page = watched().open(node.url, "#selector=cpu")
        expect(page.locator("#plot .lines path")).to_have_count(1)
        path = page.locator("#plot .lines path").get_attribute("d") or ""
    assert path.count("M") == 2


def test_fifty_of_many_series_are_drawn_with_a_notice(watched: Watched) -> None:
    with PageNode(FakeQueries([steady(number, host=f"{number:03}") for number in range(120)])) as node:
        page = watched().open(node.url, "#selector=cpu")
        expect(page.locator("#plot .lines path")).to_have_count(50)
        expect(page.locator("#result-note")).to_contain_text("50 of 120 series are drawn")
        expect(page.locator("#result-warnings")).to_be_hidden()


def test_samples_of_too_many_series_are_not_requested(watched: Watched) -> None:
    many = [({"__name__": "cpu", "host": str(number)}, []) for number in range(2001)]
    with PageNode(FakeQueries(many)) as node:
        page = watched().open(node.url, "#selector=cpu")
        expect(page.locator("#result-note")).to_contain_text("2 k series match")
        expect(page.locator("#plot-area")).to_be_hidden()
        assert node.queries.fragments == []


@pytest.mark.parametrize("query", ["cpu{", "{}"])
def test_an_error_in_a_query_is_shown_once(node: PageNode, watched: Watched, query: str) -> None:
    watch = watched()
    watch.expected.append("400")
    page = watch.open(node.url)
    page.locator("#query").fill(query)
    page.locator("#query").press("Enter")
    expect(page.locator("#explore-error")).to_contain_text("Line 1, column")
    expect(page.locator("#tops-error")).to_be_hidden()
    expect(page.locator("#plot-area")).to_be_hidden()
    page.locator("#query").fill("cpu")
    page.locator("#query").press("Enter")
    shown(page, 3)
    expect(page.locator("#explore-error")).to_be_hidden()


def test_warnings_of_an_answer_are_shown(watched: Watched) -> None:
    with PageNode(FakeQueries(SERIES, warnings=("shard 1 is replaying: its series are missing",))) as node:
        page = watched().open(node.url, "#selector=cpu")
        for part in ("explore", "result", "buckets"):
            expect(page.locator(f"#{part}-warnings")).to_have_text("shard 1 is replaying: its series are missing")


def test_a_limited_number_of_matching_series_is_listed_on_request(watched: Watched) -> None:
    many = [({"__name__": "cpu", "host": f"{number:03}"}, [(NOW, 1.0)]) for number in range(300)]
    with PageNode(FakeQueries(many)) as node:
        page = watched().open(node.url, "#selector=cpu")
        shown(page, 300)
        assert not [request for request in node.queries.requests if isinstance(request, SeriesRequest)]
        page.locator("#series-details summary").click()
        expect(page.locator("#series tr")).to_have_count(50)
        expect(page.locator("#series-note")).to_have_text("50 of 300 series.")
        expect(page.locator("#series tr").first).to_have_text('cpu{host="000"}')


HOSTILE = {
    "__name__": "evil",
    "markup": '<img src=x onerror="window.pwned = true"><script>window.pwned = true</script>',
    "quotes": "\\\"}', `\n{x=~'.*'} {{assets}} javascript:alert(1)",
    "bidi": "\u202egnp.exe\u2066 \u200f abc",
    "long": "x" * 30_000,
    "spaces": "a" + " " * 500 + "b",
    "café.label": "ünïcødé 🦀",
}


def test_hostile_labels_are_shown_as_text_only(watched: Watched) -> None:
    with PageNode(FakeQueries([(HOSTILE, [(when, 1.0) for when in TIMES])])) as node:
        for width in (1280, 360):
            page = watched(viewport={"width": width, "height": 800}).open(node.url, "#selector=evil")
            page.locator("#series-details summary").click()
            expect(page.locator("#series tr")).to_have_count(1)
            expect(page.locator("#plot .lines path")).to_have_count(1)
            expect(page.locator("#top-pairs")).to_contain_text("<img src=x onerror=")
            assert page.evaluate("window.pwned") is None
            assert page.locator("main img, main script").count() == 0
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("label", sorted(HOSTILE))
def test_a_click_on_a_hostile_value_selects_exactly_that_series(watched: Watched, label: str) -> None:
    others = [({"__name__": "evil", label: "another"}, []), ({"__name__": "good", "x": "y"}, [])]
    with PageNode(FakeQueries([(HOSTILE, []), *others])) as node:
        watch = watched()
        page = watch.open(node.url, "#selector=%7B__name__%3D~%22.%2B%22%7D")
        expect(page.locator("#explore-count")).to_contain_text("3 series matched")
        page.locator("#top-labels button", has=page.get_by_text(label, exact=True)).click()
        expect(page.locator("#third-title")).to_have_text(f"Values of {label}")
        start = HOSTILE[label].split("\n")[0][:40]
        page.locator("#top-pairs button", has_text=start).first.click()
        shown(page, 1)


class HugeQueries(FakeQueries):
    """An index with very many labels and values, whose answers exceed the requested limits."""

    async def cardinality(self, request: CardinalityRequest, scope: QueryScope) -> CardinalityAnswer:
        await self._begin(request, scope)
        values = tuple(ValueCardinality("path", f"/items/{number}", 1) for number in range(100_000))
        labels = tuple(LabelCardinality(f"label_{number}", 1, 1, 1) for number in range(100_000))
        return CardinalityAnswer(10**6, labels, values, values, values)


def test_a_hundred_thousand_values_reach_neither_the_page_nor_the_network(watched: Watched) -> None:
    with PageNode(HugeQueries()) as node:
        watch = watched()
        page = watch.open(node.url, "#label=path")
        expect(page.locator("#explore-count")).to_contain_text("1 M series in total in this range, 100 k labels")
        expect(page.locator("#top-pairs button")).to_have_count(10)
        expect(page.locator("#top-labels")).to_contain_text("and 100 k more")
        assert page.locator("*").count() < 1000
        assert max(watch.sizes.values()) < 50_000


class HeldQueries(FakeQueries):
    """Holds the request about one metric until it is cancelled."""

    def __init__(self) -> None:
        super().__init__(SERIES)
        self.began, self.ended = threading.Event(), threading.Event()

    async def cardinality(self, request: CardinalityRequest, scope: QueryScope) -> CardinalityAnswer:
        if any(matcher.value == "slow" for selector in request.selectors for matcher in selector):
            self.began.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.ended.set()
        return await super().cardinality(request, scope)


def test_an_outdated_request_is_cancelled_on_both_sides(watched: Watched) -> None:
    queries = HeldQueries()
    with PageNode(queries) as node:
        page = watched().open(node.url)
        page.locator("#query").fill("slow")
        page.locator("#query").press("Enter")
        assert queries.began.wait(60)
        page.locator("#query").fill("cpu")
        page.locator("#query").press("Enter")
        shown(page, 3)
        # Well before its own timeout.
        assert queries.ended.wait(60)


def test_estimates_are_marked(watched: Watched) -> None:
    queries = FakeQueries(SERIES)
    queries.estimated_labels = ("instance",)
    with PageNode(queries) as node:
        page = watched().open(node.url)
        expect(page.locator("#bounds")).to_be_visible()
        expect(page.locator("#explore-warnings")).to_contain_text("instance")
