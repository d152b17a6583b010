"""Sequences that are easy to get wrong in a store, each named after what must hold."""

from dataclasses import replace

import pytest

from strandline.store.jobs import JobState
from strandline.store.protocol import Fenced, Store
from strandline.store.rows import Lifetime, Ownership, ShardId
from support.store_contract import cut, job, manifest_write, state_of

pytestmark = pytest.mark.contract


def test_a_process_that_reads_its_epoch_from_another_owner_is_not_the_owner(
    store: Store, shard: ShardId, lasting: Lifetime
) -> None:
    """Owner A's take was lost on its way; B takes. The epoch is then the one that A would have written."""
    b = store.take(shard, "owner-b", None, now=2_000, topic_id="topic-1")
    assert b == Ownership(shard, 1, "owner-b")
    # A retries the take because it does not know its outcome, and then acts as if it had succeeded.
    assert store.take(shard, "owner-a", None, now=3_000, topic_id="topic-1") is None
    believed = Ownership(shard, state_of(store, shard).epoch, "owner-a")
    with pytest.raises(Fenced):
        store.touch(believed, 4_000, 1)
    with pytest.raises(Fenced):
        store.commit(believed, manifest_write(cuts=(cut(1, lasting),)))
    store.commit(b, manifest_write(cuts=(cut(1, lasting, end=500),)))
    rows = store.manifest(shard)
    assert rows is not None
    assert (rows.state.owner, rows.state.seen_at) == ("owner-b", 2_000)
    assert rows.cuts == (cut(1, lasting, end=500),)


def test_a_lease_is_kept_however_soon_it_follows_the_creation_of_its_job(
    store: Store, other_store: Store, shard: ShardId, lasting: Lifetime
) -> None:
    """With writes that are not conditional, the higher timestamp would win, not the later write."""
    for round_ in range(20):
        pending = job(shard, 5, lasting, plan=f"plan-{round_}")
        lease = replace(pending, state=JobState.LEASED, epoch=1, worker="a", leased_until=120_000)
        done = replace(lease, state=JobState.DONE, leased_until=0)
        assert store.add_job(pending)
        assert other_store.replace_job(pending, lease)
        assert list(store.jobs(shard)) == [lease]
        assert not store.add_job(pending)
        assert store.replace_job(lease, done)
        assert list(other_store.jobs(shard)) == [done]
        assert other_store.remove_job(done)
        assert list(store.jobs(shard)) == []
