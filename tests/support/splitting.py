"""Properties of every split: decoding and the official implementation find the request in its parts."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import xxhash

from strandline.wire.columns import Skipped
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.snappy import compress
from strandline.wire.splitting import MAX_PART_BYTES, BadRequest, Split, split_request
from support.decoding import Row, rows_of
from support.remote_write import WriteRequest


def partition_of(labels: bytes, partitions: int) -> int:
    """The partition of canonical labels, by another implementation of the hash."""
    return (xxhash.xxh3_128_intdigest(labels) & (2**64 - 1)) % partitions


def compare_splits(
    messages: Sequence[bytes], partitions: int, limits: Limits, max_bytes: int = MAX_PART_BYTES
) -> dict[int, Split]:
    """Split messages, assert that each split is what decoding the complete message requires, and return them by number.

    A message that decoding refuses must be refused with the same error, and has no split.
    """
    whole = decode_batch([compress(message) for message in messages], limits)
    reasons = {fault.record: fault.reason for fault in whole.faults}
    splits, refused = {}, {}
    for number, message in enumerate(messages):
        try:
            splits[number] = split_request(message, partitions, limits, max_bytes=max_bytes)
        except BadRequest as error:
            refused[number] = error.message
    assert refused == reasons

    parts = [(number, part) for number, split in splits.items() for part in split.parts]
    decoded = decode_batch([compress(part.body) for _, part in parts], limits)
    assert decoded.faults == ()
    found, wanted = defaultdict(list), defaultdict(list)
    rows = rows_of(decoded)
    for record, labels, samples in rows:
        number, part = parts[record]
        found[number, part.partition].append((labels, samples))
    for number, labels, samples in rows_of(whole):
        if samples:
            wanted[number, partition_of(labels, partitions)].append((labels, samples))
    assert found == wanted

    _compare_counts(rows, [(part.series, part.samples) for _, part in parts])
    for _, part in parts:
        assert 0 < len(part.body) <= max_bytes
        assert len(WriteRequest.FromString(part.body).timeseries) == part.series
    for split in splits.values():
        order = [part.partition for part in split.parts]
        assert order == sorted(order)
    assert whole.skipped == _sum([decoded.skipped, *(split.skipped for split in splits.values())])
    empty = sum(not samples for _, _, samples in rows_of(whole))
    assert sum(split.without_samples for split in splits.values()) == empty
    return splits


def _compare_counts(rows: list[Row], counted: list[tuple[int, int]]) -> None:
    series, samples = Counter[int](), Counter[int]()
    for record, _, of_row in rows:
        series[record] += 1
        samples[record] += len(of_row)
    assert counted == [(series[record], samples[record]) for record in range(len(counted))]


def _sum(skipped: list[Skipped]) -> Skipped:
    return Skipped(
        exemplars=sum(part.exemplars for part in skipped),
        histograms=sum(part.histograms for part in skipped),
        metadata=sum(part.metadata for part in skipped),
        series=sum((Counter(part.series) for part in skipped), Counter()),
    )
