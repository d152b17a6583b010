"""How the driver is set up for what the store asks of it."""

import pytest

from strandline.store import connection as module
from strandline.store.connection import CassandraConnection, QueueingConnection

pytestmark = pytest.mark.unit


def test_a_connection_whose_socket_is_full_refuses_nothing() -> None:
    assert QueueingConnection._socket_writable.fget is not None
    connection = QueueingConnection.__new__(QueueingConnection)
    connection._socket_writable = False
    assert connection._socket_writable is True


def test_every_connection_is_one_that_queues() -> None:
    cluster = module._cluster(
        CassandraConnection((("127.0.0.1", 9042),), 9042, "datacenter1", "strandline", None, None, 3.0, 2.0), 5
    )
    try:
        assert cluster.connection_class is QueueingConnection
    finally:
        cluster.shutdown()
