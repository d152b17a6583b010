"""Records of a job that could not be decoded: for the dead-letter topic, which only the node writes to."""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from strandline.recovery.replay.sections import ResultDamaged

_HEAD = struct.Struct("<qqII")


@dataclass(frozen=True, slots=True)
class FaultyRecord:
    """A record that is no request: where it lies, its record time, why, and what it held."""

    offset: int
    time: int
    reason: str
    value: bytes = field(repr=False)


def encode_faults(faults: Iterable[FaultyRecord]) -> bytes:
    """Records one behind the other: the bytes of some and then of others are those of all."""
    return b"".join(
        part
        for fault in faults
        for reason in [fault.reason.encode()]
        for part in (_HEAD.pack(fault.offset, fault.time, len(reason), len(fault.value)), reason, fault.value)
    )


def decode_faults(chunks: Iterable[bytes], *, named: str) -> Iterator[FaultyRecord]:
    """The records in bytes that come in pieces, cut anywhere; `ResultDamaged` if they end in the midst of one."""
    left = bytearray()
    for chunk in chunks:
        left += chunk
        while (found := _first(left)) is not None:
            fault, size = found
            yield fault
            del left[:size]
    if left:
        raise ResultDamaged(named, f"its faults end {len(left)} bytes behind the beginning of one")


def _first(data: bytearray) -> tuple[FaultyRecord, int] | None:
    if len(data) < _HEAD.size:
        return None
    offset, time, reason, value = _HEAD.unpack_from(data)
    end = _HEAD.size + reason + value
    if len(data) < end:
        return None
    text = data[_HEAD.size : _HEAD.size + reason].decode(errors="replace")
    return FaultyRecord(offset, time, text, bytes(data[_HEAD.size + reason : end])), end
