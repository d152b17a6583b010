"""Bulk jobs on the status page, in a real browser: the table, the operator's actions, errors and the plot."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from strandline.jobs.counts import Counts
from strandline.node.job_watch.store_thread import StoreDoesNotAnswer
from strandline.node.settings.http_sections import HttpSettings
from strandline.store.bulk_jobs import BulkJob, BulkJobState, Wanted
from support.fake_queries import FakeQueries
from support.http_servers import secret_file
from support.page_jobs import DAY, bad_records
from support.page_node import PageNode
from support.watched_page import WatchedPage

pytestmark = pytest.mark.browser

Watched = Callable[..., WatchedPage]
ADMIN = "an-admin-token-of-a-test"
MILLION = 1_000_000


@pytest.fixture
def node(tmp_path: Path) -> Iterator[PageNode]:
    settings = HttpSettings(admin_token_file=secret_file(tmp_path / "admin", ADMIN))
    with PageNode(FakeQueries([]), settings=settings) as node:
        yield node


def job(page: Page, name: str) -> Locator:
    return page.locator(f'#jobs tbody[data-job="{name}"]')


def give_token(page: Page, token: str) -> None:
    page.locator("#jobs-admin").click()
    page.locator("#admin-token").fill(token)
    page.locator("#admin-form button").click()


def test_a_job_is_followed_to_its_end_without_a_reload(node: PageNode, watched: Watched) -> None:
    page = watched().open(node.url)
    expect(page.locator("#jobs-none")).to_contain_text("no bulk jobs")
    expect(page.locator("#jobs-area")).to_be_hidden()

    node.jobs.add("a", done=2, of=4, counts=Counts(MILLION, MILLION - 5, 5, 10, 10_000))
    node.jobs.add("b", BulkJobState.DONE, done=2, of=2, counts=Counts(records=30, sent=20), kind="send")
    # The page refreshes when it becomes visible again.
    page.reload()
    row = job(page, "a")
    expect(row.locator(".badge")).to_have_text("Running")
    expect(row.locator("progress")).to_have_js_property("value", 0.5)
    expect(row).to_contain_text("2 of 4 parts")
    expect(row.locator('[data-name="Records"]')).to_have_text(re.compile(r"^2\sM$"))
    expect(row.locator('[data-name="Errors"]')).to_have_text(re.compile(r"^10 \(0\.0005\s%\)$"))
    expect(row.locator('[data-name="Records/s"]')).to_have_text("\u2013")
    expect(row.locator('[data-name="Landed"]')).to_have_text(re.compile(r"^2\sM samples$"))
    expect(job(page, "b").locator('[data-name="Landed"]')).to_have_text("40 messages")

    node.jobs.land("a", 2, Counts(MILLION // 2, MILLION // 2))
    expect(row.locator("progress")).to_have_js_property("value", 0.625)
    expect(row.locator('[data-name="Records/s"]')).to_have_text(re.compile(r"\d+\sk"))
    node.jobs.board.change(node.jobs.board.job("a"), lambda job: with_state(job, BulkJobState.DONE))
    expect(row.locator(".badge")).to_have_text("Done")
    expect(row.locator("progress")).to_have_js_property("value", 1)


def with_state(status: BulkJob, state: BulkJobState) -> BulkJob:
    return replace(status, state=state, version=status.version + 1)


def test_jobs_are_changed_only_with_an_admin_token_and_after_a_confirmation(node: PageNode, watched: Watched) -> None:
    node.jobs.add("a")
    watch = watched()
    page = watch.open(node.url)
    row = job(page, "a")
    expect(row).to_be_visible()
    expect(row.locator("[data-verb]")).to_have_count(0)
    give_token(page, ADMIN)
    expect(row.locator("[data-verb]")).to_have_text(["Pause", "Cancel"])

    row.locator('[data-verb="pause"]').click()
    expect(page.locator("#job-dialog")).to_contain_text("Pause this job?")
    expect(page.locator("#job-dialog-no")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#job-dialog")).to_be_hidden()
    assert watch.requests_to("/api/v1/jobs/a/pause") == []

    row.locator('[data-verb="pause"]').click()
    page.locator("#job-dialog-yes").click()
    expect(row.locator(".badge")).to_have_text("Pausing")
    expect(page.locator("#jobs-answer")).to_contain_text("If no worker is running, run `strandline job pause a`")
    assert node.jobs.board.job("a").wanted is Wanted.PAUSED
    expect(row.locator("[data-verb]")).to_have_text(["Cancel"])

    row.locator('[data-verb="cancel"]').click()
    expect(page.locator("#job-dialog")).to_contain_text("Cancel this job permanently?")
    page.locator("#job-dialog-yes").click()
    expect(row.locator(".badge")).to_have_text("Cancelling")
    assert node.jobs.board.job("a").wanted is Wanted.CANCELLED
    # The token does not outlive the page.
    page.reload()
    expect(row).to_be_visible()
    expect(row.locator("[data-verb]")).to_have_count(0)


def test_a_paused_job_is_resumed(node: PageNode, watched: Watched) -> None:
    node.jobs.add("a", BulkJobState.PAUSED)
    page = watched().open(node.url)
    give_token(page, ADMIN)
    job(page, "a").locator('[data-verb="resume"]').click()
    page.locator("#job-dialog-yes").click()
    expect(job(page, "a").locator(".badge")).to_have_text("Running")
    assert node.jobs.board.job("a").state is BulkJobState.RUNNING


def test_a_wrong_admin_token_changes_nothing_and_is_forgotten(node: PageNode, watched: Watched) -> None:
    node.jobs.add("a", BulkJobState.PAUSED)
    watch = watched()
    watch.expected = ["status of 401"]
    page = watch.open(node.url)
    give_token(page, "another-token-0123456789")
    job(page, "a").locator('[data-verb="cancel"]').click()
    page.locator("#job-dialog-yes").click()
    expect(page.locator("#jobs-failure")).to_contain_text("Cancel job a: the token is unknown")
    expect(job(page, "a").locator("[data-verb]")).to_have_count(0)
    # The page requests the admin token, not the read token.
    expect(page.locator("#token-form")).to_be_hidden()
    assert node.jobs.board.job("a").state is BulkJobState.PAUSED


def test_errors_of_a_job_are_shown_with_bad_records_as_text_and_the_expiry(node: PageNode, watched: Watched) -> None:
    now = node.jobs.clock.now_ms()
    node.jobs.add(
        "a",
        BulkJobState.BROKEN,
        done=1,
        counts=Counts(MILLION, 900_000, 71_207),
        bad=bad_records(),
        nulls=1_200,
        reason="71207 of 1000000 records failed",
        idle_since=now - 9 * DAY // 2,
        expires_after=5 * DAY,
    )
    cause = "cpu.csv has changed"
    node.jobs.add("b", BulkJobState.FAILED, done=7, failed=[cause], reason=f"1 of 8 parts failed; part 7: {cause}")
    page = watched().open(node.url)
    broken, failed = job(page, "a"), job(page, "b")
    expect(broken.locator(".badge")).to_have_text("Broken")
    expect(broken.locator(".reason")).to_have_text("71207 of 1000000 records failed")
    expect(broken.locator(".warning")).to_contain_text(re.compile(r"cancelled in 1[12]\sh"))
    expect(failed.locator(".reason").first).to_contain_text(cause)
    expect(failed.locator(".warning")).to_have_count(0)

    broken.locator(".job button").click()
    expect(broken.locator(".bad-lines tbody tr")).to_have_count(2)
    expect(broken.locator(".bad-lines")).to_contain_text("/data/2026/cpu.csv:17")
    expect(broken.locator(".bad-lines")).to_contain_text("<b>NaN?</b>")
    expect(broken).to_contain_text("71,204 \u00d7 the value is no number")
    expect(broken).to_contain_text(re.compile(r"1\.2\sk null values left out"))
    failed.locator(".job button").press("Enter")
    expect(failed).to_contain_text(f"Part 7 failed 3 times: {cause}")
    failed.locator(".job button").press("Enter")
    expect(failed.locator(".details")).to_be_hidden()


def test_the_plot_shows_speed_and_errors_of_the_last_hour_and_is_read_with_the_keyboard(
    node: PageNode, watched: Watched
) -> None:
    node.jobs.add("a")
    node.jobs.run_for(30)
    page = watched().open(node.url)
    expect(page.locator("#job-rates path.rate")).to_have_count(2)
    readout = page.locator("#job-rates-readout")
    expect(readout).to_have_text(re.compile(r"UTC: [\d.]+\sk records/s, 40 errors/s"))
    newest = readout.text_content()
    page.locator("#job-rates").focus()
    page.keyboard.press("Home")
    expect(readout).not_to_have_text(newest or "")
    box = page.locator("#job-rates").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.42, box["y"] + 100)
    expect(readout).to_contain_text(re.compile(r"1\.2\sk errors/s"))


def test_a_store_that_does_not_answer_is_named_and_the_rest_of_the_page_keeps_working(
    node: PageNode, watched: Watched
) -> None:
    node.jobs.add("a")
    node.jobs.failure = StoreDoesNotAnswer("Cassandra at db:9042 has not answered for 10 s")
    watch = watched()
    watch.expected = ["status of 503"]
    page = watch.open(node.url)
    expect(page.locator("#jobs-error")).to_contain_text("Cassandra at db:9042 has not answered for 10 s")
    expect(page.locator("#shards > li")).to_have_count(2)
    node.jobs.failure = None
    expect(page.locator("#jobs-error")).to_be_hidden()
    expect(job(page, "a")).to_be_visible()


def test_only_the_newest_ended_jobs_are_shown_at_first(node: PageNode, watched: Watched) -> None:
    node.jobs.add("0")
    for name in "123456789":
        node.jobs.add(name, BulkJobState.DONE, done=8)
    page = watched().open(node.url)
    expect(page.locator("#jobs > tbody")).to_have_count(6)
    expect(page.locator("#jobs > tbody").first).to_have_attribute("data-job", "0")
    page.locator("#jobs-more").click()
    expect(page.locator("#jobs > tbody")).to_have_count(10)
    expect(page.locator("#jobs-more")).to_have_text("Show fewer jobs that have ended")
