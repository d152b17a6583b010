"""The buffer of a bucket that was cut, for its flush."""

from strandline.store.buffer.collecting import collect_run
from strandline.store.buffer.contents import BufferStatus, Contents
from strandline.store.buffer.view import BufferView
from strandline.store.series_run import SeriesRun


class FrozenBuffer:
    """Samples to which none is added any more. One thread flushes: it stores the run of a group, and releases it."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._replaced: dict[int, int] = {}

    @property
    def bucket(self) -> int:
        """The bucket that the samples belong to."""
        return self._contents.bucket

    @property
    def groups_left(self) -> tuple[int, ...]:
        """The groups that are not released, rising."""
        return self._contents.groups_left

    def run(self, group: int) -> SeriesRun:
        """All samples of a group; the same as often as it is asked. Raises `SpillDamaged`."""
        known, pages = self._contents.pages_of(group)
        run, self._replaced[group] = collect_run(pages, None, known, known.of_group(group))
        return run

    def release(self, group: int) -> None:
        """The group is stored: let go of its pages. With the last group the dictionary goes as well."""
        self._contents.release(group, self._replaced.get(group, 0))

    def snapshot(self) -> BufferView:
        """What there is now, for a query. Any thread may ask, and it costs no copy."""
        return self._contents.view()

    def status(self) -> BufferStatus:
        """Numbers for metrics."""
        return self._contents.status()
