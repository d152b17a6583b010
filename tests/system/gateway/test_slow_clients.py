"""Clients that occupy connections and memory of a real gateway, and a well-behaved sender at the same time."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

import pytest

from strandline.clock import SystemClock
from strandline.node.bench.gateway_process import GatewayProcess
from strandline.node.settings.writing import write_settings
from strandline.node.stack import Stack
from support.gateway_requests import Reply, request, write
from support.gateway_topics import GatewayTopic
from support.gateways import HEADERS, body_of, up
from support.real_kafka import TIMEOUT, eventually

pytestmark = pytest.mark.system

TOKEN = "a-token-of-a-well-behaved-sender"
SLOW, ANNOUNCED = 16, 16 << 20
ROOM, CONNECTIONS = 1 << 20, 20
"""Far less than the slow clients announce, and far fewer than the idle clients."""


@pytest.fixture(scope="module")
def gateway(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway with little memory, a low limit of connections and short timeouts."""
    folder = tmp_path_factory.mktemp("gateway")
    token = folder / "token"
    token.write_text(f"{TOKEN}\n")
    token.chmod(0o600)
    settings = {
        "kafka": {"bootstrap_servers": [stack.kafka_bootstrap]},
        "dataset": {"name": GatewayTopic(stack.kafka_bootstrap).name, "kafka_retention": "7d"},
        "http": {
            "gateway_address": "127.0.0.1:0",
            "write_token_file": str(token),
            "connections": CONNECTIONS,
            "request_timeout": "3s",
        },
        # A request without memory gets 503 after a second, before the slow clients are disconnected.
        "gateway": {"max_in_flight": "1m", "timeout": "4s"},
    }
    process = GatewayProcess(write_settings(folder / "settings.toml", settings), folder, SystemClock())
    try:
        process.listening()
        yield process
    finally:
        process.kill()


@contextmanager
def connections(gateway: GatewayProcess, count: int) -> Iterator[list[socket.socket]]:
    where = urlsplit(gateway.listening())
    with ExitStack() as opened:
        address = (where.hostname, where.port)
        yield [opened.enter_context(socket.create_connection(address, TIMEOUT)) for _ in range(count)]


def announce(client: socket.socket, first: bytes) -> None:
    """Begin a large but permitted request."""
    fields = {**HEADERS, "Host": "gateway", "Authorization": f"Bearer {TOKEN}", "Content-Length": str(ANNOUNCED)}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    client.sendall(f"POST /api/v1/write HTTP/1.1\r\n{head}\r\n".encode() + first)


def send_small_request(gateway: GatewayProcess, number: int) -> Reply:
    return write(gateway.listening(), body_of(up(number)), Authorization=f"Bearer {TOKEN}")


def rest_of(client: socket.socket) -> bytes:
    """The answer, up to the end of the connection."""
    answer = b""
    with suppress(ConnectionError):
        while more := client.recv(1 << 16):
            answer += more
    return answer


def wait_until_arriving(gateway: GatewayProcess, least: int) -> None:
    gateway.wait_for("bytes of slow clients have arrived", lambda status: status["figures"]["arriving_bytes"] >= least)


def test_clients_that_announce_large_bodies_and_send_slowly_do_not_block_a_well_behaved_one(
    gateway: GatewayProcess,
) -> None:
    with connections(gateway, SLOW) as slow:
        for client in slow:
            announce(client, b"\x00")
        wait_until_arriving(gateway, SLOW)
        for number in range(20):
            assert send_small_request(gateway, number).status == 204
            with suppress(ConnectionError):
                slow[number % SLOW].sendall(b"\x00")
        # They are disconnected with an answer that permits a retry, unless they had just sent something.
        assert {rest_of(client)[:13] for client in slow} <= {b"HTTP/1.1 503 ", b""}
    gateway.wait_for("their bytes are released", lambda status: status["figures"]["in_flight_bytes"] == 0)


def test_clients_that_stall_with_all_memory_are_reported_as_the_cause_until_disconnected(
    gateway: GatewayProcess,
) -> None:
    with connections(gateway, SLOW) as slow:
        for client in slow:
            announce(client, bytes(ROOM // SLOW - (2 << 10)))
        wait_until_arriving(gateway, ROOM - SLOW * (4 << 10))
        large = body_of(*(up(number) for number in range(20_000)))
        replies = [write(gateway.listening(), large, Authorization=f"Bearer {TOKEN}")]
        eventually(lambda: replies.append(send_small_request(gateway, 1)) or replies[-1].status == 204)
    refused = replies[:-1]
    assert refused
    assert all("requests that are still arriving hold" in reply.text for reply in refused)
    assert all(reply.status == 503 and "Kafka is not the cause" in reply.text for reply in refused)


def test_idle_clients_without_a_token_do_not_block_health_checks_and_are_later_disconnected(
    gateway: GatewayProcess,
) -> None:
    url = gateway.listening()
    with connections(gateway, 300):
        for _ in range(5):
            assert request(f"{url}/-/healthy").status == 200
            assert request(f"{url}/-/ready").status == 200
        eventually(lambda: send_small_request(gateway, 1).status == 204)
