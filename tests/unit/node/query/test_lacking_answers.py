"""An answer that may lack acknowledged samples has a warning with the reason and the time (scenario 47)."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.clock import SystemClock
from strandline.node.query.answers import LACKS_LATER_ONLY
from strandline.node.query.index_version import IndexVersionPage
from strandline.node.query.lookup_gate import LookupGate
from strandline.node.query.queries import Cancellation
from strandline.node.query.shard_answers import ShardAnswers
from strandline.node.query.shard_requests import LabelNamesRequest, SamplesRequest
from strandline.node.shard.report import report_of
from strandline.node.shard.status import Phase
from strandline.time_range import ALL_TIMES, TimeRange
from support.query_worlds import LiveWorld, LuceneWorld, selector, written
from support.shard_world import HOUR, MINUTE, produce_everywhere

pytestmark = pytest.mark.unit

ALL_SAMPLES = SamplesRequest(selector('{__name__=~".+"}'), ALL_TIMES, 1000, 100_000)


@pytest.fixture
def active(world: LuceneWorld) -> LuceneWorld:
    """A shard that has read all records, and has closed a bucket."""
    produce_everywhere(world)
    world.settle()
    world.pass_hours(1)
    assert world.is_active()
    set_active_lag(world, 1000)
    return world


def set_active_lag(world: LuceneWorld, records: int) -> None:
    """Set the option, also in the running shard."""
    world.options = replace(world.options, active_lag=records)
    world.running.parts = replace(world.running.parts, options=world.options)


def warnings(answers: ShardAnswers, within: TimeRange = ALL_TIMES) -> tuple[str, ...]:
    request = replace(ALL_SAMPLES, within=within)
    return answers.answer(request, Cancellation(SystemClock(), 60.0)).warnings


def since(world: LuceneWorld, complete_at: int) -> str:
    return (
        f"the answer may lack samples since {written(complete_at - world.options.grace)}, and older ones that came late"
    )


def run_for(world: LuceneWorld, seconds: float) -> None:
    world.pass_time(int(seconds * 1000))
    world.running.step()


def test_a_shard_that_keeps_up_under_load_never_warns(active: LuceneWorld, answers: ShardAnswers) -> None:
    for _ in range(300):
        produce_everywhere(active)
        run_for(active, 0.5)
        # Only the newest samples could be missing; reading all samples each time would take ten times as long.
        assert warnings(answers, TimeRange(active.clock.now_ms() - MINUTE)) == ()


def test_a_shard_that_reads_slowly_warns_by_age_even_for_a_small_lag(
    active: LuceneWorld, answers: ShardAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll, begun = active.log.poll, active.clock.now_ms()
    monkeypatch.setattr(active.log, "poll", lambda _most, timeout: poll(1, timeout))
    for _ in range(72):
        for _ in range(4):
            produce_everywhere(active)
        run_for(active, 1)
    (warning,) = warnings(answers)
    assert active.status.phase is Phase.ACTIVE
    assert active.status.lag is not None
    assert 200 < active.status.lag < 288, "far less than the lag that gives a warning by itself"
    assert warning.startswith(f"shard 0 is {active.status.lag} records behind (5")
    complete_at = active.running.horizon.now().complete_at
    assert begun < complete_at < begun + 20_000, "records of about 18 s of 72 s were read"
    assert warning.endswith(since(active, complete_at))
    monkeypatch.undo()
    active.read_all()
    run_for(active, 5)
    assert warnings(answers) == ()


def test_an_open_transaction_of_another_producer_is_named_with_the_records_that_it_holds_back(
    active: LuceneWorld, answers: ShardAnswers
) -> None:
    transaction = active.log.begin()
    offset = transaction.append(b"of a foreign producer", active.clock.now_ms())
    begun = active.clock.now_ms()
    for second in range(70):
        produce_everywhere(active, str(second))
        run_for(active, 1)
    assert (active.status.phase, active.status.lag) == (Phase.ACTIVE, 0), "all readable records are read"
    transaction_figures = active.running.horizon.now().transaction
    assert transaction_figures is not None
    assert (transaction_figures.offset, transaction_figures.since) == (offset, begun + 5_000)
    assert 60 < transaction_figures.records <= 71
    held_back = f"{transaction_figures.records} records since {written(transaction_figures.since)}"
    missing = since(active, active.running.horizon.now().complete_at)
    assert warnings(answers) == (
        f"shard 0 can't read past offset {offset}, where an open transaction holds back {held_back}: {missing}",
    )
    assert active.running.horizon.now().complete_at <= begun
    transaction.abort()
    run_for(active, 5)
    active.read_all()
    run_for(active, 5)
    assert warnings(answers) == ()
    assert active.running.horizon.now().transaction is None


def test_consecutive_transactions_that_end_give_no_warning(active: LuceneWorld, answers: ShardAnswers) -> None:
    """At any time, a transaction is open."""
    opened = active.log.begin()
    for number in range(60):
        opened.append(b"?", active.clock.now_ms())
        run_for(active, 1)
        if number % 3 == 2:
            next_one = active.log.begin()
            next_one.append(b"?", active.clock.now_ms())
            opened.commit()
            opened = next_one
        assert warnings(answers) == ()


def test_a_frozen_broker_makes_the_lag_unknown(active: LuceneWorld, answers: ShardAnswers) -> None:
    run_for(active, 5)
    complete_at = active.running.horizon.now().complete_at
    active.log.hangs = True
    for _ in range(14):
        run_for(active, 1)
        assert warnings(answers) == ()
    for _ in range(10):
        run_for(active, 1)
    assert active.status.lag is None
    assert warnings(answers) == (f"shard 0 can't reach Kafka (24 s): {since(active, complete_at)}",)
    active.log.hangs = False
    run_for(active, 1)  # The answer to a request of 20 s ago.
    run_for(active, 1)
    assert (active.status.lag, warnings(answers)) == (0, ())


def test_a_shard_whose_loop_hangs_warns(active: LuceneWorld, answers: ShardAnswers) -> None:
    active.running.step()
    active.pass_time(16_000)
    (warning,) = warnings(answers)
    assert warning.startswith("shard 0 is 0 records behind (16 s): ")


def test_unreachable_kafka_or_a_large_lag_gives_a_warning_at_once(active: LuceneWorld, answers: ShardAnswers) -> None:
    active.running.step()
    age = active.running.horizon.now().age_s
    missing = since(active, active.running.horizon.now().complete_at)
    set_active_lag(active, 100)
    for lag, expected in (
        (1000, ()),
        (1001, (f"shard 0 is 1,001 records behind ({age:.0f} s): {missing}",)),
        (None, (f"shard 0 can't reach Kafka ({age:.0f} s): {missing}",)),
    ):
        active.status.lag = lag
        assert warnings(answers) == expected


def test_an_unread_late_sample_gives_a_warning_at_any_time_of_the_request(
    active: LuceneWorld, answers: ShardAnswers
) -> None:
    """A sender flushes its backlog of an hour, after a transaction of another producer has begun."""
    transaction = active.log.begin()
    transaction.append(b"of a foreign producer", active.clock.now_ms())
    an_hour_ago = active.clock.now_ms() - HOUR
    active.produce(("m", "late", an_hour_ago, 1.0))
    run_for(active, 60)
    within = TimeRange(an_hour_ago - MINUTE, an_hour_ago + MINUTE)
    (warning,) = warnings(answers, within)
    assert "an open transaction holds back" in warning
    assert warning.endswith(": the answer may lack samples that came late")
    transaction.abort()
    run_for(active, 5)
    active.read_all()
    run_for(active, 5)
    assert warnings(answers, within) == ()


def test_a_warning_names_the_missing_time_within_the_request(active: LuceneWorld, answers: ShardAnswers) -> None:
    run_for(active, 30 * 60)
    active.status.lag = None
    read_until = active.running.horizon.now().complete_at - active.options.grace
    oldest = read_until - 24 * HOUR
    for last, expected in (
        (read_until, since(active, read_until + active.options.grace)),
        (read_until - 1, "the answer may lack samples that came late"),
        (oldest, "the answer may lack samples that came late"),
        (oldest - 1, LACKS_LATER_ONLY),
    ):
        (warning,) = warnings(answers, TimeRange(0, last))
        assert warning.endswith(f"): {expected}")
    active.options = replace(active.options, late_by=None)
    active.running.parts = replace(active.running.parts, options=active.options)
    (warning,) = warnings(answers, TimeRange(0, 0))
    assert warning.endswith("): the answer may lack samples that came late")
    active.status.phase = Phase.CATCHING_UP
    (warning,) = warnings(answers, TimeRange(0, 0))
    assert "the answer may lack samples since " in warning


def test_a_record_from_the_future_does_not_advance_the_read_time(active: LuceneWorld, answers: ShardAnswers) -> None:
    """If producers set the times, one may be ahead by nearly a flush interval."""
    active.produce(("m", "fast", active.clock.now_ms(), 1.0), late=-50 * MINUTE)
    run_for(active, 5)
    active.status.lag = None
    assert warnings(answers, TimeRange(0, active.running.horizon.now().complete_at)) != ()


def test_a_shard_that_was_not_complete_since_its_start_is_complete_before_its_open_bucket(
    world: LuceneWorld, answers: ShardAnswers
) -> None:
    """A transaction was open before the start, so that no observation of the log's end was read completely."""
    produce_everywhere(world)
    world.settle()
    world.pass_hours(1)
    world.crash()
    world.log.begin().append(b"of a foreign producer", world.clock.now_ms())
    world.start()
    world.settle()
    assert world.is_active()
    begun = world.running.index.open.bucket * HOUR
    (warning,) = warnings(answers)
    assert warning.endswith(f"the answer may lack samples since {written(begun)}, and older ones that came late")
    (warning,) = warnings(answers, TimeRange(0, begun - 1))
    assert warning.endswith(": the answer may lack samples that came late")
    report = report_of(LiveWorld(world))  # type: ignore[arg-type]
    assert (report.behind_s, report.status.lag) == (None, 0)
    assert report.transaction == world.running.horizon.now().transaction is not None


def test_lookups_are_declined_while_answers_have_warnings(
    active: LuceneWorld, answers: ShardAnswers, tmp_path: Path
) -> None:
    """The JVM's threads do not know the state of the log."""
    answers.answer(LabelNamesRequest((), None, 10), Cancellation(SystemClock(), 60.0))
    opened: list[bool] = []

    class Gate(LookupGate):
        def open(self, *_: object) -> None:
            opened.append(True)

        def shut(self) -> None:
            opened.append(False)

    with closing(IndexVersionPage(tmp_path / "page")) as page:
        active.running.step()
        answers.publish(page, Gate(None))
        active.pass_time(16_000)
        answers.publish(page, Gate(None))
    assert opened == [True, False]
