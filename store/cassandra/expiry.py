"""Lifetimes as Cassandra's TTL: whole seconds, counted from the write by the servers' clocks.

A lifetime is passed on as a length, never as the difference of two clocks. The TTL is the length rounded up, plus a
margin of 1 %, at most 10 minutes. So a reader that compares `expires` with its own present ignores a row before the
servers remove it, even if the write was delayed or the presents differ by some minutes. A group row gets twice the
margin: if it expired before its bucket's cut, that would look like a hole.
"""

from typing import Final

_MAX_MARGIN_S: Final = 600


def seconds_to_live(length: int, *, margins: int = 1) -> int:
    """Return the TTL for a lifetime in milliseconds; the minimum TTL if it has passed already."""
    # A server counts from the start of the current second, so a row may expire up to a second early.
    seconds = -(-length // 1_000) + 1
    return max(1, seconds + margins * min(_MAX_MARGIN_S, max(0, seconds // 100)))
