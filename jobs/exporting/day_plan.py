"""The plan of a day, as files in the target: the pinned rows as JSON, and the series of each part as an Arrow batch.

They are too large for rows of the store, and every worker can read the target. They are deleted when the job is done.
"""

from dataclasses import astuple, dataclass

import numpy as np
import orjson
import pyarrow as pa

from strandline.arrays import F64s
from strandline.errors import Fatal
from strandline.jobs.exporting.day_manifest import ExportDay
from strandline.jobs.exporting.target import Target
from strandline.jobs.reading.pins import PinnedRow
from strandline.jobs.reading.series_set import LabelBytes, SeriesSet
from strandline.jobs.reading.series_task import SeriesTask
from strandline.time_range import TimeRange

_SERIES = pa.schema(
    [
        ("labels", pa.large_binary()),
        ("metric", pa.uint64()),
        ("key_high", pa.uint64()),
        ("key_low", pa.uint64()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("shards", pa.uint32()),
        ("expected", pa.float64()),
    ]
)


class PlanMissing(Fatal):
    """The files of a plan are missing."""


@dataclass(frozen=True, slots=True)
class DayPlan:
    """How a day is made. `groups` is the dataset's number of groups. `former` is the fingerprint of the manifest at the
    time of planning, and `revision` that of the manifest to be written.
    """

    day: ExportDay
    groups: int
    ready: bool
    former: str
    revision: int
    rows: tuple[PinnedRow, ...]
    shard_sets: tuple[tuple[int, ...], ...]

    def to_json(self) -> bytes:
        """The content of the file."""
        value = {
            "of": astuple(self.day),
            "groups": self.groups,
            "ready": self.ready,
            "former": self.former,
            "revision": self.revision,
            "rows": [astuple(row) for row in self.rows],
            "shard_sets": self.shard_sets,
        }
        return orjson.dumps(value)

    @classmethod
    def from_json(cls, content: bytes) -> "DayPlan":
        """Parse the result of `to_json`."""
        value = orjson.loads(content)
        return cls(
            ExportDay(*value["of"]),
            value["groups"],
            value["ready"],
            value["former"],
            value["revision"],
            tuple(PinnedRow(*row) for row in value["rows"]),
            tuple(tuple(shards) for shards in value["shard_sets"]),
        )


def read_day(target: Target, folder: str, day: str) -> DayPlan:
    """The plan of a day. Raises `PlanMissing`."""
    return DayPlan.from_json(_content(target, f"{folder}/{day}.json"))


def write_day(target: Target, folder: str, plan: DayPlan, ranges: list[tuple[SeriesSet, F64s]]) -> None:
    """Write the plan of a day, with the series of each of its parts."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, _SERIES, options=options) as writer:
        for series, expected in ranges:
            writer.write_batch(_to_batch(series, expected))
    target.write(f"{folder}/{plan.day.date}.arrow", sink.getvalue().to_pybytes())
    target.write(f"{folder}/{plan.day.date}.json", plan.to_json())


def read_task(target: Target, folder: str, day: str, range_: int) -> SeriesTask:
    """The task of a part of a day. Raises `PlanMissing`."""
    plan = read_day(target, folder, day)
    content = _content(target, f"{folder}/{day}.arrow")
    with pa.ipc.open_file(pa.py_buffer(content)) as file:
        batch = file.get_batch(range_)
    series, expected = _from_batch(batch, plan.shard_sets)
    times = TimeRange(plan.day.start, plan.day.end - 1)
    return SeriesTask(plan.day.dataset, plan.groups, series, expected, times, plan.rows)


def _content(target: Target, path: str) -> bytes:
    content = target.read(path)
    if content is None:
        raise PlanMissing(
            f"{target.uri_of(path)} is missing, which is part of the plan of this export",
            remedy="Cancel the job and export again; do not change the folder _plans while exports run",
        )
    return content


def _to_batch(series: SeriesSet, expected: F64s) -> pa.RecordBatch:
    labels = pa.Array.from_buffers(
        pa.large_binary(),
        len(series),
        [None, pa.py_buffer(series.labels.offsets), pa.py_buffer(series.labels.data)],
    )
    columns = (series.metric, series.key_high, series.key_low, series.start, series.end, series.shards, expected)
    return pa.RecordBatch.from_arrays([labels, *map(pa.array, columns)], schema=_SERIES)


def _from_batch(batch: pa.RecordBatch, shard_sets: tuple[tuple[int, ...], ...]) -> tuple[SeriesSet, F64s]:
    labels = batch.column("labels")
    _, offsets, data = labels.buffers()
    found = LabelBytes(
        np.frombuffer(offsets, dtype=np.int64)[: len(labels) + 1],
        np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, dtype=np.uint8),
    )
    metric, high, low, start, end, shards = (
        np.asarray(batch.column(name)) for name in ("metric", "key_high", "key_low", "start", "end", "shards")
    )
    return SeriesSet(found, metric, high, low, start, end, shards, shard_sets), np.asarray(batch.column("expected"))
