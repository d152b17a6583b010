"""Requests from threads while the shard reads, cuts, stores and purges keys."""

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


def cancellation() -> Cancellation:
    """A timeout that no request reaches."""
    return Cancellation(SystemClock(), 120.0)


def test_no_read_has_a_hole_or_a_sample_twice_while_buckets_are_cut_and_stored(
    world: LuceneWorld, answers: ShardAnswers
) -> None:
    """Sample n of each series has the value n: a read must find 0, 1, 2 ... without a gap."""
    stop = threading.Event()
    world.start()
    began = world.clock.now_ms()
    read = 0

    def read_samples() -> int:
        reads = 0
        while not stop.is_set() or reads < 3:
            least = read
            answer = answers.answer(SamplesRequest(EVERY, ALL_TIMES, 100, 100_000), cancellation())
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
            stop.set()
        assert all(future.result(60) >= 3 for future in reading)
    assert len({row.bucket for row in world.manifest().groups}) > 3


def test_requests_for_keys_that_are_being_purged_succeed(world: LuceneWorld, answers: ShardAnswers) -> None:
    stop = threading.Event()
    world.start()

    def request_everything() -> int:
        rounds = 0
        while not stop.is_set() or rounds < 3:
            samples = answers.answer(SamplesRequest(EVERY, ALL_TIMES, 1000, 100_000), cancellation())
            series = answers.answer(SeriesRequest((EVERY,), None, 1000), cancellation())
            values = answers.answer(LabelValuesRequest("name", (EVERY,), ALL_TIMES, 1000), cancellation())
            answers.answer(CardinalityRequest((), ALL_TIMES, 10), cancellation())
            buckets = answers.answer(BucketsRequest(None, 1000), cancellation())
            assert isinstance(samples, SamplesAnswer)
            assert isinstance(series, SeriesAnswer)
            assert isinstance(values, TermsAnswer)
            assert isinstance(buckets, BucketsAnswer)
            assert len(samples.keys) == len(samples.first_sample) - 1
            samples_of(samples)
            assert [bucket.bucket for bucket in buckets.buckets] == sorted(
                {bucket.bucket for bucket in buckets.buckets}
            )
            rounds += 1
        return rounds

    with ThreadPoolExecutor(3) as threads:
        futures = [threads.submit(request_everything) for _ in range(3)]
        try:
            for number in range(RECORDS // 2):
                # New keys each time; those of a few hours ago are purged.
                now = world.clock.now_ms()
                world.produce(*((metric, f"pod-{number}", now, 1.0) for metric in METRICS))
                world.settle()
                world.pass_time(20 * MINUTE)
                if any(future.done() for future in futures):
                    break
        finally:
            stop.set()
        assert all(future.result(60) >= 3 for future in futures)
    assert len(world.running.index.table) < RECORDS // 2 * len(METRICS), "nothing was purged"
