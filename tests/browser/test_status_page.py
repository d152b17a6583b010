"""The status page in a real browser: shards, buckets, hours and the connection."""

import base64
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from strandline.errors import Retryable
from strandline.node.page.hours import HourReadiness
from strandline.node.settings.http_sections import HttpSettings
from strandline.node.shard.bucket_report import BucketFigures
from strandline.node.shard.status import Phase
from strandline.node.shard.store_health import StoreFigures
from strandline.node.status.processes import WORKER, ProcessState, ProcessStatus, ShardProcessStatus
from strandline.recovery.periods import HOUR, Period
from strandline.recovery.readiness import Verdict
from support.fake_queries import FakeQueries
from support.page_node import PageNode
from support.page_shards import active, recovering
from support.watched_page import WatchedPage

pytestmark = pytest.mark.browser

Watched = Callable[..., WatchedPage]
NOW = int(time.time() * 1000)
THIS_HOUR = NOW // HOUR
SET_HIDDEN = """hidden => {
    Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
    document.dispatchEvent(new Event("visibilitychange"));
}"""


def bucket(shard: int, hour: int, count: int, state: str = "stored") -> BucketFigures:
    return BucketFigures(
        shard,
        hour,
        hour * HOUR,
        (hour + 1) * HOUR,
        active=count,
        changed=count // 10,
        samples=count * 60,
        bytes=0,
        state=state,
    )


@pytest.fixture
def node() -> Iterator[PageNode]:
    with PageNode(FakeQueries([({"__name__": "up", "job": "api"}, [(NOW, 1.0)])])) as node:
        yield node


def card(page: Page, shard: int) -> Locator:
    return page.locator(f'.card[data-shard="{shard}"]')


def test_a_recovering_node_is_followed_until_it_is_active_without_a_reload(node: PageNode, watched: Watched) -> None:
    node.status.statuses = (active(0), recovering(1, Phase.RECOVERING_INDEX, 0.2, entered_ms=NOW - 10_000))
    page = watched().open(node.url)
    page.evaluate("window.loadedOnce = true")
    expect(page.locator("#banner")).to_contain_text("1 of 2 shards is active")
    expect(page.locator("#banner")).to_contain_text("Shard 1: loading the index, 20 %")
    expect(card(page, 1).locator(".badge")).to_have_text("Loading the index")
    expect(card(page, 1).locator("progress")).to_have_js_property("value", 0.2)
    expect(card(page, 1).locator(".left")).to_contain_text("left")

    node.status.statuses = (active(0), recovering(1, Phase.REPLAYING, 0.75, entered_ms=NOW - 10_000))
    expect(card(page, 1).locator(".badge")).to_have_text("Replaying")
    expect(card(page, 1).locator("progress")).to_have_js_property("value", 0.75)

    node.status.statuses = (active(0), recovering(1, Phase.CATCHING_UP, None))
    expect(card(page, 1).locator(".badge")).to_have_text("Catching up")
    expect(card(page, 1)).to_contain_text("250 k")

    requests = len(node.queries.requests)
    node.status.statuses = (active(0), active(1))
    expect(card(page, 1).locator(".badge")).to_have_text("Active")
    expect(page.locator("#banner")).to_be_hidden()
    expect(card(page, 1).locator("progress")).to_be_hidden()
    # Partial answers are requested again.
    expect(page).to_have_title(re.compile("^Strandline"))
    assert page.evaluate("window.loadedOnce")
    assert len(node.queries.requests) > requests


def test_a_failing_shard_shows_the_reason_and_the_time_of_the_next_attempt(node: PageNode, watched: Watched) -> None:
    reason = "Cassandra at 127.0.0.1:9042 can't be reached. Look whether it runs <b>now</b>"
    waiting = ShardProcessStatus(1, ProcessState.WAITING, restarts=3, starts_in_s=8.0, exit_code=1, reason=reason)
    failed = recovering(2, Phase.FAILED, None)
    assert failed.report is not None
    failed.report.status.reason = "the spill folder is full"
    node.status.statuses = (
        active(0),
        waiting,
        failed,
        ShardProcessStatus(3, ProcessState.DOWN, restarts=5, reason="gave up"),
    )
    page = watched().open(node.url)
    expect(card(page, 1).locator(".reason")).to_have_text(reason)
    expect(card(page, 1).locator(".badge")).to_have_text("Ended, restarts in 8 s")
    expect(card(page, 1)).to_contain_text("last exit code 1")
    expect(card(page, 2).locator(".badge")).to_have_text("Failed")
    expect(card(page, 2).locator(".reason")).to_have_text("the spill folder is full")
    expect(card(page, 3).locator(".badge")).to_have_text("Down")
    expect(card(page, 0).locator(".reason")).to_be_hidden()
    assert page.locator("#banner").get_attribute("data-state") == "bad"


def test_a_store_that_does_not_answer_is_named(node: PageNode, watched: Watched) -> None:
    silent = active(0)
    assert silent.report is not None
    store = StoreFigures("Cassandra at db:9042", 95.0, 3)
    node.status.statuses = (replace(silent, report=replace(silent.report, store=store)),)
    page = watched().open(node.url)
    expect(card(page, 0).locator(".badge")).to_contain_text("Store has not answered for")
    expect(card(page, 0).locator(".reason")).to_contain_text("Cassandra at db:9042 does not answer")
    expect(page.locator("#banner")).to_contain_text("queries of stored samples fail")


def test_a_replay_worker_that_is_down_is_shown_with_the_reason(node: PageNode, watched: Watched) -> None:
    node.status.statuses = (active(0), recovering(1, Phase.REPLAYING, 0.2))
    worker = ProcessStatus(WORKER, ProcessState.DOWN, restarts=5, exit_code=1, reason="no Java was found")
    node.status.others = (worker,)
    page = watched().open(node.url)
    expect(page.locator("#banner")).to_contain_text("The replay worker is down: no Java was found.")
    assert page.locator("#banner").get_attribute("data-state") == "bad"


def test_figures_of_the_node_are_summed_and_abbreviated(node: PageNode, watched: Watched) -> None:
    page = watched().open(node.url)
    summary = page.locator("#summary")
    expect(summary).to_contain_text("2 of 2")
    expect(summary).to_contain_text("1.2 M")
    expect(summary).to_contain_text("96 MB")
    expect(page.locator("#node")).to_contain_text("dataset metrics")


def test_the_rate_of_samples_is_computed_from_two_answers(node: PageNode, watched: Watched) -> None:
    starting = recovering(1, Phase.REPLAYING, 0.5)
    node.status.statuses = (active(0), starting)
    page = watched().open(node.url)
    rate = card(page, 0).locator("dd").nth(2)
    expect(rate).to_have_text("\u2013")
    more = active(0)
    assert more.report is not None
    more.report.status.counters.samples += 1_000_000
    node.status.statuses = (more, starting)
    # A million in about two seconds: hundreds of thousands a second, however late the answer is.
    expect(rate).to_contain_text("k")


def test_buckets_are_drawn_by_shard_and_summed_with_their_states(node: PageNode, watched: Watched) -> None:
    hours = range(THIS_HOUR - 20, THIS_HOUR + 1)
    states = {THIS_HOUR: "open", THIS_HOUR - 1: "closed"}
    node.queries.bucket_figures = tuple(
        bucket(shard, hour, 1000 * (shard + 1), states.get(hour, "stored")) for hour in hours for shard in (0, 1)
    )
    page = watched().open(node.url)
    expect(page.locator("#buckets .sum rect")).to_have_count(21)
    expect(page.locator("#buckets .row")).to_have_count(2)
    for state, count in (("stored", 19), ("closed", 1), ("open", 1)):
        expect(page.locator(f"#buckets .sum .{state}")).to_have_count(count)
    box = page.locator("#buckets .sum .closed").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 5)
    readout = page.locator("#buckets-readout")
    expect(readout).to_contain_text("closed · 3,000 active series")
    expect(readout).to_contain_text("shard 0 1 k, shard 1 2 k")


def test_a_bucket_is_reached_with_the_keyboard_and_its_time_explored(node: PageNode, watched: Watched) -> None:
    node.queries.bucket_figures = (bucket(0, THIS_HOUR - 2, 5), bucket(0, THIS_HOUR - 1, 50), bucket(0, THIS_HOUR, 500))
    page = watched().open(node.url)
    expect(page.locator("#buckets .sum rect")).to_have_count(3)
    page.locator("#buckets").focus()
    page.keyboard.press("End")
    expect(page.locator("#buckets-readout")).to_contain_text("500 active series")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#buckets-readout")).to_contain_text("50 active series")
    page.keyboard.press("Enter")
    start = (THIS_HOUR - 1) * HOUR // 1000
    expect(page).to_have_url(re.compile(f"#start={start}&end={start + 3600}$"))
    expect(page.locator("#custom")).to_be_visible()


def test_a_new_node_shows_its_few_buckets_wide(node: PageNode, watched: Watched) -> None:
    node.queries.bucket_figures = (bucket(0, THIS_HOUR - 1, 50), bucket(0, THIS_HOUR, 500))
    page = watched().open(node.url)
    box = page.locator("#buckets .sum rect").first.bounding_box()
    assert box is not None
    assert box["width"] > 20


def test_hours_show_verdict_and_revision_and_a_selected_hour_shows_details(node: PageNode, watched: Watched) -> None:
    late, lost = THIS_HOUR - 5, THIS_HOUR - 7
    node.hours.replaced = {
        late: HourReadiness(str(Period(late)), late * HOUR, Verdict.READY, 2, 1234),
        lost: HourReadiness(str(Period(lost)), lost * HOUR, Verdict.UNKNOWN, 0, 0, reason="older than the history"),
    }
    page = watched().open(node.url)
    cells = page.locator("button.hour")
    expect(cells).to_have_count(48)
    expect(page.locator('button.hour[data-state="ok"]')).to_have_count(46)
    cell = page.locator(f'[data-hour="{Period(late)}"]')
    expect(cell).to_have_attribute("aria-label", f"{Period(late)} UTC: ready, revision 2, 1.2\u202fk late samples")
    expect(cell).to_contain_text("r2")
    expect(page.locator(f'[data-hour="{Period(lost)}"]')).to_have_attribute("data-state", "off")
    expect(page.locator("#hours-readout")).to_contain_text("46 of 48 hours ready")
    running = page.locator(f'[data-hour="{Period(THIS_HOUR)}"]')
    running.click()
    expect(page.locator("#hours-readout")).to_contain_text("Partition 1 is 2 h behind")
    expect(running).to_have_attribute("aria-pressed", "true")


def test_an_error_of_the_hours_does_not_affect_the_rest_of_the_page(node: PageNode, watched: Watched) -> None:
    node.hours.failure = Retryable("Kafka at 127.0.0.1:9092 can't be reached", remedy="Start it")
    watch = watched()
    watch.expected.append("503")
    page = watch.open(node.url)
    expect(page.locator("#hours-error")).to_have_text("Kafka at 127.0.0.1:9092 can't be reached. Start it")
    expect(page.locator(".card")).to_have_count(2)
    expect(page.locator("#top-metrics button")).to_have_count(1)


def test_an_unresponsive_node_is_reported_until_it_answers_again(node: PageNode, watched: Watched) -> None:
    node.status.statuses = (active(0), recovering(1, Phase.REPLAYING, 0.5))
    watch = watched()
    watch.expected.append("ERR_CONNECTION|Failed to fetch")
    page = watch.open(node.url)
    expect(page.locator("#connection")).to_have_text("Live")
    node.stop()
    expect(page.locator("#connection")).to_contain_text("last answer")
    expect(page.locator("body")).to_have_attribute("data-stale", "")
    # The last known state stays readable.
    expect(page.locator(".card")).to_have_count(2)
    node.start()
    expect(page.locator("#connection")).to_have_text("Live")
    expect(page.locator("body")).not_to_have_attribute("data-stale", "")


def test_a_refresh_keeps_elements_and_the_focus(node: PageNode, watched: Watched) -> None:
    starting = recovering(1, Phase.REPLAYING, 0.5)
    node.status.statuses = (active(0), starting)
    page = watched().open(node.url)
    page.evaluate("window.firstCard = document.querySelector('.card')")
    page.locator("button.hour").first.focus()
    node.status.statuses = (active(0), recovering(1, Phase.REPLAYING, 0.9))
    expect(card(page, 1).locator("progress")).to_have_js_property("value", 0.9)
    assert page.evaluate("window.firstCard === document.querySelector('.card')")
    assert page.evaluate("document.activeElement.classList.contains('hour')")


def test_a_hidden_page_sends_no_requests(node: PageNode, watched: Watched) -> None:
    node.status.statuses = (active(0), recovering(1, Phase.REPLAYING, 0.5))
    watch = watched()
    page = watch.open(node.url)
    page.clock.install()
    page.reload()
    page.locator("#shards > li").first.wait_for()
    page.evaluate(SET_HIDDEN, True)
    requests = len(watch.requests_to("/api/v1/strandline/shards"))
    page.clock.run_for(60_000)
    assert len(watch.requests_to("/api/v1/strandline/shards")) == requests
    with page.expect_request("**/api/v1/strandline/shards?*"):
        page.evaluate(SET_HIDDEN, False)
        page.clock.run_for(100)


def token_settings(folder: Path, token: str) -> HttpSettings:
    file = folder / token
    file.write_text(f"{token}\n")
    file.chmod(0o600)
    return HttpSettings.model_validate({"read_token_file": str(file)})


def test_a_new_token_is_requested_when_the_current_one_is_rejected(tmp_path: Path, watched: Watched) -> None:
    old, new = "old-token-of-this-test", "new-token-of-this-test"
    password = base64.b64encode(f"anybody:{old}".encode()).decode()
    with PageNode(FakeQueries(), settings=token_settings(tmp_path, old)) as node:
        node.status.statuses = (active(0), recovering(1, Phase.REPLAYING, 0.5))
        watch = watched()
        watch.expected.append("401")
        # As a browser sends the password that it has stored for this address.
        watch.page.set_extra_http_headers({"Authorization": f"Basic {password}"})
        page = watch.open(node.url)
        expect(page.locator("#token-form")).to_be_hidden()
        page.set_extra_http_headers({})
        node.reload(token_settings(tmp_path, new))
        expect(page.locator("#token-form")).to_be_visible()
        page.locator("#token").fill("no-token-of-this-test")
        page.keyboard.press("Enter")
        expect(page.locator("#token-error")).to_have_text("The node does not accept this token.")
        page.locator("#token").fill(new)
        page.keyboard.press("Enter")
        expect(page.locator("#token-form")).to_be_hidden()
        node.status.statuses = (active(0), active(1))
        expect(card(page, 1).locator(".badge")).to_have_text("Active")
        assert new not in page.content() + page.url


def test_a_browser_opens_the_page_with_the_token_as_password(browser: Browser, tmp_path: Path) -> None:
    """Chromium sends the password only after a challenge that it understands."""
    token = "token-of-a-test-with-a-person"
    with (
        PageNode(FakeQueries(), settings=token_settings(tmp_path, token)) as node,
        browser.new_context(http_credentials={"username": "anybody", "password": token}) as context,
    ):
        page = context.new_page()
        answer = page.goto(node.url)
        assert answer is not None
        assert answer.status == 200
        expect(page.locator("h1")).to_contain_text("Strandline")
