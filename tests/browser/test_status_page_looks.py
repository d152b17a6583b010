"""Layout and accessibility of the status page: phone and desktop, dark and light, keyboard and screen reader.

Each layout saves a screenshot in the test's folder.
"""

import math
import re
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from strandline.jobs.counts import Counts
from strandline.node.page.hours import HourReadiness
from strandline.node.shard.bucket_report import BucketFigures
from strandline.node.shard.status import Phase
from strandline.node.status.processes import ProcessState, ShardProcessStatus
from strandline.recovery.periods import HOUR, Period
from strandline.recovery.readiness import Verdict
from strandline.store.bulk_jobs import BulkJobState
from support.fake_queries import FakeQueries
from support.page_jobs import DAY, FakeJobs, bad_records
from support.page_node import PageNode
from support.page_shards import active, recovering
from support.watched_page import WatchedPage

pytestmark = pytest.mark.browser

Watched = Callable[..., WatchedPage]
NOW = int(time.time() * 1000)
THIS_HOUR = NOW // HOUR
BROKEN_JOB = "20261118T090000Z-77ab01"
TIMES = range(NOW - HOUR, NOW, 15_000)


def buckets() -> Iterator[BucketFigures]:
    """Two days, with an open bucket, one that is not stored yet, and one with few series."""
    for hour in range(THIS_HOUR - 47, THIS_HOUR + 1):
        for shard in range(4):
            count = int(150_000 + 40_000 * math.sin(hour / 4) + 9000 * shard) // (4 if hour == THIS_HOUR - 20 else 1)
            state = "open" if hour == THIS_HOUR else "closed" if hour == THIS_HOUR - 1 and shard else "stored"
            yield BucketFigures(shard, hour, hour * HOUR, (hour + 1) * HOUR, count, count // 10, count * 240, 0, state)


def series() -> Iterator[tuple[dict[str, str], list[tuple[int, float]]]]:
    for position in range(6):
        wave = [(when, 40 + 8 * position + 9 * math.sin(when / 400_000 + position)) for when in TIMES]
        yield (
            {"__name__": "node_cpu_seconds_total", "instance": f"web-{position}:9100", "job": "node", "mode": "idle"},
            wave,
        )
    for position in range(300):
        name = ("http_requests_total", "container_memory_working_set_bytes", "up")[
            position % 3 if position < 200 else 0
        ]
        yield (
            {"__name__": name, "instance": f"web-{position % 40}:9100", "job": "api", "path": f"/v1/items/{position}"},
            [],
        )


@pytest.fixture(scope="module")
def node() -> Iterator[PageNode]:
    with PageNode(FakeQueries(series(), buckets=tuple(buckets()))) as node:
        late = THIS_HOUR - 30
        node.hours.replaced = {late: HourReadiness(str(Period(late)), late * HOUR, Verdict.READY, 2, 1234)}
        node.status.statuses = (
            active(0),
            recovering(1, Phase.REPLAYING, 0.43, entered_ms=NOW - 20_000),
            ShardProcessStatus(
                2,
                ProcessState.WAITING,
                restarts=3,
                starts_in_s=8.0,
                exit_code=1,
                reason="Cassandra at 127.0.0.1:9042 can't be reached: connection refused. Look whether it runs, and at "
                "cassandra.contact_points",
            ),
            ShardProcessStatus(3, ProcessState.STARTING, 4003),
        )
        add_jobs(node.jobs)
        yield node


def add_jobs(jobs: FakeJobs) -> None:
    """One that runs, one that is broken and expires soon, and one that is done."""
    counts, idle_since = Counts(1_200_000, 1_128_793, 71_207), jobs.clock.now_ms() - 9 * DAY // 2
    jobs.add("20261117T170000Z-00ff00", BulkJobState.DONE, done=8, counts=counts)
    jobs.add(
        BROKEN_JOB,
        BulkJobState.BROKEN,
        done=1,
        counts=counts,
        bad=bad_records(),
        reason="71207 of 1200000 records failed (5.9%), more than jobs.error_rate = 0.05 allows",
        idle_since=idle_since,
        expires_after=5 * DAY,
    )
    jobs.add("20261118T101500Z-a1b2c3", done=3, counts=counts)
    jobs.run_for(40)


def whole(watch: WatchedPage, node: PageNode) -> Page:
    """The page with every part filled."""
    page = watch.open(node.url, "#selector=%7B__name__%3D%22node_cpu_seconds_total%22%7D&label=instance")
    expect(page.locator("#plot .lines path")).to_have_count(6)
    expect(page.locator("#buckets .sum rect")).to_have_count(48)
    expect(page.locator("button.hour")).to_have_count(48)
    expect(page.locator("#job-rates path.rate")).to_have_count(2)
    page.locator("#jobs-admin").click()
    page.locator("#admin-token").fill("a-token-of-an-operator-1")
    page.locator("#admin-form button").click()
    expect(page.locator("#jobs [data-verb]")).to_have_count(4)
    page.locator(f'tbody[data-job="{BROKEN_JOB}"] .job button').click()
    expect(page.locator("#jobs .bad-lines tbody tr")).to_have_count(2)
    page.locator("#series-details summary").click()
    expect(page.locator("#series tr")).to_have_count(6)
    return page


LAYOUTS = {"desk": 1280, "tablet": 768, "phone": 360}

OVERFLOWING = """() => {
    const scrolled = element => element.closest(".scroll, .reason, .bars button, .hour") !== null;
    return [...document.querySelectorAll("body *")].filter(element => {
        const box = element.getBoundingClientRect();
        return box.width > 0 && (box.right > innerWidth + 0.5 || box.left < -0.5) && !scrolled(element);
    }).map(element => `${element.tagName} ${element.id} ${element.className}`);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_element_overflows_the_page(
    node: PageNode, watched: Watched, tmp_path: Path, layout: str, scheme: str
) -> None:
    width = LAYOUTS[layout]
    watch = watched(viewport={"width": width, "height": 900}, color_scheme=scheme, has_touch=layout == "phone")
    page = whole(watch, node)
    page.screenshot(path=tmp_path / f"{layout}-{scheme}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(OVERFLOWING) == []


# The colours as they are painted, over the nearest background that is not transparent.
CONTRASTS = """() => {
    const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const rgb = colour => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const light = ([red, green, blue]) => {
        const linear = part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
        const [r, g, b] = [red, green, blue].map(part => linear(part / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = element => {
        for (let one = element; one; one = one.parentElement) {
            const bar = one.querySelector?.(":scope > .bar-fill");
            const colour = rgb(getComputedStyle(bar ?? one).backgroundColor);
            if (colour[3] === 255) return colour;
        }
        return [255, 255, 255];
    };
    const texts = [...document.querySelectorAll("body *")].filter(element => element.getBoundingClientRect().width > 0
        && [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim()));
    return texts.map(element => {
        const style = getComputedStyle(element);
        const inPicture = element.namespaceURI.endsWith("svg");
        const [one, other] = [light(rgb(inPicture ? style.fill : style.color)), light(ground(element))];
        return [element.textContent.trim().slice(0, 40), (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05)];
    });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_contrasts_with_its_background(node: PageNode, watched: Watched, scheme: str) -> None:
    page = whole(watched(color_scheme=scheme), node)
    # Every colour of the box, and the list below it with an option chosen.
    page.locator("#query").fill('# why\nrate(up{job="api"}[5m]) and su')
    page.locator("#query").press_sequentially("m")
    expect(page.locator("#completions li").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    found = page.evaluate(CONTRASTS)
    assert len(found) > 100
    assert [(text, round(contrast, 2)) for text, contrast in found if contrast < 4.5] == []


def background_of(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_the_theme_follows_the_system_until_one_is_chosen_and_the_choice_is_remembered(
    node: PageNode, watched: Watched
) -> None:
    page = watched(color_scheme="dark").open(node.url)
    button = page.locator("#theme")
    expect(button).to_have_text("Theme: system")
    dark = background_of(page)
    page.emulate_media(color_scheme="light")
    light = background_of(page)
    assert light != dark
    button.click()
    button.click()
    expect(button).to_have_text("Theme: dark")
    assert background_of(page) == dark
    page.reload()
    assert background_of(page) == dark
    button.click()
    expect(button).to_have_text("Theme: system")
    assert background_of(page) == light


NAMELESS = """() => [...document.querySelectorAll("button, input, select, progress, [tabindex], section, [role=group]")]
    .filter(element => element.getBoundingClientRect().width > 0)
    .filter(element => !(element.getAttribute("aria-label") || element.labels?.length || element.textContent.trim()
        || document.getElementById(element.getAttribute("aria-labelledby"))))
    .map(element => element.outerHTML.slice(0, 100))"""


def test_every_control_has_an_accessible_name(node: PageNode, watched: Watched) -> None:
    page = whole(watched(), node)
    assert page.evaluate(NAMELESS) == []
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(one => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_states_are_shown_in_words_and_shapes_not_by_colour_alone(node: PageNode, watched: Watched) -> None:
    page = whole(watched(), node)
    for badge in page.locator(".badge").all():
        assert (badge.text_content() or "").strip()
        assert badge.locator("svg path").count() == 1
    shapes = {badge.locator("path").get_attribute("d") for badge in page.locator(".card .badge").all()}
    assert len(shapes) == 3


def test_the_page_can_be_used_with_the_keyboard_alone(node: PageNode, watched: Watched) -> None:
    page = watched().open(node.url)
    expect(page.locator("#top-metrics button").first).to_be_visible()
    reached = set()
    for _ in range(150):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.closest('[id]').id"))
        if page.evaluate("document.activeElement.closest('#series-details') !== null"):
            break
    assert {
        "theme",
        "jobs-admin",
        "jobs",
        "job-rates",
        "buckets-span",
        "buckets",
        "hours",
        "query",
        "ranges",
        "top-metrics",
        "top-labels",
    } <= reached
    page.locator("#top-metrics button").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#query")).to_have_value("http_requests_total")


def test_on_a_phone_a_tap_reads_a_bucket_and_targets_are_large_enough(node: PageNode, watched: Watched) -> None:
    page = whole(watched(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True), node)
    page.locator("#buckets").scroll_into_view_if_needed()
    box = page.locator("#buckets .sum rect").nth(30).bounding_box()
    assert box is not None
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator("#buckets-readout")).to_contain_text("active series")
    page.locator("#buckets-readout button").tap()
    expect(page).to_have_url(re.compile("#.*start="))
    small = page.evaluate(
        "[...document.querySelectorAll('button, select, .segments span')].map(one => one.getBoundingClientRect())"
        ".filter(box => box.width > 0 && (box.width < 22 || box.height < 18)).length"
    )
    assert small == 0
