"""A Cassandra that was unavailable is used again within seconds of its return."""

from contextlib import closing
from dataclasses import replace

import pytest

from strandline.clock import SystemClock, wait_until
from strandline.node.stack import Stack
from strandline.store.cassandra.retries import RetryPolicy
from strandline.store.cassandra.store import open_cassandra_store
from strandline.store.connection import CassandraConnection
from strandline.store.protocol import StoreUnavailable
from strandline.store.rows import ShardId
from support.cassandra_store import COPIES
from support.stalling_proxy import StallingProxy
from support.store_contract import taken

pytestmark = pytest.mark.system

# Long enough for several attempts. The tests of the policy cover the limits of the pauses.
FAILED_ATTEMPTS = 2


def test_a_call_works_within_seconds_of_cassandra_s_return(
    stack: Stack, connection: CassandraConnection, shard: ShardId, caplog: pytest.LogCaptureFixture
) -> None:
    clock = SystemClock()

    def failed_attempts() -> int:
        return sum("Error attempting to reconnect" in record.getMessage() for record in caplog.records)

    with closing(StallingProxy(stack.cassandra_port)) as cassandra:
        proxied = replace(connection, contact_points=(("127.0.0.1", cassandra.port),), port=cassandra.port)
        retry_policy = RetryPolicy(deadline=0.1)
        with closing(open_cassandra_store(proxied, clock, copies=COPIES, retry_policy=retry_policy)) as store:
            owner = taken(store, shard)

            def works() -> bool:
                try:
                    store.touch(owner, 7, 2)
                except StoreUnavailable:
                    return False
                return True

            with cassandra.away():
                with pytest.raises(StoreUnavailable, match=f"Cassandra at 127.0.0.1:{cassandra.port} did not answer"):
                    store.touch(owner, 6, 1)
                assert wait_until(lambda: failed_attempts() >= FAILED_ATTEMPTS, timeout=60, clock=clock)
            assert wait_until(works, timeout=30, clock=clock)
