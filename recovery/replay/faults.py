"""Records of a job that could not be decoded. The owner writes them to the dead-letter topic."""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from strandline.recovery.replay.sections import ResultDamaged

_HEAD = struct.Struct("<qqII")


@dataclass(frozen=True, slots=True)
class FaultyRecord:
    """A record that could not be decoded: its offset, record time, reason and value."""

    offset: int
    time: int
    reason: str
    value: bytes = field(repr=False)


def encode_faults(faults: Iterable[FaultyRecord]) -> bytes:
    """Encode records one after the other. Concatenated encodings are the encoding of all the records."""
    return b"".join(
        part
        for fault in faults
        for reason in [fault.reason.encode()]
        for part in (_HEAD.pack(fault.offset, fault.time, len(reason), len(fault.value)), reason, fault.value)
    )


def decode_faults(chunks: Iterable[bytes], *, named: str) -> Iterator[FaultyRecord]:
    """The records in a stream of bytes, split anywhere. Raises `ResultDamaged` if the stream ends within a record."""
    left = bytearray()
    for chunk in chunks:
        left += chunk
        while (found := _first(left)) is not None:
            fault, size = found
            yield fault
            del left[:size]
    if left:
        raise ResultDamaged(named, f"its faults are cut off, {len(left)} bytes into a record")


def _first(data: bytearray) -> tuple[FaultyRecord, int] | None:
    if len(data) < _HEAD.size:
        return None
    offset, time, reason, value = _HEAD.unpack_from(data)
    end = _HEAD.size + reason + value
    if len(data) < end:
        return None
    text = data[_HEAD.size : _HEAD.size + reason].decode(errors="replace")
    return FaultyRecord(offset, time, text, bytes(data[_HEAD.size + reason : end])), end
