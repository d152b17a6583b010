"""A page: compressed runs of one group, in memory or on disk."""

from dataclasses import dataclass, field

import numpy as np

from strandline.arrays import I64s, U32s
from strandline.store.buffer.page_codec import Frame, Runs, encode
from strandline.store.buffer.spill import SpilledPage


class PageBytes:
    """The bytes of a page. They never change, but may move to disk while readers hold the page."""

    __slots__ = ("_at",)

    def __init__(self, data: bytes) -> None:
        self._at: bytes | SpilledPage = data

    @property
    def in_memory(self) -> int:
        """The bytes in memory."""
        at = self._at
        return len(at) if isinstance(at, bytes) else 0

    @property
    def on_disk(self) -> int:
        """The bytes on disk."""
        at = self._at
        return 0 if isinstance(at, bytes) else at.length

    def load(self) -> bytes:
        """Return the bytes from memory or disk. Raises `SpillDamaged`."""
        at = self._at
        return at if isinstance(at, bytes) else at.load()

    def move_to(self, page: SpilledPage) -> None:
        """Use the bytes on disk from now on. A concurrent load continues with those in memory."""
        self._at = page


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """Runs of one group. `level` is how often its samples were merged; `seal` is the seal of its oldest samples.

    The frames' positions stay in memory when the bytes move to disk. Pages are compared by identity.
    """

    seal: int
    level: int
    series: int
    samples: int
    first_time: int
    last_time: int
    frames: tuple[Frame, ...]
    stored: PageBytes
    _bounds: I64s = field(init=False, repr=False)

    def __post_init__(self) -> None:
        first = [frame.first_number for frame in self.frames]
        stop = [frame.last_number + 1 for frame in self.frames]
        object.__setattr__(self, "_bounds", np.array((first, stop), dtype=np.int64))

    def overlaps(self, first_time: int, last_time: int) -> bool:
        """Whether the page may have a sample in the range (inclusive)."""
        return self.first_time <= last_time and first_time <= self.last_time

    def frames_with(self, numbers: U32s) -> list[Frame]:
        """Return the frames that may have some of these numbers, which are in ascending order."""
        # One search for all bounds: a page has many frames, of which usually one is wanted.
        first, stop = numbers.searchsorted(self._bounds)
        return [self.frames[at] for at in (first < stop).nonzero()[0].tolist()]


def page_of(runs: Runs, *, seal: int, level: int) -> Page:
    """Compress runs, at least one, into a page in memory."""
    data, frames = encode(runs)
    return Page(
        seal=seal,
        level=level,
        series=len(runs),
        samples=len(runs.time),
        first_time=int(runs.time.min()),
        last_time=int(runs.time.max()),
        frames=frames,
        stored=PageBytes(data),
    )
