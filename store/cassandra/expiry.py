"""How long rows live.

Cassandra counts lives in whole seconds, by its servers' clocks. A row is given a second more than it needs, and carries
its `expires`, by which readers leave it out: so it is never gone early, and never seen late.
"""


def seconds_to_live(expires: int, now: int) -> int:
    """The time-to-live of a row written now; the least there is for one that has expired."""
    return max(1, -((now - expires) // 1_000) + 1)
