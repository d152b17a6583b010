"""What a buffer holds, behind one small lock: the part that writer, maintenance, flusher and readers share."""

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

# Tells buffers of this process apart: two may be of one bucket.
_NUMBERS = count()


@dataclass(frozen=True, slots=True)
class BufferStatus:
    """As of one moment. `samples` counts those of pages and rows, of which some may yet turn out to be replaced;
    `replaced` those that were dropped because a later one had their series and time.
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
    """Dictionary, rows and pages of one bucket. Each method leaves them consistent, and their memory counted.

    The lock is held while references are swapped and while the dictionary takes new series, never while a page is made
    or read.
    """

    def __init__(self, bucket: int, groups: int, memory: MemoryBudget, seal_rows: int) -> None:
        self.bucket = bucket
        self.rows = OpenRows(seal_rows)
        self._memory = memory
        self._lock = Lock()
        self._dictionary = Dictionary(groups)
        # The pages of each group that is not released, in order of arrival.
        self._pages: dict[int, tuple[Page, ...]] = dict.fromkeys(range(groups), ())
        # The least sample time of each seal: by it a query tells what came after an earlier one.
        self._sealed_times: list[int] = []
        self._number = next(_NUMBERS)
        self._is_frozen = False
        self._replaced = 0
        memory.add(self.rows.nbytes)
        memory.register(self)

    # What there is.

    @property
    def is_frozen(self) -> bool:
        """Whether nothing is appended any more."""
        return self._is_frozen

    @property
    def series(self) -> int:
        """How many series are defined."""
        return len(self._dictionary)

    @property
    def groups_left(self) -> tuple[int, ...]:
        """The groups that are not released, rising."""
        with self._lock:
            return tuple(self._pages)

    def known(self) -> KnownSeries:
        """The series as of now."""
        with self._lock:
            return self._dictionary.known()

    def pages(self) -> tuple[KnownSeries, dict[int, tuple[Page, ...]]]:
        """The pages of each group that is not released, in order of arrival, and the series that they name."""
        with self._lock:
            return self._dictionary.known(), dict(self._pages)

    def pages_of(self, group: int) -> tuple[KnownSeries, tuple[Page, ...]]:
        """The same for one group."""
        with self._lock:
            return self._dictionary.known(), self._pages[self._not_released(group)]

    def view(self) -> BufferView:
        """All that there is now, to keep."""
        with self._lock:
            sealed = SealedTimes(self._number, self._sealed_times, len(self._sealed_times))
            return BufferView(self._dictionary.known(), dict(self._pages), self.rows.snapshot(), sealed)

    def status(self) -> BufferStatus:
        """Numbers for metrics."""
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

    # What the writer does.

    def define(self, keys: SeriesKeys) -> None:
        """Give keys the next numbers."""
        with self._lock:
            before = self._dictionary.nbytes
            self._dictionary.define(keys)
            self._memory.add(self._dictionary.nbytes - before)

    def add_sealed(self, pages: Mapping[int, Page], replaced: int) -> None:
        """Put the pages that were made of the rows in their place."""
        with self._lock:
            for group, page in pages.items():
                self._pages[group] += (page,)
            self._sealed_times.append(min((page.first_time for page in pages.values()), default=LATEST))
            self._replaced += replaced
            self.rows = self.rows.reset()
            self._memory.add(_in_memory(pages.values()))

    def freeze(self) -> None:
        """Nothing is appended from now on; all rows are sealed."""
        with self._lock:
            self._memory.add(-self.rows.nbytes)
            self.rows = OpenRows(0)
            self._is_frozen = True

    # What maintenance does.

    def replace(self, group: int, old: tuple[Page, ...], new: Page, replaced: int) -> bool:
        """Put a merged page in the place of those that it was made of; whether they were still there."""
        with self._lock:
            pages = self._pages.get(group, ())
            first = next((at for at, page in enumerate(pages) if page is old[0]), len(pages))
            if pages[first : first + len(old)] != old:
                return False
            self._pages[group] = (*pages[:first], new, *pages[first + len(old) :])
            self._replaced += replaced
            self._memory.add(new.stored.in_memory - _in_memory(old))
            return True

    # What the flusher does.

    def release(self, group: int, replaced: int) -> None:
        """Let go of a group's pages, and with the last group of everything."""
        with self._lock:
            pages = self._pages.pop(self._not_released(group))
            self._replaced += replaced
            self._memory.add(-_in_memory(pages))
            if not self._pages:
                self._memory.add(-self._fixed_bytes())
                self._memory.unregister(self)
                self._dictionary = Dictionary(1)

    # What the budget asks for.

    def spill_oldest(self, folder: SpillFolder) -> bool:
        """Move the oldest page that is in memory to disk; whether there was one."""
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
            # Merged or released meanwhile: then nobody needs the file, and it goes.
            if page in self._pages.get(group, ()):
                self._memory.add(-page.stored.in_memory)
                page.stored.move_to(spilled)
        return True

    def _not_released(self, group: int) -> int:
        if group not in self._pages:
            raise ValueError(f"bucket {self.bucket} has no group {group}, or has released it")
        return group

    def _fixed_bytes(self) -> int:
        return self._dictionary.nbytes + self.rows.nbytes


def _in_memory(pages: Iterable[Page]) -> int:
    return sum(page.stored.in_memory for page in pages)
