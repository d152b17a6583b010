"""Captured traffic: remote-write bodies from a real Prometheus."""

import struct
from pathlib import Path

FILE = Path(__file__).parents[1] / "data" / "prometheus-remote-write-1.bin"


def captured_bodies() -> list[bytes]:
    """All captured bodies, compressed as they were received."""
    data = FILE.read_bytes()
    bodies, position = [], 0
    while position < len(data):
        (length,) = struct.unpack_from("<I", data, position)
        bodies.append(data[position + 4 : position + 4 + length])
        position += 4 + length
    return bodies
