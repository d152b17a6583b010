"""What is told of a bucket of a shard. A module of its own: the supervisor reads reports, and loads no kernels."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BucketFigures:
    """One bucket of one shard: its times, how many series had a sample in it, and how many records of keys it stores;
    of a stored one those that no later bucket stores again. `samples` are those in the store and in memory, `bytes`
    what they take in memory and in the spill until they are stored, `segments` the rows in the store. `state` is open,
    closed (not all of it is stored yet) or stored.
    """

    shard: int
    bucket: int
    start: int
    end: int
    active: int
    changed: int
    samples: int
    bytes: int
    state: str
    segments: int = 0
