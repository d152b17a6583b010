"""A real Prometheus that scrapes itself and writes through the gateway."""

from collections.abc import Callable
from pathlib import Path

import pytest

from strandline.node.bench.gateway_process import GatewayProcess
from strandline.node.stack import Stack
from support.gateway_topics import GatewayTopic
from support.prometheus import prometheus
from support.prometheus_writes import compare, samples_of, scrapes_in, writing_to
from support.real_kafka import eventually

pytestmark = pytest.mark.system

StartGateway = Callable[..., GatewayProcess]


@pytest.fixture
def topic(stack: Stack) -> GatewayTopic:
    return GatewayTopic(stack.kafka_bootstrap)


def test_samples_in_the_topic_equal_those_in_prometheus_itself(
    topic: GatewayTopic, start_gateway: StartGateway, tmp_path: Path
) -> None:
    gateway = start_gateway(topic.name)
    with prometheus(tmp_path / "prometheus", writing_to(gateway.listening())) as writer:
        eventually(lambda: scrapes_in(topic) >= 4)
        compare(topic, writer, 4)
        for failed in ("samples", "metadata"):
            (count,) = samples_of(writer, f"prometheus_remote_storage_{failed}_failed_total").values()
            assert set(count.values()) == {0.0}
    figures = gateway.wait_for("metadata is counted", lambda status: status["figures"]["skipped_metadata"] > 0)[
        "figures"
    ]
    assert {outcome for outcome, count in figures["requests"].items() if count} == {"written"}
    assert figures["dropped_series"] == {}
