"""Random histories of a shard's index, with crashes, compared with a model that never crashes.

The model and the index get the same samples and cuts. Sometimes the index crashes, is restored from the stored buckets,
and gets everything after them again, as in a replay. By key, both must then agree.
"""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from strandline.index.bitmaps import to_bitmap
from strandline.index.bucket_codec import EncodedBucket, decode_bucket
from strandline.index.bucket_load import load_index
from strandline.index.cut_snapshot import CutSnapshot
from strandline.index.documents import decode_part_key
from strandline.index.key_documents import DictDocuments, KeyDocuments
from strandline.index.part_columns import LIVE
from strandline.index.policy import BucketPolicy
from strandline.index.shard_index import ShardIndex
from strandline.index.time_bucket import FrozenBucket
from strandline.wire.encoding import Series
from support.index_model import IndexModel, ModelBucket
from support.records import decoded

HOUR = 3_600_000
FIRST = 1_000
# Kafka keeps two hours, and the margin is these plus two buckets, so at most two buckets may wait to be stored: earlier
# ones could not be replayed.
KAFKA_KEEPS = 2
NAMES = st.sampled_from("abcdef")

# A sample: the key, the hours before the open bucket's hour, and the minute of that hour.
SAMPLES = st.lists(st.tuples(NAMES, st.sampled_from([0, 0, 0, 1, 2, 7]), st.integers(0, 59)), min_size=1, max_size=6)

POLICIES = st.tuples(
    st.sampled_from([2 * HOUR, 3 * HOUR, 5 * HOUR - 1]), st.sampled_from([HOUR, 2 * HOUR, 3 * HOUR])
).map(lambda times: BucketPolicy(HOUR, times[0], (KAFKA_KEEPS + 2) * HOUR, min(times)))


@dataclass
class Stored:
    """A stored bucket: its rows, when it expires, and the next part id at its cut."""

    encoded: EncodedBucket
    expires: int
    next_part_id: int


class IndexBesideModel(RuleBasedStateMachine):
    """The documents are kept in memory. Subclasses may change that, and what else happens at a store or a crash."""

    def empty_documents(self) -> KeyDocuments:
        """Empty documents, for a new index."""
        return DictDocuments()

    @initialize(policy=POLICIES)
    def begin(self, policy: BucketPolicy) -> None:
        self.policy = policy
        self.model = IndexModel(policy, FIRST)
        self.store: dict[int, Stored] = {}
        self.log: list[list[tuple[str, int]] | None] = []  # A batch of samples, or None for a cut.
        self.first_in_log = FIRST
        self.unstored: list[tuple[FrozenBucket, int]] = []
        self.index = self.empty_index(FIRST, 0)

    def empty_index(self, open_bucket: int, next_part_id: int) -> ShardIndex:
        self.documents = self.empty_documents()
        return ShardIndex(
            self.policy, self.documents, open_bucket=open_bucket, next_part_id=next_part_id, series_limit=1000
        )

    @rule(samples=SAMPLES)
    def samples_come(self, samples: list[tuple[str, int, int]]) -> None:
        hour = self.model.open_bucket
        batch = [(name, (hour - late) * HOUR + minute * 60_000) for name, late, minute in samples]
        for name, time in batch:
            self.model.sample(name, time)
        self.log.append(batch)
        self.add(batch)

    def add(self, batch: list[tuple[str, int]]) -> None:
        series = [Series([("__name__", "m"), ("name", name)], [(time, 1.0)]) for name, time in batch]
        self.index.take(decoded(series))

    @rule()
    def the_bucket_is_cut(self) -> None:
        if len(self.unstored) == KAFKA_KEEPS:
            self.the_oldest_bucket_is_stored()
        expected = self.model.cut()
        self.log.append(None)
        self.compare_bucket(self.cut_index(), expected)

    def cut_index(self) -> FrozenBucket:
        frozen = self.index.cut()
        self.unstored.append((frozen, self.index.next_part_id))
        return frozen

    @rule()
    def several_hours_pass_without_a_sample(self) -> None:
        for _ in range(3):
            self.the_bucket_is_cut()
            self.the_oldest_bucket_is_stored()

    @rule()
    def the_oldest_bucket_is_stored(self) -> None:
        if not self.unstored:
            return
        frozen, next_part_id = self.unstored.pop(0)
        # Written now by the wall clock, which starts its lifetime.
        expires = self.policy.end_of(self.model.open_bucket - 1) + self.policy.time_to_live
        self.store[frozen.bucket] = Stored(self.index.encode(frozen), expires, next_part_id)
        self.index.stored(frozen, expires)
        self.model.expiry[frozen.bucket] = expires
        # What is before the stored bucket's cut is never replayed.
        del self.log[: self.log.index(None) + 1]
        self.first_in_log = frozen.bucket + 1

    @rule()
    def a_crash(self) -> None:
        now = self.policy.end_of(self.model.open_bucket)
        self.store = {bucket: stored for bucket, stored in self.store.items() if stored.expires > now}
        newest = self.store[max(self.store)] if self.store else None
        self.index = self.restored_index(newest)
        self.unstored = []
        for entry in self.log:
            if entry is None:
                self.cut_index()
            else:
                self.add(entry)

    def restored_index(self, newest: Stored | None) -> ShardIndex:
        """The index as of the newest stored bucket, loaded from all stored buckets."""
        self.documents = self.empty_documents()
        return load_stored(self, newest, None)

    def name_of(self, part_ids: np.ndarray) -> dict[int, str]:
        batch = self.documents.fetch(to_bitmap(part_ids))
        return {
            part_id: decode_part_key(batch.part_key(place))["name"]
            for place, part_id in enumerate(batch.part_ids.tolist())
        }

    def compare_bucket(self, frozen: FrozenBucket, expected: ModelBucket) -> None:
        names = self.name_of(np.concatenate((frozen.part_ids, frozen.active_ids)))
        records = zip(frozen.part_ids.tolist(), frozen.start.tolist(), frozen.end.tolist(), strict=True)
        assert {
            names[part_id]: (start, None if end == LIVE else end) for part_id, start, end in records
        } == expected.records
        active = zip(frozen.active_ids.tolist(), frozen.last.tolist(), strict=True)
        assert {names[part_id]: last for part_id, last in active} == expected.active
        assert frozen.bucket == expected.bucket

    @invariant()
    def both_know_the_same_keys(self) -> None:
        keys = self.index.columns.rows
        present = np.flatnonzero(keys.present())
        names = self.name_of(keys.part_id[present])
        assert len(set(names.values())) == len(names) == len(present), "a key has two part ids, or an id has no key"
        found = {
            names[int(keys.part_id[row])]: (
                int(keys.start[row]),
                int(keys.last[row]),
                None if keys.end[row] == LIVE else int(keys.end[row]),
            )
            for row in present.tolist()
        }
        assert found == {name: (key.start, key.last, key.end) for name, key in self.model.keys.items()}
        assert self.index.columns.live == sum(key.end is None for key in self.model.keys.values())
        low, high, rows = self.index.table.dump()
        assert sorted(rows.tolist()) == present.tolist()
        assert keys.key_low[rows].tolist() == low.tolist()
        assert keys.key_high[rows].tolist() == high.tolist()

    @invariant()
    def the_open_bucket_names_the_same_keys(self) -> None:
        keys = self.index.columns.rows
        names = self.name_of(keys.part_id[keys.present()])
        assert {names[part_id] for part_id in self.index.open.changed} == self.model.changed
        assert {names[part_id] for part_id in self.index.open.active} == self.model.active


def load_stored(machine: IndexBesideModel, newest: Stored | None, copy: CutSnapshot | None) -> ShardIndex:
    """The index, loaded from all stored buckets, or from a copy and newer buckets."""
    oldest = copy.bucket + 1 if copy is not None else 0
    return load_index(
        machine.policy,
        machine.documents,
        [
            decode_bucket(bucket, stored.encoded.rows, len(stored.encoded.rows), stored.encoded.checksum)
            for bucket, stored in sorted(machine.store.items(), reverse=True)
            if bucket >= oldest
        ],
        {bucket: stored.expires for bucket, stored in machine.store.items()},
        open_bucket=machine.first_in_log,
        next_part_id=newest.next_part_id if newest else 0,
        series_limit=1000,
        copy=copy,
    )
