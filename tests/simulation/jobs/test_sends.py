"""Jobs that send series, with crashes at every call to store, Kafka and nodes: each series is sent once."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.jobs.outcome import PartOutcome
from strandline.jobs.report import JobReport
from strandline.jobs.sending.part_send import EARLIER
from strandline.jobs.transitions import request_stop, resume
from strandline.store.bulk_jobs import BulkJobState, Wanted
from strandline.store.jobs import JobState
from support.bulk_worlds import NOW, Fault, FaultKind
from support.send_worlds import SendWorld, series

pytestmark = pytest.mark.simulation

SERIES = 30
ALL = tuple(series(number) for number in range(SERIES))


def sent(world: SendWorld) -> list[str]:
    """The host of each message, including duplicates."""
    return sorted(json.loads(record.value)["host"] for record in world.records())


def hosts(*numbers: int) -> list[str]:
    return sorted(f"host-{number}" for number in numbers)


def event_files(world: SendWorld) -> list[str]:
    return sorted(path.name for path in (world.folder / "events").iterdir())


def check_done(world: SendWorld, bad: int = 0) -> None:
    assert sent(world) == hosts(*range(SERIES - bad))
    job = world.job()
    assert (job.state, job.reason) == (BulkJobState.DONE, "")
    counts = JobReport.from_json(job.report).counts
    assert (counts.records, counts.sent, counts.bad) == (SERIES, SERIES - bad, bad)
    assert counts.bytes == sum(len(record.value) for record in world.records())
    assert "job.json" in event_files(world)


def test_each_series_becomes_a_message_with_key_value_and_headers(tmp_path: Path) -> None:
    world = SendWorld(tmp_path, *ALL)
    world.planned(template={"key": "{host}", "value": {"load": "{$value}"}, "headers": {"from": "{__name__}"}})
    assert world.work()
    found = {record.key: record for record in world.records()}
    assert len(found) == SERIES
    assert json.loads(found[b"host-7"].value) == {"load": 7.0}
    headers = dict(found[b"host-7"].headers)
    assert (headers["from"], headers["strandline-job"]) == (b"up", b"job")
    assert "strandline-times" not in headers


@pytest.mark.parametrize("kind", FaultKind)
def test_a_crash_at_any_call_loses_and_duplicates_no_message(tmp_path: Path, kind: FaultKind) -> None:
    calls = 0
    while True:
        calls += 1
        world = SendWorld(tmp_path / str(calls), *ALL)
        world.planned()
        fault = Fault(kind, calls)
        world.work(fault)
        if not fault.is_over:
            break
        assert world.work()
        check_done(world)
        assert event_files(world) == ["job.json"]
    assert calls > 60


@pytest.mark.parametrize("kind", FaultKind)
def test_a_crash_at_any_call_loses_no_event_of_a_cancelled_job(tmp_path: Path, kind: FaultKind) -> None:
    calls = 0
    while True:
        calls += 1
        world, posted = begun(tmp_path / str(calls)), list[tuple[str, bytes]]()
        world.webhook = lambda key, body, posted=posted: posted.append((key, body))
        world.board.change(world.job(), lambda job: request_stop(job, Wanted.CANCELLED, NOW))
        fault = Fault(kind, calls)
        world.work(fault)
        if not fault.is_over:
            break
        assert world.work()
        assert (world.job().state, event_files(world)) == (BulkJobState.CANCELLED, ["job.cancelled.json"])
        content = (world.folder / "events" / "job.cancelled.json").read_bytes()
        assert set(posted) == {("job.cancelled.0", content)}
        event = json.loads(content)
        assert (event["event"], event["state"], event["reason"]) == (
            "job.cancelled",
            "cancelled",
            "cancelled by an operator",
        )
        # The records of its part that have landed, though the part is not done.
        assert event["counts"]["sent"] == len(world.records()) > 0
        # Once the event is published, no worker writes it again.
        (world.folder / "events" / "job.cancelled.json").unlink()
        assert world.work()
        assert event_files(world) == []
    assert calls > 10


def test_workers_that_crash_repeatedly_make_progress(tmp_path: Path) -> None:
    unrenderable = replace(ALL[-1], labels={"__name__": "up"})
    world = SendWorld(tmp_path, *ALL[:-1], unrenderable, failures_allowed=1_000)
    world.planned()
    lives = 0
    while not world.work(Fault(FaultKind.CRASH_AFTER, 17)):
        lives += 1
        assert lives < 1_000
    assert lives > 5
    check_done(world, bad=1)


def begun(tmp_path: Path, **spec: object) -> SendWorld:
    """A job whose only part has landed some chunks before it lost its worker."""
    world = SendWorld(tmp_path, *ALL)
    world.planned(parts=1, **spec)
    calls = 20
    while not world.records():
        calls += 1
        world.work(Fault(FaultKind.CRASH_BEFORE, calls))
    assert 0 < len(world.records()) < SERIES
    return world


def test_changes_during_an_interruption_duplicate_nothing(tmp_path: Path) -> None:
    """Series that are added after the last one sent are sent, those before it are not, and none is sent twice."""
    world = begun(tmp_path)
    before = sent(world)
    last = max(series.key for series in ALL if series.labels["host"] in before)
    later = tuple(series(number) for number in range(SERIES, 2 * SERIES))
    world.nodes.add(*later, *(replace(series, value=99.0) for series in ALL))
    assert world.work()
    behind = [series.labels["host"] for series in later if series.key > last]
    assert 0 < len(behind) < SERIES
    assert sent(world) == sorted([*hosts(*range(SERIES)), *behind])
    counts = JobReport.from_json(world.job().report).counts
    assert (counts.records, counts.sent) == (SERIES + len(behind), SERIES + len(behind))


def test_the_number_of_bad_records_survives_an_interruption(tmp_path: Path) -> None:
    """The reasons are only unknown for records that were counted before the interruption."""
    world = SendWorld(
        tmp_path, *(replace(series, labels={"__name__": "up", "n": series.labels["host"]}) for series in ALL)
    )
    world.planned(parts=1)
    assert not world.work(Fault(FaultKind.CRASH_AFTER, 32))
    assert world.work()
    report = JobReport.from_json(world.job().report)
    assert (report.counts.bad, sum(report.bad.values())) == (SERIES, SERIES)
    assert 0 < report.bad[EARLIER] < SERIES


def test_chunks_limited_by_bytes_omit_nothing(tmp_path: Path) -> None:
    world = SendWorld(tmp_path, *ALL)
    world.planned(parts=2, chunk_series=10, chunk_bytes=40)
    assert world.work()
    check_done(world)
    chunks = [
        (dict(record.headers)["strandline-part"], dict(record.headers)["strandline-chunk"])
        for record in world.records()
    ]
    assert max(chunks.count(chunk) for chunk in chunks) == 2


def test_a_part_is_not_done_while_a_node_s_answer_has_a_warning(tmp_path: Path) -> None:
    world = SendWorld(tmp_path, *ALL)
    world.planned()
    world.nodes.warns = True
    world.work(steps=5)
    parts = world.board.parts(world.job())
    assert (world.records(), {part.state for part in parts}, {part.failures for part in parts}) == (
        [],
        {JobState.PENDING},
        {0},
    )
    world.nodes.warns = False
    assert world.work()
    check_done(world)


def test_a_template_that_fits_no_series_breaks_the_job(tmp_path: Path) -> None:
    world = SendWorld(tmp_path, *(series(number) for number in range(1_500)))
    world.planned(parts=30, template={"value": "{datacentre}"}, chunk_series=100)
    assert world.work()
    job = world.job()
    assert job.state is BulkJobState.BROKEN
    assert "jobs.error_rate" in job.reason
    assert any(part.state is JobState.PENDING for part in world.board.parts(job))
    assert not world.records()
    done = [part for part in world.board.parts(job) if part.state is JobState.DONE]
    assert set(PartOutcome.from_json(done[0].outcome).bad.counts) == {
        "it has no label datacentre, and the template has no default for datacentre"
    }


def test_a_broker_that_refuses_messages_breaks_the_job_and_a_resume_sends_each_once(tmp_path: Path) -> None:
    some = tuple(series(number) for number in range(1_500))
    world = SendWorld(tmp_path, *some, failures_allowed=100)
    world.planned(parts=2, chunk_series=500)
    world.cluster.refuses_records = True
    assert world.work()
    assert world.job().state is BulkJobState.BROKEN
    assert not world.records()
    world.cluster.refuses_records = False
    world.board.change(world.job(), lambda job: resume(job, world.clock.now_ms()))
    assert world.work()
    assert sent(world) == hosts(*range(1_500))
    assert JobReport.from_json(world.job().report).counts.sent == 1_500


def control_list(world: SendWorld) -> bytes:
    return (world.folder / "events" / "job.control.csv").read_bytes()


def test_the_control_sample_is_the_same_for_all_part_sizes_and_is_not_sent(tmp_path: Path) -> None:
    lists = set()
    for parts in (1, 2, 7, 40):
        world = SendWorld(tmp_path / str(parts), *ALL)
        world.planned(parts=parts, control=world.control(0.3))
        assert world.work()
        lists.add(control_list(world))
        lines = control_list(world).decode().splitlines()[1:]
        assert lines == sorted(lines)
        left_out = [
            series.labels["host"] for series in ALL if any(series.labels["host"] + '""' in line for line in lines)
        ]
        assert 3 <= len(left_out) == len(lines)
        assert sorted([*sent(world), *left_out]) == hosts(*range(SERIES))
    assert len(lists) == 1


@pytest.mark.parametrize("calls", [23, 29, 35, 47])
def test_the_control_sample_is_the_same_though_parts_were_interrupted(tmp_path: Path, calls: int) -> None:
    undisturbed = SendWorld(tmp_path / "undisturbed", *ALL)
    undisturbed.planned(control=undisturbed.control(0.3))
    assert undisturbed.work()
    world = SendWorld(tmp_path / "other", *ALL, failures_allowed=100)
    world.planned(parts=1, control=world.control(0.3))
    while not world.work(Fault(FaultKind.CRASH_AFTER, calls)):
        pass
    assert control_list(world) == control_list(undisturbed)
    assert sent(world) == sent(undisturbed)


def test_a_job_that_is_an_hour_overdue_fails_with_the_reason_and_may_be_resumed(tmp_path: Path) -> None:
    late = SendWorld(tmp_path, *ALL)
    late.planned(due_at=NOW + 60_000)
    assert not late.worker().step()
    assert late.job().state is BulkJobState.PLANNED
    late.clock.sleep(3_660)
    assert late.work()
    assert late.job().state is BulkJobState.FAILED
    assert late.job().reason == "it was due at 2027-01-15T08:01:00Z, and no worker began it within an hour"
    assert not late.records()
    assert event_files(late) == ["job.failed.json"]
    event = json.loads((late.folder / "events" / "job.failed.json").read_bytes())
    assert (event["event"], event["reason"]) == ("job.failed", late.job().reason)
    late.board.change(late.job(), lambda job: resume(job, late.clock.now_ms()))
    assert late.work()
    check_done(late)
