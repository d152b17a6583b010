"""How long rows live, as Cassandra counts it: in whole seconds from the write on, by its servers' clocks.

A life is passed on as a length, never as the difference of two clocks. A row gets what was asked for, rounded up, and a
margin of 1 %, at most 10 minutes. So a reader that compares `expires` with a present of its own leaves a row out before
the servers remove it, also if the row's write took a while to arrive or the present differs by some minutes. A group's
row gets the margin twice: it must not go before its bucket's cut, which would look like a hole.
"""

from typing import Final

_MAX_MARGIN_S: Final = 600


def seconds_to_live(length: int, *, margins: int = 1) -> int:
    """The time-to-live for a life of some milliseconds; the least that there is for one that is over already."""
    # A server counts from the second that it is in, and so up to a second less than it says.
    seconds = -(-length // 1_000) + 1
    return max(1, seconds + margins * min(_MAX_MARGIN_S, max(0, seconds // 100)))
