"""Opens the status page with generated shards, jobs and series in Chromium and saves screenshots."""

import math
import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from strandline.jobs.counts import Counts
from strandline.node.shard.bucket_report import BucketFigures
from strandline.promql.plan.query_times import QueryTimes
from strandline.recovery.periods import HOUR
from strandline.store.bulk_jobs import BulkJobState
from support.chromium import chromium
from support.fake_queries import FakeQueries
from support.page_jobs import DAY, FakeJobs, bad_records
from support.page_node import PageNode
from support.watched_page import WatchedPage

DOCS = Path(__file__).parents[2] / "docs"
NOW = int(time.time() * 1000)
THIS_HOUR = NOW // HOUR
QUERY = "sum by (job) (rate(http_requests_total[5m]))"
RUNNING = "20261118T101500Z-a1b2c3"


def buckets() -> Iterator[BucketFigures]:
    """Two days of two shards. The last two buckets are closed and open, the others stored."""
    for hour in range(THIS_HOUR - 47, THIS_HOUR + 1):
        for shard in range(2):
            count = int(155_000 + 40_000 * math.sin(hour / 4)) // (4 if hour == THIS_HOUR - 20 else 1)
            state = "open" if hour == THIS_HOUR else "closed" if hour == THIS_HOUR - 1 else "stored"
            yield BucketFigures(shard, hour, hour * HOUR, (hour + 1) * HOUR, count, count // 10, count * 240, 0, state)


def series() -> Iterator[tuple[dict[str, str], list[tuple[int, float]]]]:
    """Counters of four jobs with three instances each."""
    for place, job in enumerate(("api", "checkout", "search", "web")):
        for machine in range(3):
            total, samples = 0.0, []
            for step, when in enumerate(range(NOW - 2 * HOUR, NOW + HOUR, 15_000)):
                total += 15 * (40 + 25 * place + 12 * math.sin(step / 37 + place) + 4 * math.sin(step / 5 + machine))
                samples.append((when, float(round(total))))
            labels = {"__name__": "http_requests_total", "job": job, "instance": f"{job}-{machine + 1}:9100"}
            yield labels, samples


def add_day_s_jobs(jobs: FakeJobs) -> None:
    """Add a running import, and a send and an export that are done."""
    jobs.add(
        "20261118T080000Z-c04d77", BulkJobState.DONE, done=4, of=4, counts=Counts(28_000_000, 28_000_000), kind="export"
    )
    sent = Counts(83_000, 0, 29, 82_971)
    jobs.add("20261118T093000Z-5e8f10", BulkJobState.DONE, done=3, of=3, counts=sent, kind="send")
    jobs.add(RUNNING, done=5, counts=Counts(12_000_000, 11_999_100, 900))
    jobs.run_for(40)


def add_all_states(jobs: FakeJobs) -> None:
    """Add a job in each state that operators have to know."""
    idle_since = jobs.clock.now_ms() - 9 * DAY // 2
    why = "/data/2026/cpu.csv has changed since the job was planned: its size was 512 bytes and is 600"
    jobs.add(
        "20261117T070000Z-00ff01",
        BulkJobState.FAILED,
        done=7,
        counts=Counts(5_000_000, 5_000_000),
        failed=[why],
        reason=f"1 of 8 parts failed; part 7: {why}",
    )
    jobs.add("20261117T080000Z-00ff00", BulkJobState.DONE, done=8, counts=Counts(5_000_000, 5_000_000))
    jobs.add(
        "20261118T080000Z-5f5f5f",
        BulkJobState.PAUSED,
        done=5,
        of=9,
        counts=Counts(1_000_000, 1_000_000),
        reason="paused by an operator",
        idle_since=jobs.clock.now_ms() - HOUR,
        expires_after=5 * DAY,
    )
    jobs.add(
        "20261118T090000Z-77ab01",
        BulkJobState.BROKEN,
        done=1,
        counts=Counts(1_200_000, 1_128_793, 71_207),
        bad=bad_records(),
        reason="71207 of 1200000 records failed (5.9%), more than jobs.error_rate = 0.05 allows",
        idle_since=idle_since,
        expires_after=5 * DAY,
    )
    jobs.add(RUNNING, done=3, counts=Counts(5_000_000, 4_997_000, 3_000))
    jobs.run_for(40)


def with_speed(page: Page, jobs: FakeJobs) -> None:
    """Advance the running job until the page shows its speed."""
    jobs.land(RUNNING, 7, Counts(700_000, 699_900, 100))
    speed = page.locator(f'tbody[data-job="{RUNNING}"] [data-name="Records/s"]')
    expect(speed).to_have_text(re.compile(r"[1-9]"))


def status_page(watch: WatchedPage, node: PageNode, scheme: str) -> None:
    """A screenshot of the complete page with a query."""
    page = watch.open(node.url, f"#{urlencode({'query': QUERY})}")
    expect(page.locator("#plot .lines path")).to_have_count(4)
    expect(page.locator("#job-rates path.rate")).to_have_count(2)
    with_speed(page, node.jobs)
    page.screenshot(path=DOCS / f"status-page-{scheme}.png", full_page=True)


def jobs_table(watch: WatchedPage, node: PageNode) -> None:
    """A screenshot of the bulk jobs, as displayed with an admin token."""
    page = watch.open(node.url)
    page.locator("#jobs-admin").click()
    page.locator("#admin-token").fill("a-token-of-an-operator-1")
    page.locator("#admin-form button").click()
    expect(page.locator("#job-rates path.rate")).to_have_count(2)
    with_speed(page, node.jobs)
    page.locator("section", has=page.locator("#jobs-title")).screenshot(path=DOCS / "jobs-page.png")


def main() -> None:
    """Render all screenshots."""
    with chromium() as browser:
        for scheme in ("light", "dark"):
            with PageNode(FakeQueries(series(), buckets=tuple(buckets()))) as node:
                # The page shows the duration of a query, so the kernels are loaded before.
                node.queries.engine.query(QUERY, QueryTimes.instant(NOW))
                add_day_s_jobs(node.jobs)
                watch = WatchedPage(browser, viewport={"width": 1200, "height": 900}, color_scheme=scheme)
                status_page(watch, node, scheme)
                watch.close()
        with PageNode(FakeQueries()) as node:
            add_all_states(node.jobs)
            watch = WatchedPage(browser, viewport={"width": 1200, "height": 900}, color_scheme="light")
            jobs_table(watch, node)
            watch.close()


if __name__ == "__main__":
    main()
