"""Random histories of write buffers that share a budget, beside dictionaries: seals, merges, spills, cuts and flushes
at any point, and snapshots that are read long after they were taken.
"""

import gc
import random
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from strandline.store.buffer import page_building, page_codec
from strandline.store.buffer.frozen_buffer import FrozenBuffer
from strandline.store.buffer.view import BufferView
from strandline.time_range import TimeRange
from support.buffer_model import FedBuffer, Model, Record, budget, key_columns, samples_of, within

pytestmark = pytest.mark.simulation

WORDS = (0, 1, 2, 3, 2**64 - 1)
KEYS = st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS), st.sampled_from([0, 1]))
EDGES = (-(2**63), 2**63 - 1)
TIMES = st.one_of(st.integers(0, 30), st.sampled_from(EDGES))
CHANCE = random.Random(1)  # noqa: S311
BITS = (0, 1 << 63, 0x7FF0000000000002, 0x4045000000000000, *(CHANCE.getrandbits(64) for _ in range(60)))
ROW_BYTES = 10


def row_of(drawn: bytes) -> tuple[tuple[int, int, int] | None, list[tuple[int, int]]]:
    """A series, or none where there is no valid one, and up to four samples."""
    which = drawn[0]
    key = None if which >= 200 else (WORDS[which % 5], WORDS[which // 5 % 5], which // 25 % 2)
    samples = [
        (time % 40 if time % 40 <= 30 else EDGES[time % 2], BITS[bits % 64])
        for time, bits in zip(drawn[2::2], drawn[3::2], strict=True)
    ]
    return key, samples[: drawn[1] % 5]


def record_of(drawn: bytes) -> Record:
    rows = (drawn[start : start + ROW_BYTES] for start in range(0, len(drawn), ROW_BYTES))
    return [row_of(row.ljust(ROW_BYTES, b"\0")) for row in rows]


# Drawn as bytes: to draw each number of each sample separately takes Hypothesis several times as long as the buffers.
RECORDS = st.binary(min_size=1, max_size=12 * ROW_BYTES).map(record_of)


class BuffersBesideModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="write-buffer-"))
        self.memory = budget(self.folder)
        self.frozen: list[tuple[FedBuffer, FrozenBuffer]] = []
        self.views: list[tuple[BufferView, Model]] = []
        self.patch = pytest.MonkeyPatch()

    @initialize(groups=st.integers(1, 4), seal_rows=st.integers(1, 24), frame=st.integers(1, 12), fan=st.integers(2, 4))
    def begin(self, groups: int, seal_rows: int, frame: int, fan: int) -> None:
        self.patch.setattr(page_codec, "SAMPLES_PER_FRAME", frame)
        self.patch.setattr(page_building, "PAGES_PER_MERGE", fan)
        self.shape = {"groups": groups, "seal_rows": seal_rows}
        self.open = FedBuffer(self.memory, bucket=0, **self.shape)

    def teardown(self) -> None:
        self.patch.undo()
        self.views.clear()
        shutil.rmtree(self.folder)

    @rule(record=RECORDS)
    def a_record_comes(self, record: Record) -> None:
        self.open.feed(record)

    @rule(records=st.lists(RECORDS, min_size=5, max_size=15))
    def many_records_come(self, records: list[Record]) -> None:
        for record in records:
            self.open.feed(record)

    @rule()
    def maintenance_takes_a_step(self) -> None:
        self.open.buffer.maintain()

    @rule()
    def maintenance_catches_up(self) -> None:
        before = self.open.buffer.status()
        while self.open.buffer.maintain():
            after = self.open.buffer.status()
            assert after.pages < before.pages
            before = after

    @rule(percent=st.integers(0, 110))
    def the_memory_limit_changes(self, percent: int) -> None:
        self.memory.limit = self.memory.used * percent // 100
        self.memory.spill_excess()

    @rule()
    def the_bucket_is_cut(self) -> None:
        self.frozen.append((self.open, self.open.buffer.freeze()))
        self.open = FedBuffer(self.memory, bucket=self.open.buffer.bucket + 1, **self.shape)

    @precondition(lambda self: self.frozen)
    @rule(data=st.data(), again=st.booleans())
    def a_group_is_flushed(self, data: st.DataObject, again: bool) -> None:
        fed, frozen = data.draw(st.sampled_from(self.frozen))
        group = data.draw(st.sampled_from(frozen.groups_left))
        for _ in range(1 + again):
            assert samples_of(frozen.run(group)) == fed.of_group(group)
        frozen.release(group)
        for key in fed.of_group(group):
            del fed.model[key]
        if not frozen.groups_left:
            assert frozen.status().memory_bytes == frozen.status().spilled_bytes == 0
            self.frozen.remove((fed, frozen))

    @rule(data=st.data())
    def a_query_takes_a_snapshot(self, data: st.DataObject) -> None:
        fed, buffer = data.draw(st.sampled_from([(self.open, self.open.buffer), *self.frozen]))
        self.views.append((buffer.snapshot(), fed.copied()))

    @precondition(lambda self: self.views)
    @rule(data=st.data(), keys=st.lists(KEYS, max_size=5), first=TIMES, last=TIMES)
    def a_query_reads_its_snapshot(self, data: st.DataObject, keys: list, first: int, last: int) -> None:
        view, model = self.views.pop(data.draw(st.integers(0, len(self.views) - 1)))
        assert samples_of(view.read()) == model
        some = {key: samples for key, samples in model.items() if key in keys}
        assert samples_of(view.read(key_columns(keys), TimeRange(first, last))) == within(some, first, last)

    @invariant()
    def all_memory_is_counted(self) -> None:
        every = [self.open.buffer.status(), *(frozen.status() for _, frozen in self.frozen)]
        assert self.memory.used == sum(status.memory_bytes for status in every)
        spilled = sum(status.spilled_bytes for status in every)
        if not self.views and self.memory.spill.used != spilled:
            gc.collect()  # The compilation of a kernel leaves frames behind, and they keep references to their values.
            assert self.memory.spill.used == spilled
        assert self.memory.spill.used >= spilled
        assert self.memory.spill.used == sum(path.stat().st_size for path in (self.folder / "spill").iterdir())

    @invariant()
    def every_sample_is_counted(self) -> None:
        status = self.open.buffer.status()
        assert status.samples + status.replaced == self.open.fed


TestBuffersBesideModel = BuffersBesideModel.TestCase
TestBuffersBesideModel.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
