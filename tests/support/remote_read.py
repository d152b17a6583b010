"""Remote read's messages by the official protobuf implementation, and answers to compare with."""

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import cramjam
import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from strandline.index.documents import encode_part_key
from strandline.index.key_bytes import KeyBytes
from strandline.node.query.answers import SamplesAnswer
from support.xor_chunks import read_chunk

Descriptor = descriptor_pb2.FieldDescriptorProto
TEXT, BYTES = Descriptor.TYPE_STRING, Descriptor.TYPE_BYTES
INT64, DOUBLE = Descriptor.TYPE_INT64, Descriptor.TYPE_DOUBLE

# By message: the fields, in order of their numbers. A name means a message, a list a repeated field.
_MESSAGES: dict[str, dict[str, Any]] = {
    "Label": {"name": TEXT, "value": TEXT},
    "Sample": {"value": DOUBLE, "timestamp": INT64},
    "TimeSeries": {"labels": ["Label"], "samples": ["Sample"]},
    "QueryResult": {"timeseries": ["TimeSeries"]},
    "ReadResponse": {"results": ["QueryResult"]},
    "Chunk": {"min_time_ms": INT64, "max_time_ms": INT64, "type": INT64, "data": BYTES},
    "ChunkedSeries": {"labels": ["Label"], "chunks": ["Chunk"]},
    "ChunkedReadResponse": {"chunked_series": ["ChunkedSeries"], "query_index": INT64},
    "LabelMatcher": {"type": INT64, "name": TEXT, "value": TEXT},
    "ReadHints": {"step_ms": INT64, "func": TEXT, "start_ms": INT64, "end_ms": INT64},
    "Query": {
        "start_timestamp_ms": INT64,
        "end_timestamp_ms": INT64,
        "matchers": ["LabelMatcher"],
        "hints": "ReadHints",
    },
    "ReadRequest": {"queries": ["Query"], "accepted_response_types": [INT64]},
}


def _field(name: str, number: int, kind: Any) -> Descriptor:
    label = Descriptor.LABEL_REPEATED if isinstance(kind, list) else Descriptor.LABEL_OPTIONAL
    (kind,) = kind if isinstance(kind, list) else (kind,)
    if isinstance(kind, str):
        return Descriptor(
            name=name, number=number, label=label, type=Descriptor.TYPE_MESSAGE, type_name=f".prometheus.{kind}"
        )
    return Descriptor(name=name, number=number, label=label, type=kind)


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="remote_read.proto", package="prometheus", syntax="proto3")
    for name, fields in _MESSAGES.items():
        described = [_field(field, number, kind) for number, (field, kind) in enumerate(fields.items(), start=1)]
        file.message_type.append(descriptor_pb2.DescriptorProto(name=name, field=described))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"prometheus.{name}")) for name in _MESSAGES
    }


_CLASSES = _classes()
ReadRequest, ReadResponse = _CLASSES["ReadRequest"], _CLASSES["ReadResponse"]
Query, LabelMatcher, ReadHints = _CLASSES["Query"], _CLASSES["LabelMatcher"], _CLASSES["ReadHints"]
ChunkedReadResponse = _CLASSES["ChunkedReadResponse"]

Labels = tuple[tuple[str, str], ...]
Samples = list[tuple[int, int]]  # Milliseconds, and the value's bits.


def bits_of(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def answer_of(series: Mapping[Labels, Samples], warnings: tuple[str, ...] = ()) -> SamplesAnswer:
    """An answer with these series, which must be in order."""
    keys = [encode_part_key(dict(labels)) for labels in series]
    samples = [sample for samples in series.values() for sample in samples]
    return SamplesAnswer(
        KeyBytes(np.cumsum([0, *map(len, keys)], dtype=np.int64), np.frombuffer(b"".join(keys), dtype=np.uint8)),
        np.cumsum([0, *map(len, series.values())], dtype=np.int64),
        np.array([time for time, _ in samples], dtype=np.int64),
        np.array([value for _, value in samples], dtype=np.uint64).view(np.float64),
        warnings,
    )


def read_sampled(body: bytes) -> list[dict[Labels, Samples]]:
    """The series of each query in an answer with plain samples."""
    response = ReadResponse.FromString(bytes(cramjam.snappy.decompress_raw(body)))
    results = []
    for result in response.results:
        found = {
            labels_of(series): [(sample.timestamp, bits_of(sample.value)) for sample in series.samples]
            for series in result.timeseries
        }
        assert len(found) == len(result.timeseries)
        results.append(found)
    return results


def labels_of(series: Any) -> Labels:
    return tuple((label.name, label.value) for label in series.labels)


def crc32c(data: bytes) -> int:
    """Castagnoli's CRC, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def frames_of(body: bytes, *, checked: bool = True) -> Iterator[Any]:
    """The messages of a stream. Verifies the checksums, unless `checked` is False: it would take too long."""
    at = 0
    while at < len(body):
        length = shift = 0
        while True:
            byte = body[at]
            length |= (byte & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if byte < 0x80:
                break
        (checksum,) = struct.unpack_from(">I", body, at)
        message = body[at + 4 : at + 4 + length]
        assert len(message) == length, "the stream is truncated"
        assert not checked or crc32c(message) == checksum
        at += 4 + length
        yield ChunkedReadResponse.FromString(message)


def read_streamed(body: bytes, queries: int) -> list[dict[Labels, Samples]]:
    """The series of each query in a stream, whose parts must be in order."""
    results: list[dict[Labels, Samples]] = [{} for _ in range(queries)]
    place = (-1, ())
    for frame in frames_of(body):
        (series,) = frame.chunked_series
        here, found = (frame.query_index, labels_of(series)), results[frame.query_index]
        assert here == place or here[1] not in found, "a series continues after another one"
        place = here
        samples = found.setdefault(here[1], [])
        for chunk in series.chunks:
            read = read_chunk(chunk.data)
            assert (chunk.min_time_ms, chunk.max_time_ms, chunk.type) == (read[0][0], read[-1][0], 1)
            assert len(read) <= 120
            samples += read
    return results


def packed_request(queries: Sequence[Any], accepted: Sequence[int] = ()) -> bytes:
    """The body of a request."""
    request = ReadRequest(queries=queries, accepted_response_types=accepted)
    return bytes(cramjam.snappy.compress_raw(request.SerializeToString()))
