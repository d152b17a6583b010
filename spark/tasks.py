"""The tasks of a replay on the executors: batches of records to blocks, and the blocks of units into the store.

Both return the same output for the same input, and write only under the job's attempt. So a task that is repeated after
a loss, or runs twice because of speculation, changes nothing.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from strandline.recovery.replay.blocks import Block, BlockKind
from strandline.recovery.replay.mapping import Mapper
from strandline.recovery.replay.record_batch import RecordBatch
from strandline.recovery.replay.reducing import StoreOutput, reduce_unit
from strandline.recovery.replay.replay_input import ReplayInput
from strandline.spark.executor_store import StoreOpener, cached_store
from strandline.wire.record_headers import TIMES_CHECKED, TIMES_HEADER

_IS_TIMES_CHECKED = f"header -> header.key = '{TIMES_HEADER}' AND header.value = X'{TIMES_CHECKED.hex()}'"
RECORD_COLUMNS = (
    "partition",
    "offset",
    "unix_millis(timestamp) AS time",
    # `headers` is null for a record without headers.
    f"coalesce(exists(headers, {_IS_TIMES_CHECKED}), false) AS times_checked",
    "value",
)
BLOCKS = "slot int, unit int, kind int, flush_group int, first_offset long, data binary"
OUTCOMES = "outcome binary"

_BLOCKS = pa.schema(
    [
        ("slot", pa.int32()),
        ("unit", pa.int32()),
        ("kind", pa.int32()),
        ("flush_group", pa.int32()),
        ("first_offset", pa.int64()),
        ("data", pa.binary()),
    ]
)
_OUTCOMES = pa.schema([("outcome", pa.binary())])
# The approximate size of an Arrow batch of blocks.
_BATCH_BYTES = 16 << 20

ArrowTask = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_task(wave_input: ReplayInput, slots: Sequence[int]) -> ArrowTask:
    """The task that reads a range of one partition. `slots` has, for each unit, the number by which it is shuffled."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mapper = Mapper(wave_input)
        for batch in batches:
            if batch.num_rows:
                # Each task of the source reads a single range, so a batch has records of one partition, in order.
                mapper.take(batch.column("partition")[0].as_py(), _records(batch))
                yield from _block_batches(mapper.take_blocks(), slots)
        yield from _block_batches(mapper.blocks(), slots)

    return read


def reduce_task(wave_input: ReplayInput, opener: StoreOpener) -> ArrowTask:
    """The task that writes units. It receives all blocks of its units."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        blocks: dict[int, list[Block]] = defaultdict(list)
        for batch in batches:
            for unit, kind, group, first_offset, data in zip(
                *(batch.column(name).to_pylist() for name in _BLOCKS.names[1:]), strict=True
            ):
                blocks[unit].append(Block(unit, BlockKind(kind), group, first_offset, data))
        for unit in sorted(blocks):
            output = StoreOutput(cached_store(opener), wave_input.job_of_unit(unit))
            outcome = reduce_unit(wave_input, unit, blocks.pop(unit), output)
            yield pa.RecordBatch.from_arrays([pa.array([outcome.to_bytes()], type=pa.binary())], schema=_OUTCOMES)

    return write


def _records(batch: pa.RecordBatch) -> RecordBatch:
    return RecordBatch(
        np.asarray(batch.column("offset")),
        np.asarray(batch.column("time")),
        np.asarray(batch.column("times_checked")),
        # A record without a value can't be decoded.
        [value or b"" for value in batch.column("value").to_pylist()],
    )


def _block_batches(blocks: Sequence[Block], slots: Sequence[int]) -> Iterator[pa.RecordBatch]:
    some: list[Block] = []
    for block in blocks:
        some.append(block)
        if sum(len(one.data) for one in some) >= _BATCH_BYTES:
            yield _block_batch(some, slots)
            some = []
    if some:
        yield _block_batch(some, slots)


def _block_batch(blocks: Sequence[Block], slots: Sequence[int]) -> pa.RecordBatch:
    columns = zip(
        *((slots[one.unit], one.unit, int(one.kind), one.group, one.first_offset, one.data) for one in blocks),
        strict=True,
    )
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, _BLOCKS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_BLOCKS)
