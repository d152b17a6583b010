"""Key hashes as bytes: pairs of little-endian u64, low and high."""

import numpy as np

from strandline.arrays import Bools, U64s

_PAIR = np.dtype([("low", "<u8"), ("high", "<u8")])


def is_among(low: U64s, high: U64s, hashes: bytes) -> Bools:
    """Which series, given by the words of their hashes, have one of `hashes`."""
    wanted = np.frombuffer(hashes, dtype=_PAIR)
    own = np.empty(len(low), dtype=_PAIR)
    own["low"], own["high"] = low, high
    found: Bools = np.isin(own.view("V16"), wanted.view("V16"))
    return found


def distinct(parts: list[bytes]) -> bytes:
    """The distinct hashes."""
    return np.unique(np.frombuffer(b"".join(parts), dtype="V16")).tobytes() if any(parts) else b""
