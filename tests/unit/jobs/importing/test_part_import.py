"""A part of an import lands once, whatever happens between two chunks, and always has the same outcome."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from strandline.clock import ManualClock
from strandline.jobs.bad_records import BadRecord, BadRecords
from strandline.jobs.counts import AttemptCounts, Counts
from strandline.jobs.importing.chunks import Chunk
from strandline.jobs.importing.part_import import PartHooks, SourceUnstable, run_part
from strandline.jobs.landing.memory_part_log import MemoryCluster, MemoryTransactions
from strandline.jobs.landing.part_log import PartLog
from strandline.jobs.landing.progress import PartIdentity
from strandline.jobs.outcome import PartOutcome
from strandline.recovery.periods import HOUR
from strandline.time_range import TimeRange
from strandline.wire.decode import Limits, decode_batch
from support.sample_blocks import block_of

pytestmark = pytest.mark.unit

PART = PartIdentity("metrics", "job", 3)
TIMES = TimeRange(0, 100 * HOUR)
DEADLINE = 1e9
SERIES = [[("__name__", "m"), ("number", str(number))] for number in range(5)]


def chunk(number: int) -> Chunk:
    samples = [(row, (number + row) * HOUR, float(number)) for row in range(5)]
    bad = BadRecords({"wrong": 1}, (BadRecord(number * 100 + 50, 7 * number + 7, "wrong"),))
    return Chunk(((number * 100, block_of(SERIES, samples)),), 6, 7, bad, (number + 1) * 100)


CHUNKS = [chunk(number) for number in range(4)]


class World:
    def __init__(self) -> None:
        self.clock = ManualClock(0)
        self.cluster = MemoryCluster(self.clock, partitions=3)
        self.reported: list[AttemptCounts] = []
        self.waited: list[int] = []

    def run(self, chunks: list[Chunk] = CHUNKS, **hooks: object) -> PartOutcome:
        log = PartLog(MemoryTransactions(self.cluster), self.clock)
        landed = log.begin(PART, first_begun_ms=0, deadline=DEADLINE)
        chosen = PartHooks(lambda: DEADLINE, before_landing=self.waited.append, report=self.reported.append)
        return run_part(iter(chunks), landed, log, TIMES, replace(chosen, **hooks))

    def samples(self) -> list[tuple[int, int, float]]:
        """All samples in the topic as (partition, time, value), including duplicates."""
        found = list[tuple[int, int, float]]()
        for partition, records in self.cluster.read().items():
            columns = decode_batch([record.value for record in records], Limits())
            assert not columns.faults
            found += [(partition, int(t), float(v)) for t, v in zip(columns.time, columns.value, strict=True)]
        return sorted(found)


class Killed(Exception):  # noqa: N818 - not an error
    """The worker has crashed."""


def dies_before(landing: int) -> Callable[[int], None]:
    left = landing

    def hook(_samples: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed

    return hook


@pytest.fixture
def undisturbed() -> tuple[PartOutcome, list[tuple[int, int, float]]]:
    world = World()
    return world.run(), world.samples()


def test_every_sample_lands_once_and_is_counted(undisturbed: tuple[PartOutcome, list[tuple[int, int, float]]]) -> None:
    outcome, samples = undisturbed
    assert len(samples) == 20
    counts = outcome.counts
    assert (counts.records, counts.samples, counts.bad) == (24, 20, 4)
    assert counts.sent > 0
    assert (outcome.chunks, outcome.lines, outcome.series) == (4, 28, 20)
    assert sum(outcome.times.counts.values()) == 20
    assert outcome.times.counts[2 * HOUR] == 3
    assert [example.offset for example in outcome.bad.examples] == [50, 150, 250, 350]


@pytest.mark.parametrize("landing", range(5))
def test_a_worker_that_dies_between_chunks_leaves_the_same_topic_and_the_same_outcome(
    landing: int, undisturbed: tuple[PartOutcome, list[tuple[int, int, float]]]
) -> None:
    world = World()
    if landing < 4:
        with pytest.raises(Killed):
            world.run(before_landing=dies_before(landing))
    else:
        world.run()
    assert (world.run(), world.samples()) == undisturbed


def test_null_values_are_counted_once_though_their_chunks_are_read_again() -> None:
    def with_nulls(chunk: Chunk, nulls: int) -> Chunk:
        ((offset, block),) = chunk.blocks
        return replace(chunk, blocks=((offset, replace(block, nulls=nulls)),))

    world, chunks = World(), [with_nulls(chunk, number) for number, chunk in enumerate(CHUNKS, 1)]
    with pytest.raises(Killed):
        world.run(chunks, before_landing=dies_before(2))
    outcome = world.run(chunks)
    assert (outcome.nulls, outcome.counts.samples, outcome.counts.bad) == (10, 20, 4)


def test_a_commit_whose_answer_was_lost_is_found(
    undisturbed: tuple[PartOutcome, list[tuple[int, int, float]]],
) -> None:
    world = World()

    def loses_the_answer(_samples: int) -> None:
        world.cluster.lost_answers = 1

    for _ in range(4):
        with pytest.raises(Exception, match="answer"):
            world.run(before_landing=loses_the_answer)
    assert (world.run(), world.samples()) == undisturbed


def test_chunks_that_have_landed_are_reported_and_neither_waited_for_nor_sent(
    undisturbed: tuple[PartOutcome, list[tuple[int, int, float]]],
) -> None:
    world = World()
    world.run()
    world.waited.clear()
    world.reported.clear()
    assert world.run() == undisturbed[0]
    assert world.waited == []
    assert [progress.total.samples for progress in world.reported] == [5, 10, 15, 20]
    assert {progress.fresh for progress in world.reported} == {Counts()}


def test_what_had_landed_before_counts_for_the_part_and_not_for_the_attempt() -> None:
    world = World()
    with pytest.raises(Killed):
        world.run(before_landing=dies_before(2))
    world.reported.clear()
    world.run()
    assert [(progress.total.bad, progress.fresh.bad) for progress in world.reported] == [(1, 0), (2, 0), (3, 1), (4, 2)]


def other_value(chunk: Chunk) -> Chunk:
    ((offset, block),) = chunk.blocks
    return replace(
        chunk, blocks=((offset, replace(block, row=block.row[1:], times=block.times[1:], values=block.values[1:])),)
    )


@pytest.mark.parametrize(
    "changed",
    [
        [other_value(CHUNKS[0]), *CHUNKS[1:]],
        [replace(CHUNKS[0], records=7), *CHUNKS[1:]],
        [CHUNKS[0], replace(CHUNKS[1], position=201), *CHUNKS[2:]],
        CHUNKS[:1],
    ],
    ids=["a sample less", "a record more", "another end", "fewer chunks"],
)
def test_a_source_that_differs_from_what_has_landed_fails_by_name(changed: list[Chunk]) -> None:
    world = World()
    with pytest.raises(Killed):
        world.run(before_landing=dies_before(2))
    before = world.samples()
    with pytest.raises(SourceUnstable, match="has changed since"):
        world.run(changed)
    assert world.samples() == before


def test_partitions_that_are_added_during_an_import_are_used_from_the_next_chunk_on() -> None:
    world = World()

    def grows(_samples: int) -> None:
        world.cluster.grow(7)

    first = world.run(before_landing=grows)
    assert first.counts.samples == len(world.samples()) == 20
    assert len({partition for partition, _, _ in world.samples()}) > 3
    assert world.run().counts == first.counts


def test_samples_outside_of_the_times_are_bad_records() -> None:
    world = World()
    late = Chunk(((0, block_of(SERIES, [(0, -1, 1.0), (1, 5, 2.0)])),), 2, 2, BadRecords(), 100)
    outcome = world.run([late])
    assert (outcome.counts.samples, outcome.counts.bad, outcome.counts.records) == (1, 1, 2)
    assert outcome.bad.examples[0].reason == "older than the dataset's retention"


def test_a_part_without_records_is_done() -> None:
    world = World()
    empty = Chunk(((0, block_of(SERIES, [])),), 0, 1, BadRecords(), 10)
    assert world.run([]) == PartOutcome()
    assert world.run([empty]).counts == Counts()
    assert np.all([not records for records in world.cluster.read().values()])
