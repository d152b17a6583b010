"""Records for replays, a store in a dictionary, and a model of its expected content afterwards."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import numpy as np

from strandline.index.key_summary import PartKeyBytes
from strandline.index.sample_limits import SampleLimits
from strandline.recovery.replay.record_batch import RecordBatch
from strandline.recovery.replay.replay_input import ReplaySettings
from strandline.store.jobs import Job, JobResultOf, JobState, ResultRow
from strandline.store.rows import Lifetime, Segment, SegmentsOf, ShardId
from strandline.store.segment_codec import decode_segment
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress
from support.series_runs import Key, bits_of, model_of

DATASET = "metrics"
HOUR = 3_600_000
POISON = b"\xffno request"

Labels = tuple[tuple[str, str], ...]
SeriesSamples = tuple[Labels, tuple[tuple[int, float], ...]]


@dataclass(frozen=True)
class LogRecord:
    """A record in a partition. Without series, it can't be decoded."""

    offset: int
    time: int
    series: tuple[SeriesSamples, ...] | None
    times_checked: bool = False

    @property
    def value(self) -> bytes:
        if self.series is None:
            return POISON
        return compress(encode_request(Series(labels, samples) for labels, samples in self.series))


def labels(metric: str, name: str) -> Labels:
    return (("__name__", metric), ("name", name))


@cache
def key_of(of: Labels) -> Key:
    """The hashes of a series, by the kernels of `wire`."""
    columns = decode_batch([compress(encode_request([Series(of, [(0, 0.0)])]))], Limits())
    return int(columns.metric[0]), int(columns.key_high[0]), int(columns.key_low[0])


def settings(*, groups: int = 4, behind: int | None = None, ahead: int | None = None) -> ReplaySettings:
    return ReplaySettings(
        groups=groups,
        flush_interval=HOUR,
        record_limits=Limits(),
        sample_limits=SampleLimits(behind, ahead),
        time_to_live=5 * HOUR,
    )


def leased_job(
    start: int,
    end: int,
    *,
    bucket: int = 1000,
    shard: int = 0,
    groups: frozenset[int] = frozenset(range(4)),
    wants_keys: bool = True,
    life: int = 50 * HOUR,
) -> Job:
    """A leased job."""
    return Job(
        shard=ShardId(DATASET, shard),
        bucket=bucket,
        plan="plan",
        start=start,
        end=end,
        groups=groups,
        wants_keys=wants_keys,
        life=life,
        state=JobState.LEASED,
        epoch=1,
        worker="tests",
        leased_until=1 << 50,
    )


@dataclass
class DictStore:
    """Segments and results, as a store has them."""

    written_segments: dict[tuple[SegmentsOf, bytes, int], bytes] = field(default_factory=dict)
    written_rows: dict[tuple[JobResultOf, str, int], bytes] = field(default_factory=dict)
    lives: dict[object, Lifetime] = field(default_factory=dict)
    kinds_in_order: list[str] = field(default_factory=list)
    rows_read: list[tuple[str, int]] = field(default_factory=list)

    def write_segments(self, where: SegmentsOf, segments: Sequence[Segment], lifetime: Lifetime) -> None:
        for segment in segments:
            self.written_segments[where, segment.first, segment.seq] = segment.data
            self.lives[where] = lifetime

    def write_result(self, where: JobResultOf, rows: Sequence[ResultRow], lifetime: Lifetime) -> None:
        for row in rows:
            self.written_rows[where, row.kind, row.seq] = row.data
            self.lives[where, row.kind] = lifetime
            self.kinds_in_order.append(row.kind)

    def segments(self, where: SegmentsOf) -> Iterator[Segment]:
        for place, first, seq in sorted(self.written_segments, key=lambda row: row[1:]):
            if place == where:
                yield Segment(first, seq, self.written_segments[place, first, seq])

    def result(self, where: JobResultOf, kind: str, *, seq: int | None = None) -> Iterator[ResultRow]:
        for place, of, number in sorted(self.written_rows, key=lambda row: row[2]):
            if (place, of) == (where, kind) and seq in (None, number):
                self.rows_read.append((kind, number))
                yield ResultRow(kind, number, self.written_rows[place, of, number])


def source_of(records: Mapping[int, Sequence[LogRecord]]) -> Callable[[int, int, int], Iterator[RecordBatch]]:
    """A reader of partitions with these records. It knows nothing of jobs, and returns all records of a range."""

    def read(shard: int, start: int, end: int) -> Iterator[RecordBatch]:
        for record in records.get(shard, ()):
            if start <= record.offset < end:
                yield batch_of([record])

    return read


def batch_of(records: Sequence[LogRecord]) -> RecordBatch:
    return RecordBatch(
        np.array([record.offset for record in records]),
        np.array([record.time for record in records]),
        np.array([record.times_checked for record in records]),
        [record.value for record in records],
    )


@dataclass
class KeyModel:
    """The expected summary of one key."""

    offset: int
    position: int
    least: int
    greatest: int


@dataclass
class JobModel:
    """The expected result of one job, by plain loops over its records."""

    samples: dict[int, dict[Key, dict[int, int]]]
    keys: dict[Key, KeyModel]
    faults: list[tuple[int, int, bytes]]
    too_old: int = 0
    too_far_ahead: int = 0
    records: int = 0
    all_samples: int = 0


def model_of_job(job: Job, records: Sequence[LogRecord], given: ReplaySettings) -> JobModel:
    """Of several samples with the same series and time, the last one counts. Limits apply relative to the record's
    time, if it has one, unless the times were checked.
    """
    model = JobModel(defaultdict(lambda: defaultdict(dict)), {}, [])
    limits = given.sample_limits
    for record in records:
        if not job.start <= record.offset < job.end:
            continue
        model.records += 1
        if record.series is None:
            model.faults.append((record.offset, record.time, record.value))
            continue
        is_compared = not record.times_checked and record.time >= 0
        behind, ahead = (limits.behind, limits.ahead) if is_compared else (None, None)
        for position, (of, samples) in enumerate(record.series):
            key = key_of(of)
            for time, value in samples:
                model.all_samples += 1
                if behind is not None and time < record.time - behind:
                    model.too_old += 1
                elif ahead is not None and time > record.time + ahead:
                    model.too_far_ahead += 1
                else:
                    known = model.keys.setdefault(key, KeyModel(record.offset, position, time, time))
                    known.least, known.greatest = min(known.least, time), max(known.greatest, time)
                    if (group := key[0] % given.groups) in job.groups:
                        model.samples[group][key][time] = bits_of(value)
    return model


def stored_samples(store: DictStore, where: SegmentsOf) -> dict[Key, dict[int, int]]:
    """The samples in a group's segments. Fails if a sample is there twice."""
    found: dict[Key, dict[int, int]] = {}
    for segment in store.segments(where):
        for key, samples in model_of(decode_segment(segment.data, named="a segment of a test")).items():
            mine = found.setdefault(key, {})
            assert not mine.keys() & samples.keys()
            mine |= samples
    return found


def texts(keys: PartKeyBytes) -> list[bytes]:
    """The bytes of each key."""
    return [keys.keys[first:behind].tobytes() for first, behind in pairwise(keys.offsets.tolist())]
