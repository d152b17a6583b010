"""Servers that ask who comes: their health is checked as a client that has leave to enter."""

from dataclasses import replace
from pathlib import Path

import pytest

from strandline.node.stack import Stack
from strandline.node.stack.cassandra_health import check_cassandra
from strandline.node.stack.errors import Unhealthy
from strandline.node.stack.kafka_health import check_kafka
from strandline.node.stack.options import CassandraClient
from support.certificates import Certificates
from support.secured_stack import CASSANDRA_LOGIN, KAFKA_LOGIN, secured_options

pytestmark = pytest.mark.system


def test_client_with_a_wrong_password_is_kept_out(secured_stack: Stack, certificates: Certificates) -> None:
    given = secured_options(secured_stack.folder.root, certificates)
    client = replace(given.cassandra_client, login=(CASSANDRA_LOGIN[0], "wrong"))

    with pytest.raises(Unhealthy):
        check_kafka(secured_stack.kafka_bootstrap, {**given.kafka_client, "sasl.password": "wrong"}, 2.0)
    with pytest.raises(Unhealthy, match=r"(?i)credentials|password"):
        check_cassandra(secured_stack.cassandra_host, secured_stack.cassandra_port, client, 5.0)


def test_client_without_tls_is_kept_out(secured_stack: Stack) -> None:
    with pytest.raises(Unhealthy):
        check_kafka(secured_stack.kafka_bootstrap, {}, 2.0)
    with pytest.raises(Unhealthy):
        check_cassandra(
            secured_stack.cassandra_host, secured_stack.cassandra_port, CassandraClient(login=CASSANDRA_LOGIN), 2.0
        )


def test_passwords_are_in_no_record_log_or_command_line(secured_stack: Stack) -> None:
    told = [secured_stack.folder.record_file.read_bytes()]
    for server in secured_stack.record.servers:
        assert server.process is not None
        told.append(Path(f"/proc/{server.process.pid}/cmdline").read_bytes())
        told.append(Path(server.log).read_bytes())

    assert not any(KAFKA_LOGIN[1].encode() in text for text in told)
