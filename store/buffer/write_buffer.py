"""The buffer of the open bucket."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from strandline.arrays import F64s, I64s, U32s, U64s
from strandline.store.buffer.contents import BufferStatus, Contents
from strandline.store.buffer.frozen_buffer import FrozenBuffer
from strandline.store.buffer.kernels.rows import REFUSED as _REFUSED
from strandline.store.buffer.memory import MemoryBudget
from strandline.store.buffer.open_rows import IncomingRows
from strandline.store.buffer.page_building import merge, next_merge, seal
from strandline.store.buffer.view import BufferView
from strandline.store.series_run import SeriesKeys

REFUSED = int(_REFUSED)
SEAL_ROWS = 1 << 20


class WriteBuffer:
    """Samples of one bucket. One thread writes; the package's docstring lists what other threads may call."""

    def __init__(
        self,
        bucket: int,
        groups: int,
        memory: MemoryBudget,
        *,
        seal_rows: int = SEAL_ROWS,
        sealing: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """An empty buffer. Rows are sealed whenever there are `seal_rows` of them, inside the context of `sealing`."""
        if seal_rows < 1:
            raise ValueError(f"seal_rows is {seal_rows}, but must be positive")
        self._contents = Contents(bucket, groups, memory, seal_rows)
        self._memory = memory
        self._seals = 0
        self._sealing = sealing

    @property
    def bucket(self) -> int:
        """The bucket of the samples."""
        return self._contents.bucket

    @property
    def series(self) -> int:
        """The number of defined series, which is the number that the next one gets."""
        return self._contents.series

    def define(self, metric: U64s, key_high: U64s, key_low: U64s) -> None:
        """Give keys the next numbers, in order. The caller ensures that no key gets two."""
        self._check_open()
        if not len(metric) == len(key_high) == len(key_low):
            raise ValueError(f"{len(metric)} metrics, {len(key_high)} and {len(key_low)} halves of keys")
        self._contents.define(SeriesKeys(metric, key_high, key_low))

    def append(self, series: U32s, first_sample: I64s, time: I64s, value: F64s) -> None:
        """Add a record's samples; seal and spill if necessary.

        Row i is `series[i]` with the samples `[first_sample[i], first_sample[i + 1])`; rows whose series is `REFUSED`
        are skipped. Of two samples of one series and time, the later one is kept. The arguments are copied. Raises
        `SpillFull`, `DiskFull` or `SpillFailed` if there is no space in memory or on disk; the samples are in the
        buffer nevertheless.
        """
        self._check_open()
        contents, sealed = self._contents, False
        incoming = IncomingRows.of(series, first_sample, time, value, contents.series)
        row, sample = contents.rows.fill(incoming, 0, 0)
        while contents.rows.is_full:
            self._seal()
            sealed = True
            row, sample = contents.rows.fill(incoming, row, sample)
        if sealed:
            self._memory.spill_excess()

    def maintain(self) -> bool:
        """Merge some pages of one group, if enough of them are worth it. Return whether there was a merge.

        For a separate thread, which repeats the call until it returns False. The writer never waits for it. Without
        merges, pages take more memory.
        """
        contents = self._contents
        if contents.is_frozen:
            return False
        known, pages = contents.pages()
        for group, some in pages.items():
            old = next_merge(some)
            if old:
                new, replaced = merge(old, known, group)
                contents.replace(group, old, new, replaced)
                return True
        return False

    def freeze(self) -> FrozenBuffer:
        """End the bucket: seal the remaining rows now, which takes no longer than any other seal."""
        self._check_open()
        self._seal()
        self._contents.freeze()
        return FrozenBuffer(self._contents)

    def snapshot(self) -> BufferView:
        """Return the present contents, for a query, without copying. Thread-safe."""
        return self._contents.view()

    def status(self) -> BufferStatus:
        """Counts for metrics."""
        return self._contents.status()

    def _seal(self) -> None:
        contents = self._contents
        with self._sealing():
            pages, replaced = seal(contents.rows.rows(), contents.known(), self._seals)
        contents.add_sealed(pages, replaced)
        self._seals += 1

    def _check_open(self) -> None:
        if self._contents.is_frozen:
            raise ValueError(f"the buffer of bucket {self.bucket} is frozen")
