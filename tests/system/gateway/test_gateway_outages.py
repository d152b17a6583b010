"""The gateway while its Kafka hangs, stops and returns. It uses its own Kafka, because other tests must not be
affected.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from strandline.node.bench.gateway_process import GatewayProcess
from strandline.node.stack import StackOptions
from support.gateway_requests import WriteInProgress, is_ready, wait_until_in_flight, write
from support.gateway_topics import GatewayTopic
from support.gateways import body_of, decoded, up
from support.own_kafka import OwnKafka, with_lasting_session
from support.prometheus import prometheus
from support.prometheus_writes import compare, scrapes_in, writing_to
from support.real_kafka import eventually

pytestmark = pytest.mark.system

StartGateway = Callable[..., GatewayProcess]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnKafka]:
    options = StackOptions(tmp_path_factory.mktemp("gateway-kafka") / "state")
    with closing(OwnKafka(with_lasting_session(options))) as running:
        yield running


@pytest.fixture
def topic(kafka: OwnKafka) -> GatewayTopic:
    return GatewayTopic(kafka.bootstrap)


@pytest.fixture
def start_gateway(start_gateway: StartGateway, kafka: OwnKafka) -> StartGateway:
    return lambda *arguments, **options: start_gateway(*arguments, bootstrap=kafka.bootstrap, **options)


def test_the_gateway_survives_a_stop_and_restart_of_kafka(
    kafka: OwnKafka, topic: GatewayTopic, start_gateway: StartGateway
) -> None:
    gateway = start_gateway(topic.name, gateway={"timeout": "3s"})
    url = gateway.listening()
    assert write(url, body_of(up(1, time=1))).status == 204
    kafka.stop()
    try:
        assert write(url, body_of(up(1, time=2))).status == 503
        eventually(lambda: not is_ready(url))
        # From now on it does not even wait for the timeout.
        assert "can't be looked up" in write(url, body_of(up(1, time=3))).text
    finally:
        kafka.start()
    eventually(lambda: is_ready(url))
    assert write(url, body_of(up(1, time=4))).status == 204
    times = {samples[0][0] for _, _, samples in decoded(topic.read())}
    assert {1, 4} <= times
    assert gateway.terminate() == 0


def test_hung_brokers_are_noticed_and_writes_wait_for_them(
    kafka: OwnKafka, topic: GatewayTopic, start_gateway: StartGateway
) -> None:
    gateway = start_gateway(topic.name, gateway={"timeout": "3s"})
    url = gateway.listening()
    assert write(url, body_of(up(1))).status == 204
    with kafka.hanging():
        reply = write(url, body_of(up(2)))
        assert reply.status == 503
        assert "Kafka" in reply.text
        eventually(lambda: not is_ready(url))
    eventually(lambda: is_ready(url))
    assert write(url, body_of(up(3))).status == 204
    gateway.wait_for("nothing is in flight", lambda status: status["figures"]["in_flight_bytes"] == 0)


def test_a_stop_waits_for_requests_in_flight(kafka: OwnKafka, topic: GatewayTopic, start_gateway: StartGateway) -> None:
    gateway = start_gateway(topic.name)
    url = gateway.listening()
    assert write(url, body_of(up(1))).status == 204
    with kafka.hanging():
        begun = WriteInProgress(url, body_of(up(2)))
        wait_until_in_flight(gateway)
        gateway.send(signal.SIGTERM)
        eventually(lambda: '"stopping"' in gateway.log_text())
    assert begun.wait_for_reply().status == 204
    assert gateway.wait() == 0
    assert len(decoded(topic.read())) == 2


def test_a_second_signal_ends_the_gateway_immediately(
    kafka: OwnKafka, topic: GatewayTopic, start_gateway: StartGateway
) -> None:
    gateway = start_gateway(topic.name)
    url = gateway.listening()
    with kafka.hanging():
        WriteInProgress(url, body_of(up(1)))
        wait_until_in_flight(gateway)
        gateway.send(signal.SIGTERM)
        eventually(lambda: '"stopping"' in gateway.log_text())
        gateway.send(signal.SIGINT)
        assert gateway.wait() == -signal.SIGINT


def test_writes_that_time_out_are_retried_and_nothing_is_missing(
    kafka: OwnKafka, topic: GatewayTopic, start_gateway: StartGateway, tmp_path: Path
) -> None:
    gateway = start_gateway(topic.name, gateway={"timeout": "1s"})
    with prometheus(tmp_path / "prometheus", writing_to(gateway.listening())) as writer:
        eventually(lambda: scrapes_in(topic) >= 2)
        with kafka.hanging():
            gateway.wait_for(
                "requests were answered with kafka-unavailable",
                lambda status: unavailable_count(status["figures"]["requests"]) >= 2,
            )
        before = scrapes_in(topic)
        eventually(lambda: scrapes_in(topic) >= before + 3)
        compare(topic, writer, before + 3)


def unavailable_count(requests: dict[str, int]) -> int:
    return requests["kafka-unavailable"]
