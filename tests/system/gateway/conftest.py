"""Processes of the gateway."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from strandline.clock import SystemClock
from strandline.node.bench.gateway_process import GatewayProcess
from strandline.node.settings.writing import write_settings
from strandline.node.stack import Stack

StartGateway = Callable[..., GatewayProcess]


@pytest.fixture
def start_gateway(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StartGateway]:
    """`strandline gateway` for a topic, with further settings by section."""
    with ExitStack() as started:

        def start(
            topic: str,
            *extra: str,
            bootstrap: str | None = None,
            environ: dict[str, str] | None = None,
            **sections: dict[str, object],
        ) -> GatewayProcess:
            if bootstrap is None:
                # Here, because tests with their own Kafka do not need the shared servers.
                shared: Stack = request.getfixturevalue("stack")
                bootstrap = shared.kafka_bootstrap
            settings = {
                "kafka": {"bootstrap_servers": [bootstrap]},
                "dataset": {"name": topic, "kafka_retention": "7d"},
            }
            settings |= {"http": {"gateway_address": "127.0.0.1:0", **sections.pop("http", {})}, **sections}
            file = write_settings(tmp_path / "settings.toml", settings)
            process = GatewayProcess(file, tmp_path, SystemClock(), extra=extra, environ=environ)
            started.callback(process.kill)
            return process

        yield start
