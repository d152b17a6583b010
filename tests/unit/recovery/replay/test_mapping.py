"""Records to blocks."""

import pytest

from strandline.recovery.replay import mapping
from strandline.recovery.replay.blocks import Block, BlockKind
from strandline.recovery.replay.mapping import Mapper
from strandline.recovery.replay.replay_input import ReplayInput, SeriesBound
from strandline.store.jobs import Job
from support import replays
from support.replays import LogRecord, batch_of, key_of, labels, leased_job

pytestmark = pytest.mark.unit

A, B = labels("up", "a"), labels("up", "b")


def record(offset: int, *names: str) -> LogRecord:
    return LogRecord(offset, 0, tuple((labels("up", name), ((offset, 1.0),)) for name in names))


def mapped(
    jobs: list[Job], *records: LogRecord, shard: int = 0, max_samples: int = 1000, **bounds: object
) -> list[Block]:
    given = ReplayInput.of(jobs, replays.settings(), now=0, bounds=bounds.get("bounds", {}))
    mapper = Mapper(given, max_samples=max_samples)
    for record in records:
        mapper.take(shard, batch_of([record]))
    return mapper.blocks()


def kinds(blocks: list[Block]) -> list[tuple[int, BlockKind, int]]:
    return sorted((block.unit, block.kind, block.first_offset) for block in blocks)


def test_records_of_no_job_give_no_blocks() -> None:
    jobs = [leased_job(5, 8)]
    assert mapped(jobs, record(4, "a"), record(8, "a")) == []
    assert mapped(jobs, record(6, "a"), shard=1) == []


def test_a_batch_is_divided_where_a_bucket_ends() -> None:
    jobs = [leased_job(0, 5, bucket=1, wants_keys=False), leased_job(5, 9, bucket=2, wants_keys=False)]
    given = ReplayInput.of(jobs, replays.settings(), now=0, bounds={})
    mapper = Mapper(given)
    mapper.take(0, batch_of([record(offset, "a") for offset in (3, 4, 5)]))
    assert kinds(mapper.blocks()) == [
        (0, BlockKind.SAMPLES, 3),
        (0, BlockKind.COUNTS, 3),
        (1, BlockKind.SAMPLES, 5),
        (1, BlockKind.COUNTS, 5),
    ]


def test_a_task_with_too_many_samples_gives_blocks_before_its_end() -> None:
    job = leased_job(0, 9, wants_keys=False)
    blocks = mapped([job], *(record(offset, "a", "b") for offset in range(5)), max_samples=4)
    assert sorted(block.first_offset for block in blocks if block.kind is BlockKind.SAMPLES) == [0, 2, 4]


def test_a_task_with_too_many_bytes_of_faults_gives_blocks_before_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "MAX_FAULT_BYTES", 2 * len(replays.POISON))
    given = ReplayInput.of([leased_job(0, 9)], replays.settings(), now=0, bounds={})
    mapper, made = Mapper(given), []
    for offset in range(5):
        mapper.take(0, batch_of([LogRecord(offset, 0, None)]))
        made.append([block.first_offset for block in mapper.take_blocks() if block.kind is BlockKind.FAULTS])
    assert made == [[], [], [0], [], [2]]
    last = mapper.blocks()
    assert [block.first_offset for block in last if block.kind is BlockKind.FAULTS] == [4]
    assert mapper.blocks() == []


def test_faults_and_counts_go_to_the_first_unit_of_their_job() -> None:
    first, second = leased_job(0, 5, bucket=1), leased_job(5, 9, bucket=2)
    bounds = {job: [SeriesBound(0, 0, 0, 0), SeriesBound(3, 2**64 - 1, 0, 0)] for job in (first, second)}
    blocks = mapped([first, second], LogRecord(6, 3, None), bounds=bounds)
    assert kinds(blocks) == [(3, BlockKind.FAULTS, 6), (3, BlockKind.COUNTS, 6)]


def test_keys_of_groups_that_are_already_stored_are_summarised_too() -> None:
    blocks = mapped([leased_job(0, 9, groups=frozenset())], record(0, "a"))
    assert [block.kind for block in blocks] == [BlockKind.KEYS, BlockKind.COUNTS]


def test_a_series_without_samples_gives_no_keys_and_samples() -> None:
    empty = LogRecord(0, 0, ((A, ()),))
    assert [block.kind for block in mapped([leased_job(0, 9)], empty)] == [BlockKind.COUNTS]


def test_series_on_both_sides_of_a_bound_go_to_different_units() -> None:
    job = leased_job(0, 9)
    low, high = sorted([key_of(A), key_of(B)])
    bounds = {job: [SeriesBound(high[0] % 4, *high)]}
    blocks = mapped([job], record(0, "a", "b"), bounds=bounds)
    assert low[0] == high[0]
    assert [block.unit for block in blocks if block.kind is BlockKind.SAMPLES] == [0, 1]
    assert [block.unit for block in blocks if block.kind is BlockKind.KEYS] == [0, 1]


def test_a_task_without_records_gives_no_blocks() -> None:
    assert mapped([leased_job(0, 9)]) == []
