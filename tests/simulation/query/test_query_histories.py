"""Queries at any moment of a shard's history: while buckets are cut and stored, and after crashes and restarts."""

import shutil
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from strandline.clock import SystemClock
from strandline.index.matchers import Matcher, MatchOp
from strandline.node.query.answer_messages import answer_of
from strandline.node.query.answers import Answer, SamplesAnswer, SeriesAnswer, TermsAnswer
from strandline.node.query.frames import decode_frame
from strandline.node.query.index_version import IndexVersionPage, IndexVersionReader
from strandline.node.query.lookup_frames import lookup_frame
from strandline.node.query.lookup_gate import LookupGate
from strandline.node.query.queries import Cancellation
from strandline.node.query.shard_answers import ShardAnswers
from strandline.node.query.shard_requests import (
    LabelNamesRequest,
    LabelValuesRequest,
    LookupRequest,
    SamplesRequest,
    SeriesRequest,
)
from strandline.store.rows import ShardId
from strandline.time_range import ALL_TIMES, TimeRange
from support.packed_lookups import Found, answer_frame, connected, read_answer
from support.query_worlds import LiveWorld, LuceneWorld, expected_samples, labels_of, names_of, samples_of
from support.shard_world import HOUR, MINUTE, POLICY, Crash, StoreCall

pytestmark = pytest.mark.simulation

MEMORY = Path("/dev/shm")
EVERY = (Matcher("__name__", MatchOp.MATCH, ".+"),)
METRICS = ["m0", "m1", "m2", "m3", "m4"]
# A sample: metric, name, minutes before its record, and value.
SAMPLES = st.lists(
    st.tuples(
        st.sampled_from(METRICS),
        st.sampled_from("abc"),
        st.sampled_from([0, 0, 0, 1, 30, 61, 150]),
        st.integers(0, 9),
    ),
    min_size=1,
    max_size=8,
)


class QueryHistory(RuleBasedStateMachine):
    retention = 200 * HOUR

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="strandline-", dir=MEMORY if MEMORY.is_dir() else None))
        self.world: LuceneWorld | None = None

    @initialize(groups=st.sampled_from([1, 3]), seal_rows=st.sampled_from([1, 7, 1000]))
    def begin(self, groups: int, seal_rows: int) -> None:
        policy = replace(POLICY, retention=self.retention)
        self.world = LuceneWorld(
            self.folder, groups=groups, seal_rows=seal_rows, policy=policy, shard=ShardId("metrics", 5)
        )
        self.world.start()
        self.answers = ShardAnswers(LiveWorld(self.world))

    def teardown(self) -> None:
        if self.world is not None:
            self.answers.close()
            self.world.close()
        shutil.rmtree(self.folder)

    @property
    def there(self) -> LuceneWorld:
        assert self.world is not None
        return self.world

    @rule(samples=SAMPLES, minutes=st.sampled_from([0, 1, 20]))
    def a_record_comes(self, samples: list[tuple[str, str, int, int]], minutes: int) -> None:
        now = self.there.clock.now_ms()
        self.there.produce(*((metric, name, now - ago * MINUTE, float(value)) for metric, name, ago, value in samples))
        self.there.pass_time(minutes * MINUTE)
        self.there.read_all()

    @rule(hours=st.sampled_from([1, 2]))
    def hours_pass(self, hours: int) -> None:
        for _ in range(hours):
            self.there.pass_time(HOUR)
            self.there.read_all()

    @rule(pieces=st.integers(1, 12))
    def some_groups_are_stored(self, pieces: int) -> None:
        for _ in range(pieces):
            self.there.running.flusher.step()
        self.there.running.step()

    @rule()
    def everything_due_is_stored(self) -> None:
        self.there.settle()

    @rule(call=st.none() | st.integers(0, 12))
    def a_crash(self, call: int | None) -> None:
        """During a call to the store, or between two calls."""
        if call is not None:
            left = call

            def hook(_call: StoreCall) -> None:
                nonlocal left
                left -= 1
                if left < 0:
                    raise Crash

            self.there.store.before = hook
            with suppress(Crash):
                self.there.store_due()
        self.there.crash()
        self.there.start()
        self.there.read_all()

    @rule(first=st.integers(-200, 200), length=st.integers(0, 300))
    def a_range_is_requested(self, first: int, length: int) -> None:
        start = self.there.clock.now_ms() + first * MINUTE
        self.check(TimeRange(start, start + length * MINUTE))

    @rule(metric=st.sampled_from(["m0", "m1", "m2"]), at=st.integers(0, 20))
    def the_time_of_a_sample_is_requested(self, metric: str, at: int) -> None:
        times = [time for record in self.there.produced for _, time, _ in record.samples]
        if times:
            time = times[at % len(times)]
            self.check(TimeRange(time, time), (Matcher("__name__", MatchOp.EQUAL, metric),))

    @invariant()
    def every_sample_is_found(self) -> None:
        if self.world is not None:
            self.check(ALL_TIMES)

    def check(self, times: TimeRange, selector: tuple[Matcher, ...] = EVERY) -> None:
        give = Cancellation(SystemClock(), 60.0)
        answer = self.answers.answer(SamplesRequest(selector, times, 1000, 100_000), give)
        assert isinstance(answer, SamplesAnswer)
        names = {name: None for name in self.there.expected() if selector is EVERY or name[0] == selector[0].value}
        assert samples_of(answer) == expected_samples([self.there], times, names)
        assert labels_of(answer.keys) == sorted(labels_of(answer.keys))
        assert bool(answer.warnings) is not self.there.is_active()
        series = self.answers.answer(SeriesRequest((selector,), times, 1000), give)
        assert isinstance(series, SeriesAnswer)
        # A series exists from its first sample until it ends, so every series with a sample in the range does.
        assert set(names_of(answer.keys)) <= set(names_of(series.keys)) <= set(names)


class VersionHistory(QueryHistory):
    """As long as the shard publishes the same index version, its lists are the same, also while keys are purged."""

    retention = 6 * HOUR

    def __init__(self) -> None:
        super().__init__()
        self.page = IndexVersionPage(self.folder / "page")
        self.reader = IndexVersionReader(self.folder / "page")
        self.lists: dict[tuple[int, ...], list[list[str]]] = {}

    def teardown(self) -> None:
        super().teardown()
        self.reader.close()
        self.page.close()

    def check(self, times: TimeRange, _selector: tuple[Matcher, ...] = EVERY) -> None:
        self.answers.publish(self.page, LookupGate(None))
        version = self.reader.read()
        lists = self.listed(times)
        if version is not None and version.holds_for(times):
            assert self.lists.setdefault(version.numbers, lists) == lists

    def listed(self, times: TimeRange) -> list[list[str]]:
        requests = [LabelNamesRequest((), times, 100), LabelValuesRequest("__name__", (), times, 100)]
        found = [self.answers.answer(request, Cancellation(SystemClock(), 60.0)) for request in requests]
        return [answer.terms() for answer in found if isinstance(answer, TermsAnswer)]


class LookupHistory(QueryHistory):
    """The JVM gives the same answers as the process. The JVM of an active shard declines only lookups of keys that were
    absent.
    """

    retention = 6 * HOUR

    def __init__(self) -> None:
        super().__init__()
        self.page, self.path = IndexVersionPage(None), self.folder / "look"
        self.gate = LookupGate(self.path)

    def teardown(self) -> None:
        self.gate.close()
        self.page.close()
        super().teardown()

    def check(self, times: TimeRange, _selector: tuple[Matcher, ...] = EVERY) -> None:
        lookups = [lookup for metric in METRICS for lookup in lookups_of(metric, times)]
        by_process = [self.by_process(lookup) for lookup in lookups]
        self.answers.publish(self.page, self.gate)
        if not self.path.exists():
            assert not self.there.is_active()
            return
        with connected(self.path) as connection:
            for lookup, expected in zip(lookups, by_process, strict=True):
                frame = lookup_frame(lookup)
                assert frame is not None
                answer = answer_frame(connection, frame)
                found = read_answer(answer)
                if found is not None:
                    assert self.there.is_active()
                    assert found == Found.of(expected) == Found.of(answer_of(decode_frame(bytearray(answer))))
                elif self.there.is_active():
                    every = self.by_process(replace(lookup, within=ALL_TIMES))
                    assert (
                        contents_of(every) != contents_of(expected) or self.there.running.index.has_purged_documents()
                    )

    def by_process(self, lookup: LookupRequest) -> Answer:
        return self.answers.answer(lookup, Cancellation(SystemClock(), 60.0))


def lookups_of(metric: str, times: TimeRange) -> list[LookupRequest]:
    """By one label, by two, and by a label with one of several values."""
    by_metric = Matcher("__name__", MatchOp.EQUAL, metric)
    return [
        SeriesRequest(((by_metric,),), times, 100),
        LabelNamesRequest(((by_metric,),), times, 100),
        LabelValuesRequest("name", ((by_metric,),), times, 100),
        SeriesRequest(((by_metric, Matcher("name", MatchOp.MATCH, "a|b")),), times, 100),
    ]


def contents_of(answer: Answer) -> object:
    """The series of an answer, or its terms with the number of series of each."""
    if isinstance(answer, SeriesAnswer):
        return labels_of(answer.keys)
    assert isinstance(answer, TermsAnswer)
    return answer.terms(), answer.counts.tolist()


TestQueryHistory = QueryHistory.TestCase
TestQueryHistory.settings = settings(max_examples=15, stateful_step_count=15, deadline=None)
TestVersionHistory = VersionHistory.TestCase
TestVersionHistory.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
TestLookupHistory = LookupHistory.TestCase
TestLookupHistory.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
