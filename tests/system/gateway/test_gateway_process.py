"""The gateway as operators run it: as a process, with a real Kafka."""

import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from strandline.node.bench.gateway_process import GatewayProcess
from strandline.node.shard.kafka_admin import KafkaAdmin
from strandline.node.shard.kafka_topics import create_topic
from strandline.node.stack import Stack
from support.gateway_requests import request, write
from support.gateway_topics import GatewayTopic
from support.gateways import body_of, decoded, up
from support.real_kafka import TIMEOUT, eventually, fresh_topic, unused_address
from support.splitting import partition_of

pytestmark = pytest.mark.system

StartGateway = Callable[..., GatewayProcess]


@pytest.fixture
def topic(stack: Stack) -> GatewayTopic:
    return GatewayTopic(stack.kafka_bootstrap)


def test_writes_are_in_their_partitions_and_a_signal_stops_the_gateway_cleanly(
    topic: GatewayTopic, start_gateway: StartGateway
) -> None:
    gateway = start_gateway(topic.name)
    url = gateway.listening()
    assert gateway.output() == f"Taking remote writes at {url}/api/v1/write\n"
    assert write(url, body_of(*(up(number) for number in range(100)))).status == 204
    rows = decoded(topic.read())
    assert len(rows) == 100
    assert all(partition == partition_of(labels, 3) for partition, labels, _ in rows)
    metrics = request(f"{url}/metrics").text
    assert "strandline_gateway_samples_total 100.0\n" in metrics
    assert gateway.terminate() == 0
    assert gateway.status()["figures"]["in_flight_bytes"] == 0


def test_a_gateway_started_before_its_topic_reports_a_remedy_and_waits(
    stack: Stack, start_gateway: StartGateway
) -> None:
    name = fresh_topic()
    gateway = start_gateway(name)
    url = gateway.listening()
    assert f"there is no topic {name}" in gateway.log_text()
    assert "kafka-topics.sh --create" in gateway.log_text()
    ready, written = request(f"{url}/-/ready"), write(url, body_of(up(1)))
    assert (ready.status, written.status) == (503, 503)
    assert f"there is no topic {name}" in ready.text
    kafka = {"bootstrap.servers": stack.kafka_bootstrap}
    create_topic(kafka, name, partitions=2, replication=1, retention_ms=None)
    eventually(lambda: write(url, body_of(up(2))).status == 204)


def test_the_topic_is_created_on_request(stack: Stack, start_gateway: StartGateway) -> None:
    name = fresh_topic()
    assert write(start_gateway(name, "--create-topic", "5").listening(), body_of(up(1))).status == 204
    admin = KafkaAdmin({"bootstrap.servers": stack.kafka_bootstrap}, name)
    try:
        assert admin.identity().partitions == 5
        assert admin.settings()["message.timestamp.type"] == "LogAppendTime"
    finally:
        admin.close()


def test_a_record_limit_too_large_for_the_topic_is_an_error_at_the_start(
    topic: GatewayTopic, start_gateway: StartGateway
) -> None:
    gateway = start_gateway(topic.name, gateway={"max_record": "2m"})
    assert gateway.wait() == 1
    assert "max.message.bytes" in gateway.log_text()


def test_without_brokers_the_gateway_answers_503_with_the_reason(start_gateway: StartGateway) -> None:
    gateway = start_gateway("metrics", bootstrap=unused_address())
    url = gateway.listening()
    reply = write(url, body_of(up(1)))
    assert reply.status == 503
    assert int(reply.headers["Retry-After"]) > 0
    ready = request(f"{url}/-/ready")
    assert ready.status == 503
    assert "metrics can't be looked up" in ready.text
    assert request(f"{url}/-/healthy").status == 200
    assert gateway.terminate() == 0


def test_added_partitions_are_used(topic: GatewayTopic, start_gateway: StartGateway) -> None:
    gateway = start_gateway(topic.name, gateway={"partitions_refresh": "1s"})
    url = gateway.listening()
    body = body_of(*(up(number) for number in range(200)))
    assert write(url, body).status == 204
    topic.grow(5)
    gateway.wait_for("the new partitions are known", lambda status: status["figures"]["partitions"] == 5)
    assert write(url, body).status == 204
    rows = decoded(topic.read())
    assert len(rows) == 400
    assert {partition for partition, _, _ in rows} == set(range(5))


def test_a_recreated_topic_is_written_to(topic: GatewayTopic, start_gateway: StartGateway) -> None:
    gateway = start_gateway(topic.name, gateway={"partitions_refresh": "1s", "timeout": "3s"})
    url = gateway.listening()
    assert write(url, body_of(up(1, time=1))).status == 204
    topic.delete()
    gateway.wait_for("the topic is reported as missing", lambda status: "there is no topic" in status["trouble"])
    topic.make(2)
    gateway.wait_for(
        "the topic is found again", lambda status: not status["trouble"] and status["figures"]["partitions"] == 2
    )
    eventually(lambda: write(url, body_of(up(1, time=2))).status == 204)
    assert (2,) in {tuple(time for time, _ in samples) for _, _, samples in decoded(topic.read())}


def test_writes_require_the_token_and_a_reload_replaces_it(
    topic: GatewayTopic, start_gateway: StartGateway, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("the-first-token-of-this-test\n")
    token.chmod(0o600)
    gateway = start_gateway(topic.name, http={"write_token_file": str(token)})
    url = gateway.listening()
    body = body_of(up(1))
    assert write(url, body).status == 401
    assert write(url, body, Authorization="Bearer the-first-token-of-this-test").status == 204
    token.write_text("the-first-token-of-this-test\nanother-token-of-this-test\n")
    gateway.send(signal.SIGHUP)
    eventually(lambda: write(url, body, Authorization="Bearer another-token-of-this-test").status == 204)
    assert write(url, body, Authorization="Bearer the-first-token-of-this-test").status == 204, "both are valid"
    token.write_text("another-token-of-this-test\n")
    gateway.send(signal.SIGHUP)
    eventually(lambda: write(url, body, Authorization="Bearer the-first-token-of-this-test").status == 401)
    assert write(url, body, Authorization="Bearer another-token-of-this-test").status == 204
    assert "the-first-token" not in gateway.log_text()
    gateway.wait_for("refusals are counted", lambda status: status["figures"]["unauthorized"]["401"] == 2)


def test_systemd_is_notified_of_readiness_and_stop(
    topic: GatewayTopic, start_gateway: StartGateway, tmp_path: Path
) -> None:
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(address))
        listener.settimeout(TIMEOUT)
        gateway = start_gateway(topic.name, environ={"NOTIFY_SOCKET": str(address)})
        assert listener.recv(4096).startswith(b"READY=1\n")
        gateway.send(signal.SIGTERM)
        assert listener.recv(4096).startswith(b"STOPPING=1\n")
        assert gateway.wait() == 0
