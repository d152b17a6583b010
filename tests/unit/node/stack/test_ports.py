"""Ports: free, the same from run to run, and with a clear error if one is in use."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path

import pytest

from strandline.node.stack.errors import PortInUse
from strandline.node.stack.ports import LOOPBACK, Ports, choose_ports, is_listening, port_holder
from support.stack import options

pytestmark = pytest.mark.unit


@contextmanager
def taken_port(host: str = LOOPBACK) -> Iterator[int]:
    with socket.create_server((host, 0)) as listener:
        yield listener.getsockname()[1]


def test_ports_are_four_different_free_ones(tmp_path: Path) -> None:
    ports = choose_ports(options(tmp_path), Ports())

    assert len(set(astuple(ports))) == 4
    for port in astuple(ports):
        with socket.create_server((LOOPBACK, port)):
            pass


def test_ports_of_the_previous_run_are_taken_again(tmp_path: Path) -> None:
    before = choose_ports(options(tmp_path), Ports())

    assert choose_ports(options(tmp_path), before) == before


def test_port_of_the_previous_run_that_is_in_use_is_replaced_and_the_others_stay(tmp_path: Path) -> None:
    before = choose_ports(options(tmp_path), Ports())

    with socket.create_server((LOOPBACK, before.kafka)):
        after = choose_ports(options(tmp_path), before)

    assert after.kafka != before.kafka
    assert astuple(after)[1:] == astuple(before)[1:]


def test_port_in_the_settings_wins_over_the_previous_one(tmp_path: Path) -> None:
    with taken_port() as used:
        pass

    assert (
        choose_ports(options(tmp_path, cassandra_port=used), choose_ports(options(tmp_path), Ports())).cassandra == used
    )


def test_port_in_the_settings_is_not_given_to_another_server_by_chance(tmp_path: Path) -> None:
    before = choose_ports(options(tmp_path), Ports())

    ports = choose_ports(options(tmp_path, cassandra_port=before.kafka), before)

    assert ports.cassandra == before.kafka
    assert ports.kafka != before.kafka


@pytest.mark.parametrize("host", [LOOPBACK, "0.0.0.0"])  # noqa: S104 - the port is bound only briefly
def test_fixed_port_in_use_is_an_error_that_names_port_setting_and_holder(tmp_path: Path, host: str) -> None:
    with taken_port(host) as port, pytest.raises(PortInUse) as caught:
        choose_ports(options(tmp_path, kafka_port=port), Ports())

    assert f"port {port} of 127.0.0.1 (stack.kafka_port) is in use by" in caught.value.message
    assert f"(pid {os.getpid()})" in caught.value.message
    assert "stack.kafka_port to another port, or to 0" in caught.value.remedy


def test_process_listens_or_not() -> None:
    with taken_port() as port:
        assert is_listening(port, os.getpid())
        assert not is_listening(port, 1)
    assert not is_listening(port, os.getpid())


def test_bound_port_without_a_listener_is_not_listening() -> None:
    with socket.socket() as bound:
        bound.bind((LOOPBACK, 0))

        assert not is_listening(bound.getsockname()[1], os.getpid())


def test_a_server_that_reuses_addresses_can_listen_on_a_port_that_was_looked_at() -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((LOOPBACK, 0))
        port = server.getsockname()[1]
        assert not is_listening(port, os.getpid())
        server.listen()

        assert is_listening(port, os.getpid())


def test_holder_of_a_free_port_is_unknown() -> None:
    with taken_port() as port:
        pass

    assert port_holder(port) == "a process that is gone by now, or doesn't listen"
