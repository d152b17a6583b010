"""Plans of jobs that send series, and the webhook."""

import itertools
import pickle
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from strandline.clock import ManualClock
from strandline.jobs.completing import EventNotDelivered
from strandline.jobs.control_sample import ControlSample
from strandline.jobs.sending.spec import HASHES, HashRange, SendSpec, equal_ranges
from strandline.jobs.sending.template import TemplateUnusable
from strandline.jobs.sending.zones import LocalTime
from strandline.node.bulk import sending
from strandline.node.bulk.foreground import wait_for_due
from strandline.node.bulk.send_opening import SendOpener
from strandline.node.bulk.sending import SendOptions, SendPlanReport, SendRefused, narrowed, plan_send, read_template
from strandline.node.bulk.webhook import Webhook
from strandline.node.client.addresses import BadAddress
from strandline.node.settings.sections import Settings
from strandline.store.bulk_jobs import BulkJob
from support.fake_node import FakeNode, fake_node

pytestmark = pytest.mark.unit

# Wednesday, 18 November 2026, 12:00 UTC.
NOW = 1_795_003_200_000
HOUR = 3_600_000
TEMPLATE = {"value": "{host}"}


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNode]:
    groups = SimpleNamespace(require_topic=lambda _timeout: None, close=lambda: None)
    monkeypatch.setattr(sending, "KafkaGroups", lambda *_: groups)
    with fake_node() as running:
        running.data("/api/v1/strandline/cardinality", {"series": 250_000})
        page = {name: [] for name in ("key", "labels", "start", "end", "time", "value")}
        running.data("/api/v1/strandline/series", {"more": False, "unserved": [], **page})
        zones = ["Europe/Berlin", "Europe/Paris", "Asia/Kathmandu", "Etc/GMT+12", "Mars", ""]
        running.data("/api/v1/label/tz/values", zones)
        yield running


def settings(node: FakeNode, **jobs: object) -> Settings:
    return Settings.model_validate({"jobs": {"node_urls": [node.url], **jobs}})


def options(**changes: Any) -> SendOptions:
    chosen = {"selector": "up", "topic": "alerts", "template": TEMPLATE, "at": NOW, "control": ControlSample(0.0)}
    return SendOptions(**{**chosen, **changes})


def test_series_are_divided_into_equal_ranges_of_their_hashes(node: FakeNode) -> None:
    plan = plan_send(settings(node), options(), ManualClock(NOW))
    (job,) = plan.jobs
    assert (plan.series, job.parts, job.due_at) == (250_000, 3, 0)
    planned = job.job()
    ranges = [HashRange.from_json(source) for source in planned.sources]
    assert (ranges[0].first, ranges[-1].last) == (0, HASHES - 1)
    assert all(later.first == former.last + 1 for former, later in itertools.pairwise(ranges))
    lengths = {each.last - each.first for each in ranges}
    assert max(lengths) - min(lengths) <= 1
    spec = SendSpec.from_json(planned.spec)
    assert (spec.window.first, spec.window.last, spec.topic) == (NOW - 300_000, NOW, "alerts")
    assert (
        job.job().plan_hash != plan_send(settings(node), options(at=NOW + 1), ManualClock(NOW)).jobs[0].job().plan_hash
    )


def test_there_is_one_job_per_utc_offset_and_each_zone_is_in_one(node: FakeNode) -> None:
    local = {"zone_label": "tz", "local_time": LocalTime(9, 0)}
    plan = plan_send(settings(node), options(**local), ManualClock(NOW))
    jobs = [(each.offset, (each.due_at - NOW) // HOUR, each.spec.zones.zones) for each in plan.jobs if each.spec.zones]
    assert jobs == [
        (-12, 9, ("Etc/GMT+12",)),
        (5, 16, ("Asia/Kathmandu",)),
        (1, 20, ("Europe/Berlin", "Europe/Paris")),
    ]
    assert plan.unknown_zones == ("", "Mars")
    # The first job reads all series, to count those that belong to no job; the others read only their own.
    assert [each.spec.selector for each in plan.jobs] == [
        "up",
        'up{tz=~"Asia/Kathmandu"}',
        'up{tz=~"Europe/Berlin|Europe/Paris"}',
    ]
    assert [each.spec.zones.counts_others for each in plan.jobs if each.spec.zones] == [True, False, False]
    blocks = SendPlanReport.of(plan).blocks()
    assert "UTC-12:00" in str(blocks[0])
    assert "Mars" in str(blocks)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("up", 'up{tz=~"Etc/GMT[+]5"}'),
        ("up{}", 'up{tz=~"Etc/GMT[+]5"}'),
        ('{a="}"} ', '{a="}",tz=~"Etc/GMT[+]5"}'),
        ('up{a="b",}', 'up{a="b",tz=~"Etc/GMT[+]5"}'),
    ],
)
def test_a_selector_is_narrowed_to_zones(selector: str, expected: str) -> None:
    assert narrowed(selector, "tz", ["Etc/GMT+5"]) == expected


def test_invalid_plans_are_refused(node: FakeNode, tmp_path: Path) -> None:
    chosen, clock = settings(node, events_folder=str(tmp_path)), ManualClock(NOW)
    with pytest.raises(SendRefused, match="is the dataset's own topic"):
        plan_send(chosen, options(topic=chosen.dataset.topic_name), clock)
    node.data("/api/v1/strandline/cardinality", {"series": 550_000})
    with pytest.raises(SendRefused, match=r"would have about 275,000 series, over the limit of 100,000"):
        plan_send(chosen, options(control=ControlSample(0.5)), clock)
    # The number of parts depends on the size of the control series in the store's rows.
    assert plan_send(chosen, options(control=ControlSample(0.1)), clock).jobs[0].parts == 110
    with pytest.raises(SendRefused, match="the spec takes"):
        plan_send(chosen, options(template={"value": "x" * 70_000}), clock)
    with pytest.raises(SendRefused, match=r"jobs\.events_folder is not set"):
        plan_send(settings(node), options(control=ControlSample(0.1)), clock)
    with pytest.raises(TemplateUnusable):
        plan_send(chosen, options(template={"value": "{"}), clock)
    with pytest.raises(BadAddress, match=r"Set jobs.node_urls"):
        plan_send(Settings.model_validate({"http": {"node_address": "127.0.0.1:0"}}), options(), clock)
    node.data("/api/v1/label/tz/values", ["Mars"])
    with pytest.raises(SendRefused, match="no series has a time zone in the label tz"):
        plan_send(chosen, options(zone_label="tz", local_time=LocalTime(9, 0)), clock)
    with pytest.raises(TemplateUnusable, match="can't be read"):
        read_template(tmp_path / "none.toml")


@pytest.mark.parametrize("url", ["ftp://a", "http://user:secret@a/", "http://", "a b", 3])
def test_addresses_that_are_not_urls_are_refused_and_not_shown(url: object) -> None:
    for jobs in ({"webhook": url}, {"node_urls": [url]}):
        with pytest.raises(ValidationError) as caught:
            Settings.model_validate({"jobs": jobs})
        assert "secret" not in str(caught.value)


def test_parts_cover_every_hash_once() -> None:
    for parts in (1, 2, 3, 7, 1000):
        ranges = equal_ranges(parts)
        assert sum(each.last - each.first + 1 for each in ranges) == HASHES
        assert [HashRange.from_json(each.to_json("up")) for each in ranges] == list(ranges)


def test_the_opener_of_the_kind_can_be_pickled_and_shows_no_secret(node: FakeNode, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-of-sixteen-characters\n")
    token.chmod(0o600)
    chosen = Settings.model_validate({"jobs": {"node_urls": [node.url]}, "http": {"read_token_file": str(token)}})
    opener = SendOpener.of(chosen)
    assert pickle.loads(pickle.dumps(opener)) == opener  # noqa: S301 - our own
    assert "a-token" not in repr(opener)


class Hook(ThreadingHTTPServer):
    status = 204

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), HookHandler)
        self.calls: list[tuple[str, str | None, bytes]] = []


class HookHandler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.calls.append((self.path, self.headers["Idempotency-Key"], body))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Not shown."""


def test_a_webhook_gets_the_event_with_its_key_and_must_answer_with_success() -> None:
    with Hook() as hook:
        thread = threading.Thread(target=hook.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            url = f"http://127.0.0.1:{hook.server_port}/done?secret=1"
            Webhook(url)("job-1", b"{}")
            assert hook.calls == [("/done?secret=1", "job-1", b"{}")]
            for hook.status in (302, 404, 503):
                with pytest.raises(EventNotDelivered, match=f"answered {hook.status}") as caught:
                    Webhook(url)("job-1", b"{}")
                assert "secret" not in str(caught.value)
        finally:
            hook.shutdown()
            thread.join()
    with pytest.raises(EventNotDelivered, match="did not answer"):
        Webhook(url, timeout_s=1)("job-1", b"{}")


def test_a_worker_waits_for_later_jobs_until_they_are_due_or_it_is_stopped() -> None:
    class Stop(threading.Event):
        """Advances the clock."""

        def wait(self, timeout: float | None = None) -> bool:
            clock.sleep(timeout or 0)
            return self.is_set()

    clock, stop = ManualClock(NOW), Stop()
    jobs = [BulkJob("metrics", "late", "send", "{}", "hash", 1, 1000, NOW, due_at=NOW + HOUR)]
    board: Any = SimpleNamespace(jobs=lambda: jobs)
    assert not wait_for_due(board, "another", clock, stop)
    assert wait_for_due(board, "late", clock, stop)
    assert clock.now_ms() == NOW + HOUR
    jobs[0] = replace(jobs[0], due_at=NOW + 2 * HOUR)
    stop.set()
    assert not wait_for_due(board, "", clock, stop)
