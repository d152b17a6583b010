"""Questions from threads while the shard reads, cuts, stores and lets keys go."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.clock import SystemClock
from strandline.index.matchers import Matcher, MatchOp
from strandline.node.query.answers import BucketsAnswer, SamplesAnswer, SeriesAnswer, TermsAnswer
from strandline.node.query.queries import Cancellation
from strandline.node.query.shard_answers import ShardAnswers
from strandline.node.query.shard_requests import (
    BucketsRequest,
    CardinalityRequest,
    LabelValuesRequest,
    SamplesRequest,
    SeriesRequest,
)
from strandline.time_range import ALL_TIMES
from support.query_worlds import LiveWorld, LuceneWorld, samples_of
from support.shard_world import HOUR, MINUTE, POLICY

pytestmark = pytest.mark.simulation

EVERY = (Matcher("__name__", MatchOp.MATCH, ".+"),)
METRICS = [f"metric_{number}" for number in range(7)]
RECORDS = 60


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LuceneWorld]:
    made = LuceneWorld(tmp_path, seal_rows=20, policy=replace(POLICY, retention=2 * HOUR))
    yield made
    made.close()


@pytest.fixture
def answers(world: LuceneWorld) -> Iterator[ShardAnswers]:
    made = ShardAnswers(LiveWorld(world))
    yield made
    made.close()


class Asking:
    """Threads that ask again and again until told to stop; what one raises is raised in the end."""

    def __init__(self, answers: ShardAnswers) -> None:
        self.answers, self.stop = answers, threading.Event()
        self.asked = 0

    def give(self) -> Cancellation:
        return Cancellation(SystemClock(), 120.0)


def test_no_read_has_a_hole_or_a_sample_twice_while_buckets_are_cut_and_stored(
    world: LuceneWorld, answers: ShardAnswers
) -> None:
    """Sample n of each series has the value n: whatever a read sees must be 0, 1, 2 ... without end or gap."""
    asking = Asking(answers)
    world.start()
    began = world.clock.now_ms()
    read = 0

    def read_samples() -> int:
        reads = 0
        while not asking.stop.is_set() or reads < 3:
            least = read
            answer = answers.answer(SamplesRequest(EVERY, ALL_TIMES, 100, 100_000), asking.give())
            assert isinstance(answer, SamplesAnswer)
            found = samples_of(answer)
            if least:
                assert set(found) == {(metric, "a") for metric in METRICS}
            for samples in found.values():
                assert [value for _, value in samples] == [float(number) for number in range(len(samples))]
                assert len(samples) >= least
            reads += 1
        return reads

    with ThreadPoolExecutor(3) as threads:
        reading = [threads.submit(read_samples) for _ in range(3)]
        try:
            for number in range(RECORDS):
                time = began + number
                world.produce(*((metric, "a", time, float(number)) for metric in METRICS))
                world.settle()
                read = number + 1
                world.pass_time(6 * MINUTE)
                if any(future.done() for future in reading):
                    break
        finally:
            asking.stop.set()
        assert all(future.result(60) >= 3 for future in reading)
    assert len({row.bucket for row in world.manifest().groups}) > 3


def test_keys_that_are_purged_while_they_are_asked_for_do_no_harm(world: LuceneWorld, answers: ShardAnswers) -> None:
    asking = Asking(answers)
    world.start()

    def ask_everything() -> int:
        asked = 0
        while not asking.stop.is_set() or asked < 3:
            samples = answers.answer(SamplesRequest(EVERY, ALL_TIMES, 1000, 100_000), asking.give())
            series = answers.answer(SeriesRequest((EVERY,), None, 1000), asking.give())
            values = answers.answer(LabelValuesRequest("name", (EVERY,), ALL_TIMES, 1000), asking.give())
            answers.answer(CardinalityRequest((), ALL_TIMES, 10), asking.give())
            buckets = answers.answer(BucketsRequest(None, 1000), asking.give())
            assert isinstance(samples, SamplesAnswer)
            assert isinstance(series, SeriesAnswer)
            assert isinstance(values, TermsAnswer)
            assert isinstance(buckets, BucketsAnswer)
            assert len(samples.keys) == len(samples.first_sample) - 1
            samples_of(samples)
            assert [one.bucket for one in buckets.buckets] == sorted({one.bucket for one in buckets.buckets})
            asked += 1
        return asked

    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(ask_everything) for _ in range(3)]
        try:
            for number in range(RECORDS // 2):
                # New keys each time; those of a few hours ago go.
                now = world.clock.now_ms()
                world.produce(*((metric, f"pod-{number}", now, 1.0) for metric in METRICS))
                world.settle()
                world.pass_time(20 * MINUTE)
                if any(future.done() for future in asked):
                    break
        finally:
            asking.stop.set()
        assert all(future.result(60) >= 3 for future in asked)
    assert len(world.running.index.table) < RECORDS // 2 * len(METRICS), "nothing was purged"
