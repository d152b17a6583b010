"""How the driver is configured for the store's requirements."""

import socket

import pytest

from strandline.store import connection as module
from strandline.store.connection import CassandraConnection, StoreConnection

pytestmark = pytest.mark.unit


def test_a_connection_with_a_full_socket_queues_requests() -> None:
    assert StoreConnection._socket_writable.fget is not None
    connection = StoreConnection.__new__(StoreConnection)
    connection._socket_writable = False
    assert connection._socket_writable is True


def test_every_connection_queues_and_sends_at_once() -> None:
    cluster = module._cluster(
        CassandraConnection((("127.0.0.1", 9042),), 9042, "datacenter1", "strandline", None, None, 3.0, 2.0), 5
    )
    try:
        assert cluster.connection_class is StoreConnection
        assert (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1) in cluster.sockopts
    finally:
        cluster.shutdown()
