"""Answers and refusals of one shard."""

from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from strandline.clock import ManualClock, SystemClock
from strandline.index import catalogue as catalogues
from strandline.index.documents import decode_part_key
from strandline.index.matchers import Matcher, MatchOp
from strandline.index.pylucene.queries import everything
from strandline.node.query.answers import BucketsAnswer, SamplesAnswer, SeriesAnswer, TermsAnswer
from strandline.node.query.queries import Cancellation, QueryCancelled, QueryTimedOut, QueryTooLarge, QueryUnavailable
from strandline.node.query.shard_answers import ShardAnswers
from strandline.node.query.shard_requests import (
    BucketsRequest,
    LabelNamesRequest,
    LabelValuesRequest,
    SamplesRequest,
    SeriesRequest,
)
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.status import Phase
from strandline.node.shard.store_health import StoreHealth
from strandline.store.protocol import StoreUnavailable
from strandline.time_range import ALL_TIMES, TimeRange
from support.query_worlds import LiveWorld, LuceneWorld, expected_samples, names_of, samples_of, selector, written
from support.shard_world import HOUR, METRICS, MINUTE, StoreCall, produce_everywhere

pytestmark = pytest.mark.unit

EVERY = (Matcher("__name__", MatchOp.MATCH, ".+"),)
ALL_SAMPLES = SamplesRequest(EVERY, ALL_TIMES, 1000, 100_000)


@pytest.fixture
def stored(world: LuceneWorld) -> LuceneWorld:
    """Three hours with a sample of each metric per hour; two of them are stored."""
    for hour in range(3):
        produce_everywhere(world, value=float(hour))
        world.settle()
        if hour < 2:
            world.pass_hours(1)
    return world


def cancellation() -> Cancellation:
    return Cancellation(SystemClock(), 60.0)


def read(answers: ShardAnswers, request: SamplesRequest = ALL_SAMPLES) -> SamplesAnswer:
    answer = answers.answer(request, cancellation())
    assert isinstance(answer, SamplesAnswer)
    return answer


def at_first_segment(world: LuceneWorld, action: object) -> list[StoreCall]:
    """Run an action at the first read of segments. Returns the calls that read segments."""
    calls: list[StoreCall] = []

    def hook(call: StoreCall) -> None:
        if call.name == "segments":
            calls.append(call)
            if len(calls) == 1 and callable(action):
                action()

    world.store.before = hook
    return calls


def test_an_owner_that_is_fenced_while_it_answers_returns_no_answer(stored: LuceneWorld, answers: ShardAnswers) -> None:
    def fence() -> None:
        stored.status.phase, stored.status.reason = Phase.FENCED, "another node took it"

    at_first_segment(stored, fence)
    with pytest.raises(QueryUnavailable, match=r"shard 0 belongs to another owner now \(another node took it\)"):
        read(answers)


@pytest.mark.parametrize("hangs", [True, False])
def test_a_query_that_ran_out_of_time_while_the_store_hung_names_the_store(stored: LuceneWorld, hangs: bool) -> None:
    clock = ManualClock(0)
    health = StoreHealth("Cassandra at db:9042", clock)

    class WorldWithHealth(LiveWorld):
        @property
        def parts(self) -> ShardParts:
            return replace(super().parts, store_health=health)

    at_first_segment(stored, lambda: clock.sleep(31))
    with closing(ShardAnswers(WorldWithHealth(stored))) as answers, ExitStack() as pending:
        if hangs:
            pending.enter_context(health.call())
        with pytest.raises((QueryUnavailable, QueryTimedOut)) as caught:
            answers.answer(ALL_SAMPLES, Cancellation(clock, 30.0))
    assert isinstance(caught.value, QueryUnavailable) is hangs
    if hangs:
        assert "its store (Cassandra at db:9042) has not answered for 31 s" in caught.value.message


def test_an_answer_begun_before_the_shard_was_active_has_its_warning(
    stored: LuceneWorld, answers: ShardAnswers
) -> None:
    def become_active() -> None:
        stored.status.phase, stored.status.lag = Phase.ACTIVE, 0

    stored.status.phase, stored.status.lag = Phase.CATCHING_UP, None
    at_first_segment(stored, become_active)
    since = f"since {written(stored.running.stored_before)}, and older ones that came late"
    assert read(answers).warnings == (f"shard 0 is catching up: the answer may lack samples {since}",)
    assert read(answers).warnings == ()


def test_before_the_index_is_loaded_requests_are_refused(stored: LuceneWorld, answers: ShardAnswers) -> None:
    stored.shard = None
    for phase in (Phase.ACQUIRING, Phase.RECOVERING_INDEX, Phase.REPLAYING, Phase.ACTIVE):
        stored.status.phase, stored.status.fraction = phase, 0.25
        with pytest.raises(QueryUnavailable, match="shard 0 "):
            answers.answer(LabelNamesRequest((), None, 10), cancellation())
    stored.status.phase = Phase.RECOVERING_INDEX
    with pytest.raises(QueryUnavailable, match=r"shard 0 is loading its index \(25 %\)"):
        answers.answer(BucketsRequest(None, 10), cancellation())


def test_keys_loaded_from_the_store_are_found_without_new_records(stored: LuceneWorld) -> None:
    stored.pass_hours(1)
    stored.crash()
    for file in (stored.options.folder / "index").rglob("*"):
        if file.is_file():
            file.unlink()
    stored.start()
    stored.read_all()
    with closing(ShardAnswers(LiveWorld(stored))) as answers:
        assert samples_of(read(answers)) == expected_samples([stored])


def test_a_store_that_does_not_answer_makes_the_shard_unavailable(stored: LuceneWorld, answers: ShardAnswers) -> None:
    def fail() -> None:
        raise StoreUnavailable("Cassandra does not answer", remedy="Look after it")

    at_first_segment(stored, fail)
    with pytest.raises(QueryUnavailable, match=r"shard 0 can't answer: Cassandra does not answer. Look after it"):
        read(answers)


def test_a_request_is_cancelled_between_segments(
    stored: LuceneWorld, answers: ShardAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Rows with few series are read together.
    monkeypatch.setattr("strandline.node.shard.pinned_read._ROWS_PER_ROUND", 2)
    cancelled_by_hook = cancellation()
    calls = at_first_segment(stored, cancelled_by_hook.cancel)
    with pytest.raises(QueryCancelled):
        answers.answer(ALL_SAMPLES, cancelled_by_hook)
    rows = [row for row in stored.manifest().groups if row.samples]
    assert len(calls) < len(rows)


def test_only_segments_of_groups_with_a_selected_series_are_read(stored: LuceneWorld, answers: ShardAnswers) -> None:
    calls = at_first_segment(stored, None)
    answer = read(answers, SamplesRequest(selector(METRICS[0]), ALL_TIMES, 10, 100))
    assert samples_of(answer) == expected_samples([stored], names={(METRICS[0], "a"): None})
    assert len({call.arguments[0].group for call in calls}) == 1
    assert len(calls) == 2, "one for each stored bucket"


def test_more_samples_than_the_limit_are_refused_before_all_are_read(
    stored: LuceneWorld, answers: ShardAnswers
) -> None:
    for _ in range(6):
        produce_everywhere(stored)
        stored.pass_hours(1)
    calls = at_first_segment(stored, None)
    with pytest.raises(QueryTooLarge, match=r"at least \d+ samples, and 3 are allowed"):
        read(answers, replace(ALL_SAMPLES, max_samples=3))
    assert len(calls) < len([row for row in stored.manifest().groups if row.samples])


def test_one_sample_over_the_limit_is_refused(stored: LuceneWorld, answers: ShardAnswers) -> None:
    samples = sum(map(len, expected_samples([stored]).values()))
    assert len(read(answers, replace(ALL_SAMPLES, max_samples=samples)).time) == samples
    with pytest.raises(QueryTooLarge, match=f"the query reads {samples} samples, and {samples - 1} are allowed"):
        read(answers, replace(ALL_SAMPLES, max_samples=samples - 1))


def test_too_many_series_are_refused_before_any_segment_is_read(stored: LuceneWorld, answers: ShardAnswers) -> None:
    calls = at_first_segment(stored, None)
    with pytest.raises(QueryTooLarge, match="matches 12 series, and a query may read samples of 11"):
        read(answers, replace(ALL_SAMPLES, max_series=11))
    assert calls == []


def test_samples_that_are_read_twice_count_once_for_the_limit(stored: LuceneWorld, answers: ShardAnswers) -> None:
    """A bucket that is stored between reading the buffers and reading the manifest is in both."""
    stored.pass_time(HOUR)
    stored.read_all()
    complete = samples_of(read(answers))
    overlapping = stored.running.view.overlapping

    def store_first(*arguments: int) -> object:
        stored.running.view.overlapping = overlapping  # type: ignore[method-assign]
        while stored.running.flusher.step() == 0:
            pass
        return overlapping(*arguments)

    stored.running.view.overlapping = store_first  # type: ignore[method-assign, assignment]
    limited = replace(ALL_SAMPLES, max_samples=sum(map(len, complete.values())))
    assert samples_of(read(answers, limited)) == complete == expected_samples([stored])


def test_a_bucket_stored_before_the_buffers_are_read_is_not_missed(stored: LuceneWorld, answers: ShardAnswers) -> None:
    stored.pass_time(HOUR)
    stored.read_all()
    flusher = stored.running.flusher
    closed_buckets = flusher.closed_buckets
    assert closed_buckets()

    def store_first() -> object:
        flusher.closed_buckets = closed_buckets  # type: ignore[method-assign]
        while flusher.step() == 0:
            pass
        return closed_buckets()

    flusher.closed_buckets = store_first  # type: ignore[method-assign, assignment]
    assert samples_of(read(answers)) == expected_samples([stored])
    assert not closed_buckets()


def test_a_bucket_closed_after_the_closed_ones_were_read_is_not_missed(
    stored: LuceneWorld, answers: ShardAnswers
) -> None:
    stored.pass_time(HOUR)
    flusher, bucket = stored.running.flusher, stored.running.bucket
    closed_buckets = flusher.closed_buckets

    def close_afterwards() -> object:
        flusher.closed_buckets = closed_buckets  # type: ignore[method-assign]
        closed = closed_buckets()
        stored.read_all()
        return closed

    flusher.closed_buckets = close_afterwards  # type: ignore[method-assign, assignment]
    assert samples_of(read(answers)) == expected_samples([stored])
    assert stored.running.bucket == bucket + 1


def test_of_samples_at_one_time_in_several_buckets_the_newest_bucket_wins(
    world: LuceneWorld, answers: ShardAnswers
) -> None:
    time = world.clock.now_ms()
    for value in range(5):
        world.produce(("m", "a", time, float(value)))
        world.settle()
        assert samples_of(read(answers)) == {("m", "a"): [(time, float(value))]}
        if value < 3:
            world.pass_hours(1)
        else:
            world.pass_time(HOUR)
            world.read_all()
        assert samples_of(read(answers)) == {("m", "a"): [(time, float(value))]}


def test_of_samples_at_one_time_the_open_bucket_wins_over_one_that_waits_to_be_stored(
    world: LuceneWorld, answers: ShardAnswers
) -> None:
    time = world.clock.now_ms()
    for value in range(3):
        world.produce(("m", "a", time, float(value)))
        world.read_all()
        assert samples_of(read(answers)) == {("m", "a"): [(time, float(value))]}
        world.pass_time(HOUR)
        world.read_all()
    assert len(world.running.flusher.closed_buckets()) == 3


def test_a_key_purged_while_its_samples_are_read_is_left_out(
    stored: LuceneWorld, answers: ShardAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Otherwise few keys would be fetched together with their part ids.
    monkeypatch.setattr(catalogues.Catalogue, "keys_up_to", lambda *_, **__: None)
    now = stored.clock.now_ms()
    stored.produce(*((metric, "a", now + 1, float(number)) for number, metric in enumerate(METRICS)))
    stored.settle()
    lucene = stored.home.index
    assert lucene is not None
    batch = lucene.part_keys(everything())
    keys = [decode_part_key(batch.part_key(place)) for place in range(len(batch))]
    purged = next(place for place, labels in enumerate(keys) if labels["__name__"] == METRICS[3])
    answers.answer(BucketsRequest(None, 1), cancellation())

    def purge() -> None:
        stored.running.index._documents.delete(catalogues.to_bitmap(batch.part_ids[purged : purged + 1]))
        lucene.refresh()

    at_first_segment(stored, purge)
    expected = expected_samples([stored])
    del expected[METRICS[3], "a"]
    assert samples_of(read(answers)) == expected


@pytest.mark.parametrize("at_once", [1, 5, 12, 100])
def test_keys_are_fetched_in_batches(
    stored: LuceneWorld, answers: ShardAnswers, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogues, "_KEYS_PER_FETCH", at_once)
    for request in (
        SeriesRequest((), None, 100),
        SeriesRequest((EVERY,), None, 100),
        SeriesRequest((selector('{name="a"}'),), None, 100),
    ):
        answer = answers.answer(request, cancellation())
        assert isinstance(answer, SeriesAnswer)
        assert set(names_of(answer.keys)) == {(metric, "a") for metric in METRICS}
    assert samples_of(read(answers)) == expected_samples([stored])


@pytest.mark.parametrize("live", [1, 6, 11], ids=lambda live: f"{live} of 12 live")
def test_series_that_ended_before_the_range_are_left_out_however_many_they_are(
    world: LuceneWorld, answers: ShardAnswers, live: int
) -> None:
    produce_everywhere(world)
    world.settle()
    for _ in range(3):
        world.pass_hours(1)
        now = world.clock.now_ms()
        world.produce(*((metric, "a", now, 2.0) for metric in METRICS[:live]))
        world.settle()
    within = TimeRange(world.clock.now_ms() - MINUTE, world.clock.now_ms())
    answer = answers.answer(SeriesRequest((selector('{name="a"}'),), within, 100), cancellation())
    assert isinstance(answer, SeriesAnswer)
    assert sorted(names_of(answer.keys)) == sorted((metric, "a") for metric in METRICS[:live])


def test_label_values_of_any_script_keep_their_bytes(world: LuceneWorld, answers: ShardAnswers) -> None:
    names = ["a", "straße", "\U0001f600", "日本", "z"]
    world.produce(*(("m", name, world.clock.now_ms(), 1.0) for name in names))
    world.settle()
    answer = answers.answer(LabelValuesRequest("name", (), None, 10), cancellation())
    assert isinstance(answer, TermsAnswer)
    assert answer.terms() == sorted(names, key=str.encode)


def test_buckets_are_listed_as_open_waiting_or_stored(stored: LuceneWorld, answers: ShardAnswers) -> None:
    stored.pass_time(HOUR)
    stored.read_all()
    answer = answers.answer(BucketsRequest(None, 3), cancellation())
    assert isinstance(answer, BucketsAnswer)
    first, closed, opened = answer.buckets
    assert (first.state, first.samples, first.bytes, first.active) == ("stored", 12, 0, 12)
    assert first.segments > 0
    assert (closed.state, closed.samples, closed.active, closed.segments) == ("closed", 12, 12, 0)
    assert closed.bytes > 0
    assert (opened.state, opened.samples, opened.active, opened.changed) == ("open", 0, 0, 0)
