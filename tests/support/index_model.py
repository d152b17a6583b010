"""A simple model of the shard index, with dictionaries and sets, one key and one sample at a time."""

from dataclasses import dataclass, field

from strandline.index.policy import BucketPolicy


@dataclass
class ModelKey:
    """One key. `end` is None while it is live; `newest` is the newest bucket with its record."""

    start: int
    last: int
    end: int | None = None
    newest: int | None = None


@dataclass
class ModelBucket:
    """What a cut leaves to be stored: (start, end) of each changed key, and the greatest sample time of each active
    key.
    """

    bucket: int
    records: dict[str, tuple[int, int | None]]
    active: dict[str, int]


@dataclass
class IndexModel:
    """A shard that never crashes."""

    policy: BucketPolicy
    open_bucket: int
    keys: dict[str, ModelKey] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    active: set[str] = field(default_factory=set)
    active_in: dict[int, set[str]] = field(default_factory=dict)
    expiry: dict[int, int] = field(default_factory=dict)

    def sample(self, name: str, time: int) -> None:
        key = self.keys.get(name)
        if key is None:
            self.keys[name] = ModelKey(time, time)
            self.changed.add(name)
        else:
            if time < key.start or key.end is not None:
                self.changed.add(name)
            key.start, key.last, key.end = min(key.start, time), max(key.last, time), None
        self.active.add(name)

    def cut(self) -> ModelBucket:
        bucket = self.open_bucket
        self.active_in[bucket] = self.active
        recent = set().union(*(self.active_in.get(bucket - i, set()) for i in range(self.policy.live_buckets)))
        for name, key in self.keys.items():
            if key.end is None and name not in recent:
                key.end = key.last
                self.changed.add(name)
        gone = {
            name
            for name, key in self.keys.items()
            if key.end is not None and key.end < self.policy.purge_before(bucket)
        }
        for name, key in self.keys.items():
            if key.newest is not None and name not in gone and self._must_roll_over(key.newest, bucket):
                self.changed.add(name)
        for name in self.changed:
            self.keys[name].newest = bucket
        cut = ModelBucket(
            bucket,
            {name: (self.keys[name].start, self.keys[name].end) for name in self.changed},
            {name: self.keys[name].last for name in self.active},
        )
        for name in gone:
            del self.keys[name]
        self.open_bucket, self.changed, self.active = bucket + 1, set(), set()
        return cut

    def _must_roll_over(self, newest: int, bucket: int) -> bool:
        safe_until = (bucket + 2) * self.policy.flush_interval + self.policy.margin
        expires = self.expiry.get(newest, self.policy.expected_expiry(newest))
        return newest <= bucket - self.policy.kept_buckets or expires < safe_until
