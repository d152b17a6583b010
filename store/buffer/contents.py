"""The contents of a buffer, protected by one lock, shared by writer, maintenance, flusher and readers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from threading import Lock

from strandline.store.buffer.dictionary import Dictionary, KnownSeries
from strandline.store.buffer.memory import MemoryBudget
from strandline.store.buffer.open_rows import OpenRows
from strandline.store.buffer.page import Page
from strandline.store.buffer.spill import SpillFolder
from strandline.store.buffer.view import BufferView, SealedTimes
from strandline.store.series_run import SeriesKeys
from strandline.time_range import LATEST

# Identifies buffers within the process: two may have the same bucket.
_NUMBERS = count()


@dataclass(frozen=True, slots=True)
class BufferStatus:
    """A snapshot of counts, for metrics. `samples` counts those of pages and rows, some of which later ones may
    replace; `replaced` counts those that were dropped because a later sample has the same series and time.
    """

    bucket: int
    series: int
    rows: int
    samples: int
    replaced: int
    pages: int
    memory_bytes: int
    spilled_bytes: int


class Contents:
    """Dictionary, rows and pages of one bucket. Each method leaves them consistent, with their memory accounted for.

    The lock is held while references are swapped and while the dictionary adds series, never while a page is made or
    read.
    """

    def __init__(self, bucket: int, groups: int, memory: MemoryBudget, seal_rows: int) -> None:
        self.bucket = bucket
        self.rows = OpenRows(seal_rows)
        self._memory = memory
        self._lock = Lock()
        self._dictionary = Dictionary(groups)
        # The pages of each group that is not released, in order of arrival.
        self._pages: dict[int, tuple[Page, ...]] = dict.fromkeys(range(groups), ())
        # The minimum sample time of each seal: from it, a query finds what arrived since an earlier one.
        self._sealed_times: list[int] = []
        self._number = next(_NUMBERS)
        self._is_frozen = False
        self._replaced = 0
        memory.add(self.rows.nbytes)
        memory.register(self)

    # Reads.

    @property
    def is_frozen(self) -> bool:
        """Whether appending has ended."""
        return self._is_frozen

    @property
    def series(self) -> int:
        """The number of defined series."""
        return len(self._dictionary)

    @property
    def groups_left(self) -> tuple[int, ...]:
        """The groups that are not released, in ascending order."""
        with self._lock:
            return tuple(self._pages)

    def known(self) -> KnownSeries:
        """The series defined so far."""
        with self._lock:
            return self._dictionary.known()

    def pages(self) -> tuple[KnownSeries, dict[int, tuple[Page, ...]]]:
        """The pages of each group that is not released, in order of arrival, and the series that they refer to."""
        with self._lock:
            return self._dictionary.known(), dict(self._pages)

    def pages_of(self, group: int) -> tuple[KnownSeries, tuple[Page, ...]]:
        """The same for one group."""
        with self._lock:
            return self._dictionary.known(), self._pages[self._not_released(group)]

    def view(self) -> BufferView:
        """Everything in the buffer now, as an immutable view."""
        with self._lock:
            sealed = SealedTimes(self._number, self._sealed_times, len(self._sealed_times))
            return BufferView(self._dictionary.known(), dict(self._pages), self.rows.snapshot(), sealed)

    def status(self) -> BufferStatus:
        """Counts for metrics."""
        with self._lock:
            pages = [page for some in self._pages.values() for page in some]
            return BufferStatus(
                bucket=self.bucket,
                series=len(self._dictionary),
                rows=len(self.rows),
                samples=len(self.rows) + sum(page.samples for page in pages),
                replaced=self._replaced,
                pages=len(pages),
                memory_bytes=self._fixed_bytes() + _in_memory(pages),
                spilled_bytes=sum(page.stored.on_disk for page in pages),
            )

    # Called by the writer.

    def define(self, keys: SeriesKeys) -> None:
        """Give keys the next numbers."""
        with self._lock:
            before = self._dictionary.nbytes
            self._dictionary.define(keys)
            self._memory.add(self._dictionary.nbytes - before)

    def add_sealed(self, pages: Mapping[int, Page], replaced: int) -> None:
        """Add the pages that were made of the rows, and remove the rows."""
        with self._lock:
            for group, page in pages.items():
                self._pages[group] += (page,)
            self._sealed_times.append(min((page.first_time for page in pages.values()), default=LATEST))
            self._replaced += replaced
            self.rows = self.rows.reset()
            self._memory.add(_in_memory(pages.values()))

    def freeze(self) -> None:
        """End appending; all rows must be sealed."""
        with self._lock:
            self._memory.add(-self.rows.nbytes)
            self.rows = OpenRows(0)
            self._is_frozen = True

    # Called by maintenance.

    def replace(self, group: int, old: tuple[Page, ...], new: Page, replaced: int) -> bool:
        """Replace pages by the page into which they were merged. Return False if they are no longer there."""
        with self._lock:
            pages = self._pages.get(group, ())
            first = next((at for at, page in enumerate(pages) if page is old[0]), len(pages))
            if pages[first : first + len(old)] != old:
                return False
            self._pages[group] = (*pages[:first], new, *pages[first + len(old) :])
            self._replaced += replaced
            self._memory.add(new.stored.in_memory - _in_memory(old))
            return True

    # Called by the flusher.

    def release(self, group: int, replaced: int) -> None:
        """Drop a group's pages, and with the last group everything else."""
        with self._lock:
            pages = self._pages.pop(self._not_released(group))
            self._replaced += replaced
            self._memory.add(-_in_memory(pages))
            if not self._pages:
                self._memory.add(-self._fixed_bytes())
                self._memory.unregister(self)
                self._dictionary = Dictionary(1)

    # Called by the memory budget.

    def spill_oldest(self, folder: SpillFolder) -> bool:
        """Move the oldest page that is in memory to disk. Return whether there was one."""
        with self._lock:
            in_memory = (
                (page.seal, group, page)
                for group, pages in self._pages.items()
                for page in pages
                if page.stored.in_memory
            )
            _, group, page = min(in_memory, key=lambda found: found[:2], default=(0, 0, None))
        if page is None:
            return False
        spilled = folder.write(page.stored.load(), self.bucket, group)
        with self._lock:
            # If the page was merged or released in the meantime, the file is not needed, and is deleted with its last
            # reference.
            if page in self._pages.get(group, ()):
                self._memory.add(-page.stored.in_memory)
                page.stored.move_to(spilled)
        return True

    def _not_released(self, group: int) -> int:
        if group not in self._pages:
            raise ValueError(f"bucket {self.bucket} has no group {group}, or it was released")
        return group

    def _fixed_bytes(self) -> int:
        return self._dictionary.nbytes + self.rows.nbytes


def _in_memory(pages: Iterable[Page]) -> int:
    return sum(page.stored.in_memory for page in pages)
