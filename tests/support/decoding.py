"""A simple reference for decoding: one series after the other, with the official implementation's messages."""

import struct
from collections import Counter
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from strandline.wire.columns import Columns
from strandline.wire.decode import Limits
from strandline.wire.encoding import Series, encode_request
from strandline.wire.kernels.labels import MAX_TEXT, Verdict
from support.remote_write import RawWriteRequest

Row = tuple[int, bytes, tuple[tuple[int, bytes], ...]]


@dataclass
class Expected:
    """The expected result of decoding a batch: rows of (record, labels, samples with the values' bits), and more."""

    rows: list[Row] = field(default_factory=list)
    broken: set[int] = field(default_factory=set)
    dropped: Counter[Verdict] = field(default_factory=Counter)
    exemplars: int = 0
    histograms: int = 0
    metadata: int = 0


def expected(messages: list[bytes], limits: Limits) -> Expected:
    """Decode unpacked messages with the official implementation."""
    result = Expected()
    for record, message in enumerate(messages):
        try:
            request = RawWriteRequest.FromString(message)
        except DecodeError:
            result.broken.add(record)
            continue
        result.metadata += len(request.metadata)
        for series in request.timeseries:
            result.exemplars += len(series.exemplars)
            result.histograms += len(series.histograms)
            labels = [(label.name, label.value) for label in series.labels]
            verdict = judge(labels, limits)
            if verdict is not Verdict.CANONICAL:
                result.dropped[verdict] += 1
                continue
            samples = tuple((sample.timestamp, struct.pack("<d", sample.value)) for sample in series.samples)
            result.rows.append((record, canonical(labels), samples))
    return result


def judge(labels: list[tuple[bytes, bytes]], limits: Limits) -> Verdict:
    """The verdict on labels as a part key: the first reason to reject them, in the message's order."""
    seen: set[bytes] = set()
    names_length = 0
    for name, value in labels:
        if not value:
            continue
        names_length += len(name) + 2
        if not name:
            return Verdict.EMPTY_NAME
        if len(seen) == limits.labels:
            return Verdict.TOO_MANY_LABELS
        if len(name) > limits.label_name or names_length > MAX_TEXT:
            return Verdict.NAME_TOO_LONG
        if len(value) > limits.label_value:
            return Verdict.VALUE_TOO_LONG
        try:
            (name + b"|" + value).decode()
        except UnicodeDecodeError:
            return Verdict.NOT_UTF8
        if name in seen:
            return Verdict.DUPLICATE_NAME
        seen.add(name)
    return Verdict.CANONICAL if seen else Verdict.NO_LABELS


def canonical(labels: list[tuple[bytes, bytes]]) -> bytes:
    """The canonical form: what a client sends that sorts its labels and leaves out empty ones."""
    kept = sorted((name.decode(), value.decode()) for name, value in labels if value)
    kept.sort(key=lambda label: label[0].encode())
    request = encode_request([Series(kept, [])])
    # Without the tag and length of its only series.
    end_of_length = next(position for position in range(1, len(request)) if request[position] < 0x80)
    return request[end_of_length + 1 :]


def rows_of(columns: Columns) -> list[Row]:
    """Decoded columns in the form of `Expected.rows`."""
    rows = []
    for row in range(len(columns.record)):
        of_row = slice(columns.first_sample[row], columns.first_sample[row + 1])
        times, values = columns.time[of_row].tolist(), columns.value[of_row]
        samples = tuple((time, value.tobytes()) for time, value in zip(times, values, strict=True))
        rows.append((int(columns.record[row]), columns.labels(row), samples))
    return rows


def compare(columns: Columns, messages: list[bytes], limits: Limits) -> None:
    """Assert that columns are the expected result for these messages."""
    wanted = expected(messages, limits)
    assert {fault.record for fault in columns.faults} == wanted.broken
    assert rows_of(columns) == wanted.rows
    assert columns.skipped.series == wanted.dropped
    found = (columns.skipped.exemplars, columns.skipped.histograms, columns.skipped.metadata)
    assert found == (wanted.exemplars, wanted.histograms, wanted.metadata)
