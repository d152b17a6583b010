"""Converts a request's body into records for Kafka: decompress, split by partition, compress. Pure; runs in a thread.

The hot path is compiled code that releases the GIL: snappy, the splitting kernels, and snappy again. A request that is
not changed by the split, as with a single partition, is not compressed again.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from strandline.errors import StrandlineError
from strandline.node.gateway.kernels.dropping import drop_out_of_range, find_dropped, find_large
from strandline.node.gateway.options import GatewayOptions
from strandline.node.gateway.producer import Record
from strandline.time_range import ALL_TIMES, TimeRange
from strandline.wire.decode import Limits
from strandline.wire.kernels.labels import Verdict
from strandline.wire.label_texts import content_of, labels_text
from strandline.wire.snappy import compress, decompress
from strandline.wire.splitting import BadRequest, SeriesTooLarge, Split, split_request

TOO_LARGE = "too-large"
# In the order of the kernel's two kinds.
_OUT_OF_RANGE = (
    ("too-old", "older than shard.max_sample_age allows"),
    ("too-far-ahead", "further ahead of the clock than shard.max_sample_ahead allows"),
)

_DESCRIPTIONS = {
    Verdict.NO_LABELS: "without a label",
    Verdict.EMPTY_NAME: "with a label without a name",
    Verdict.DUPLICATE_NAME: "with a label's name twice",
    Verdict.NOT_UTF8: "with text that is not UTF-8",
    Verdict.TOO_MANY_LABELS: "with too many labels",
    Verdict.NAME_TOO_LONG: "with too long a label name",
    Verdict.VALUE_TOO_LONG: "with too long a label value",
}


@dataclass(frozen=True, slots=True)
class Dropped:
    """Series that are not accepted: the reason as a label value and as a text, the number of series, and the first one.
    If `samples` is set, only this number of their samples is not accepted.
    """

    reason: str
    description: str
    series: int
    example: str
    samples: int | None = None

    def __str__(self) -> str:
        if self.samples is not None:
            return f"{self.samples} samples {self.description}, in {self.series} series such as {self.example}"
        return f"{self.series} {self.description}, such as {self.example}"


@dataclass(frozen=True, slots=True)
class StageSeconds:
    """Seconds of CPU time by stage."""

    unpack: float
    split: float
    pack: float


@dataclass(frozen=True, slots=True)
class Packed:
    """The records of a request, and what they don't contain. `held` is the number of series in the request, and
    `shortened` the number of these that lost some of their samples, but not all.
    """

    records: tuple[Record, ...]
    series: int
    samples: int
    record_bytes: int
    held: int
    shortened: int
    dropped: tuple[Dropped, ...]
    without_samples: int
    exemplars: int
    histograms: int
    metadata: int
    seconds: StageSeconds

    @property
    def has_out_of_range_samples(self) -> bool:
        """Whether samples were dropped because of their time."""
        return any(one.samples is not None for one in self.dropped)


def pack(body: bytes, partitions: int, options: GatewayOptions, times: TimeRange = ALL_TIMES) -> Packed:
    """Convert a body. Samples outside of `times` are dropped. Raises `BadBlock` or `BadRequest` for a body that will
    never be accepted, and of which nothing may be written.
    """
    began = time.thread_time()
    request = decompress(body, limit=options.limits.record_bytes)
    unpacked = time.thread_time()
    found = _split(request, partitions, options, times)
    split = found.split
    if found.held > options.max_series:
        raise BadRequest(
            f"the request holds {found.held} series, over the limit of {options.max_series}",
            remedy="Send fewer series in a request, or raise gateway.max_series",
        )
    was_split = time.thread_time()
    # A snappy block may be longer than its content. It is then compressed again.
    is_whole = len(split.parts) == 1 and split.parts[0].body is request and len(body) <= len(request)
    records = tuple(Record(part.partition, body if is_whole else compress(part.body)) for part in split.parts)
    packed = time.thread_time()
    return Packed(
        records=records,
        series=_series_in(split),
        samples=sum(part.samples for part in split.parts),
        record_bytes=sum(len(record.value) for record in records),
        held=found.held,
        shortened=found.shortened,
        dropped=found.dropped,
        without_samples=split.without_samples,
        exemplars=split.skipped.exemplars,
        histograms=split.skipped.histograms,
        metadata=split.skipped.metadata,
        seconds=StageSeconds(unpacked - began, was_split - unpacked, packed - was_split),
    )


def loss_error(packed: Packed) -> StrandlineError:
    """The error for a client that has sent series or samples that are not accepted."""
    lost = packed.held - packed.series - packed.without_samples
    rest = f"{'the other ' if lost else ''}{packed.series} are written" if packed.series else "nothing was written"
    shortened = min(packed.shortened, packed.series)  # Some of them may also have been dropped for their labels.
    without = f", {shortened} without some of their samples" if shortened else ""
    return BadRequest(f"{lost} series dropped, {rest}{without}: {'; '.join(map(str, packed.dropped))}")


@dataclass(frozen=True, slots=True)
class _SplitRequest:
    """A split request. The fields are those of `Packed`."""

    split: Split
    dropped: tuple[Dropped, ...]
    held: int
    shortened: int


def _split(request: bytes, partitions: int, options: GatewayOptions, times: TimeRange) -> _SplitRequest:
    large: tuple[Dropped, ...] = ()
    out_of_range: tuple[Dropped, ...] = ()
    shortened = 0

    def split_again() -> Split:
        return split_request(request, partitions, options.limits, max_bytes=options.max_record)

    try:
        split = split_again()
    except SeriesTooLarge:
        # Drop only these series, and split again.
        request, large = _without_large(request, options.max_record)
        split = split_again()
    held = _series_in(split) + split.without_samples + sum(split.skipped.series.values())
    held += sum(one.series for one in large)
    if split.times.first < times.first or split.times.last > times.last:
        request, out_of_range, shortened = _without_out_of_range(request, times)
        split = split_again()
    return _SplitRequest(split, (*_dropped(request, split, options.limits), *large, *out_of_range), held, shortened)


def _series_in(split: Split) -> int:
    return sum(part.series for part in split.parts)


def _without_out_of_range(request: bytes, times: TimeRange) -> tuple[bytes, tuple[Dropped, ...], int]:
    """The request without samples outside of these times, what was dropped, and how many series lost only some."""
    data, out = np.frombuffer(request, dtype=np.uint8), np.empty(len(request), dtype=np.uint8)
    counts, spans = np.zeros((len(_OUT_OF_RANGE), 2), dtype=np.int64), np.zeros((len(_OUT_OF_RANGE), 2), dtype=np.int64)
    size, shortened = drop_out_of_range(data, times.first, times.last, out, counts, spans)
    dropped = tuple(
        Dropped(reason, description, series, labels_text(request[start:end]), samples)
        for (reason, description), (samples, series), (start, end) in zip(
            _OUT_OF_RANGE, counts.tolist(), spans.tolist(), strict=True
        )
        if samples
    )
    return out[:size].tobytes(), dropped, shortened


def _without_large(request: bytes, max_bytes: int) -> tuple[bytes, tuple[Dropped, ...]]:
    """The request without series whose fields are longer than `max_bytes`, and what was dropped."""
    spans = np.empty((len(request) // max_bytes + 1, 2), dtype=np.int64)
    found = spans[: find_large(np.frombuffer(request, dtype=np.uint8), max_bytes, spans)].tolist()
    kept, at = [], 0
    for start, end in found:
        kept.append(request[at:start])
        at = end
    first, behind = found[0]
    description = f"over {max_bytes} bytes (send their samples in several requests)"
    example = labels_text(content_of(request[first:behind]))
    return b"".join([*kept, request[at:]]), (Dropped(TOO_LARGE, description, len(found), example),)


def _dropped(request: bytes, split: Split, limits: Limits) -> Iterator[Dropped]:
    if not split.skipped.series:
        return
    spans = np.zeros((len(Verdict), 2), dtype=np.int64)
    bounded = (limits.labels, limits.label_name, limits.label_value)
    find_dropped(np.frombuffer(request, dtype=np.uint8), bounded, len(split.skipped.series), spans)
    for verdict, count in split.skipped.series.items():
        start, end = spans[verdict].tolist()
        reason = verdict.name.lower().replace("_", "-")
        yield Dropped(reason, _DESCRIPTIONS[verdict], count, labels_text(request[start:end]))
