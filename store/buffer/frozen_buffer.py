"""The buffer of a closed bucket, for its flush."""

from strandline.store.buffer.collecting import collect_run
from strandline.store.buffer.contents import BufferStatus, Contents
from strandline.store.buffer.view import BufferView
from strandline.store.series_run import SeriesRun


class FrozenBuffer:
    """Samples to which none are added. One thread flushes: it stores the run of a group, and releases the group."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._replaced: dict[int, int] = {}

    @property
    def bucket(self) -> int:
        """The bucket of the samples."""
        return self._contents.bucket

    @property
    def groups_left(self) -> tuple[int, ...]:
        """The groups that are not released, in ascending order."""
        return self._contents.groups_left

    def run(self, group: int) -> SeriesRun:
        """Return all samples of a group; repeated calls give the same. Raises `SpillDamaged`."""
        known, pages = self._contents.pages_of(group)
        run, self._replaced[group] = collect_run(pages, None, known, known.of_group(group))
        return run

    def release(self, group: int) -> None:
        """Drop the pages of a stored group; with the last group, the dictionary too."""
        self._contents.release(group, self._replaced.get(group, 0))

    def snapshot(self) -> BufferView:
        """Return the present contents, for a query, without copying. Thread-safe."""
        return self._contents.view()

    def status(self) -> BufferStatus:
        """Counts for metrics."""
        return self._contents.status()
