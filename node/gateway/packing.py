"""A request's body into records for Kafka: unpack, split by partition, pack. Pure, and done in a thread.

The hot path is compiled code that lets go of the interpreter: snappy, the kernels that split, snappy again. A request
that comes out as it was, as all do where there is one partition, is passed on without being packed again.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from strandline.errors import StrandlineError
from strandline.node.gateway.kernels.losses import find_dropped, find_large
from strandline.node.gateway.label_texts import content_of, labels_text
from strandline.node.gateway.options import GatewayOptions
from strandline.node.gateway.producer import Record
from strandline.wire.decode import Limits
from strandline.wire.kernels.labels import Verdict
from strandline.wire.snappy import compress, decompress
from strandline.wire.splitting import BadRequest, SeriesTooLarge, Split, split_request

TOO_LARGE = "too-large"

_WORDS = {
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
    """Series that are not taken: why, in a word for counters and in words for people, how many, and the first one."""

    reason: str
    words: str
    series: int
    example: str

    def __str__(self) -> str:
        return f"{self.series} {self.words}, such as {self.example}"


@dataclass(frozen=True, slots=True)
class StageSeconds:
    """Seconds of CPU."""

    unpack: float
    split: float
    pack: float


@dataclass(frozen=True, slots=True)
class Packed:
    """A request in records, and what none of them holds."""

    records: tuple[Record, ...]
    series: int
    samples: int
    record_bytes: int
    dropped: tuple[Dropped, ...]
    without_samples: int
    exemplars: int
    histograms: int
    metadata: int
    seconds: StageSeconds


def pack(body: bytes, partitions: int, options: GatewayOptions) -> Packed:
    """Raises `BadBlock` or `BadRequest` for what will never be taken, of which nothing may be written."""
    began = time.thread_time()
    request = decompress(body, limit=options.limits.record_bytes)
    unpacked = time.thread_time()
    split, dropped = _split(request, partitions, options)
    series = sum(part.series for part in split.parts)
    held = series + split.without_samples + sum(one.series for one in dropped)
    if held > options.max_series:
        raise BadRequest(
            f"the request holds {held} series, over the limit of {options.max_series}",
            remedy="Send fewer series in a request, or raise gateway.max_series",
        )
    was_split = time.thread_time()
    # A block may be longer than what it holds; such a one is packed better.
    is_whole = len(split.parts) == 1 and split.parts[0].body is request and len(body) <= len(request)
    records = tuple(Record(part.partition, body if is_whole else compress(part.body)) for part in split.parts)
    packed = time.thread_time()
    return Packed(
        records=records,
        series=series,
        samples=sum(part.samples for part in split.parts),
        record_bytes=sum(len(record.value) for record in records),
        dropped=dropped,
        without_samples=split.without_samples,
        exemplars=split.skipped.exemplars,
        histograms=split.skipped.histograms,
        metadata=split.skipped.metadata,
        seconds=StageSeconds(unpacked - began, was_split - unpacked, packed - was_split),
    )


def told(dropped: tuple[Dropped, ...], written: int) -> StrandlineError:
    """What a client is told that sent series which are not taken."""
    count = sum(one.series for one in dropped)
    rest = f"the other {written} are written" if written else "nothing was written"
    return BadRequest(f"{count} series dropped, {rest}: {'; '.join(map(str, dropped))}")


def _split(request: bytes, partitions: int, options: GatewayOptions) -> tuple[Split, tuple[Dropped, ...]]:
    large: tuple[Dropped, ...] = ()
    try:
        split = split_request(request, partitions, options.limits, max_bytes=options.max_record)
    except SeriesTooLarge:
        # Nothing else of the request may be lost by that.
        request, large = _without_large(request, options.max_record)
        split = split_request(request, partitions, options.limits, max_bytes=options.max_record)
    return split, (*_dropped(request, split, options.limits), *large)


def _without_large(request: bytes, most: int) -> tuple[bytes, tuple[Dropped, ...]]:
    """The request without series whose fields take more than `most` bytes, and word of these."""
    spans = np.empty((len(request) // most + 1, 2), dtype=np.int64)
    found = spans[: find_large(np.frombuffer(request, dtype=np.uint8), most, spans)].tolist()
    kept, at = [], 0
    for start, end in found:
        kept.append(request[at:start])
        at = end
    first, behind = found[0]
    words = f"over {most} bytes (send their samples in several requests)"
    example = labels_text(content_of(request[first:behind]))
    return b"".join([*kept, request[at:]]), (Dropped(TOO_LARGE, words, len(found), example),)


def _dropped(request: bytes, split: Split, limits: Limits) -> Iterator[Dropped]:
    if not split.skipped.series:
        return
    spans = np.zeros((len(Verdict), 2), dtype=np.int64)
    bounded = (limits.labels, limits.label_name, limits.label_value)
    find_dropped(np.frombuffer(request, dtype=np.uint8), bounded, len(split.skipped.series), spans)
    for verdict, count in split.skipped.series.items():
        start, end = spans[verdict].tolist()
        reason = verdict.name.lower().replace("_", "-")
        yield Dropped(reason, _WORDS[verdict], count, labels_text(request[start:end]))
