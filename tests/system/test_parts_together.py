"""Real components with real traffic: the wire kernels with Lucene and with Cassandra. Those with Spark are in
`spark/`.
"""

from pathlib import Path

import pytest
from cassandra.cluster import Session

from strandline.index.key_table import KeyTable
from strandline.index.new_keys import new_key_batch
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene.queries import all_of, label_is
from strandline.index.vm import start_vm
from strandline.node.settings.clients import cassandra_connection
from strandline.node.settings.sections import CassandraSettings
from strandline.node.stack import Stack
from strandline.store.connection import connect
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.snappy import decompress
from support.capture import captured_bodies
from support.cassandra_part import fence
from support.remote_write import WriteRequest

pytestmark = pytest.mark.system


def test_cassandra_applies_the_conditional_batch_of_the_owner_only(stack: Stack) -> None:
    address = f"{stack.cassandra_host}:{stack.cassandra_port}"
    session: Session = connect(
        cassandra_connection(CassandraSettings(contact_points=(address,))), require_keyspace=False
    )
    try:
        seen = fence(session)
        rows = list(session.execute("SELECT shard, bucket, epoch, content FROM strandline_demo.fenced"))
    finally:
        session.cluster.shutdown()
    assert (seen.owner_applied, seen.former_owner_applied) == (True, False)
    assert [tuple(row) for row in rows] == [(0, 7, 2, "by the owner")]


def test_lucene_finds_the_keys_of_real_traffic_through_our_extension(tmp_path: Path) -> None:
    bodies = captured_bodies()
    known = {
        tuple((label.name, label.value) for label in series.labels)
        for body in bodies
        for series in WriteRequest.FromString(decompress(body, limit=1 << 25)).timeseries
    }
    start_vm()
    columns = decode_batch(bodies, Limits())
    assigned = KeyTable().assign(columns.key_low, columns.key_high, next_row=0, max_keys=1 << 20)
    with PartKeyIndex.open(tmp_path / "lucene") as index:
        assert index.add(new_key_batch(columns, assigned.new, assigned.rows[assigned.new])) == len(known)
        index.refresh()
        for label in (("__name__", "up"), ("job", "prometheus"), ("quantile", "0.99"), ("job", "no such job")):
            assert len(index.search(label_is(*label))) == sum(label in key for key in known)
        handlers = [("__name__", "prometheus_http_requests_total"), ("code", "200")]
        wanted = sum(all(label in key for label in handlers) for key in known)
        assert wanted > 0
        assert len(index.search(all_of([label_is(*label) for label in handlers]))) == wanted
