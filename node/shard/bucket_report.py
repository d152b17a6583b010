"""The figures of a shard's bucket. A separate module, because the supervisor imports it and must not load kernels."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BucketFigures:
    """One bucket of one shard. `active` is the number of series with a sample in it. `changed` is the number of key
    records that it stores; for a stored bucket, without those that a later bucket stores again. `samples` counts those
    in the store and in memory. `bytes` is their size in memory and in the spill until they are stored. `segments` are
    rows in the store. `state` is open, closed (not stored completely yet) or stored.
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
