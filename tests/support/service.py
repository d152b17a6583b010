"""A gateway and a node on a real stack, started with their commands."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from strandline.clock import SystemClock, wait_until
from strandline.node.demo.programs import Program
from strandline.node.settings.writing import write_settings
from strandline.node.stack import Stack
from strandline.node.stack.ports import LOOPBACK, free_ports
from support.prometheus import PrometheusClient


@dataclass
class Service:
    """A running gateway and node."""

    settings: Path
    node: PrometheusClient
    gateway: PrometheusClient
    environ: Mapping[str, str]
    node_program: Program = field(init=False)

    def start_node(self) -> None:
        """Start the node's process, without waiting until it is ready."""
        log = self.settings.parent / "node.log"
        self.node_program = Program(["node", "--config", str(self.settings)], log, environ=self.environ)

    def end_node(self) -> None:
        """Stop the node's current process."""
        self.node_program.end()

    def wait_until_ready(self, timeout: float = 180) -> None:
        """Wait until all shards are ready."""
        _wait_until_ready(self.node_program, self.node, timeout)


def _wait_until_ready(program: Program, client: PrometheusClient, timeout: float) -> None:
    wait_until(lambda: client.is_ready() or program.exit_code is not None, timeout=timeout, clock=SystemClock())
    assert client.is_ready(), program.log_text()[-2000:]


@contextmanager
def service(
    stack: Stack,
    folder: Path,
    *,
    partitions: int = 2,
    make_client: Callable[[str], PrometheusClient] = PrometheusClient,
    **sections: Mapping[str, object],
) -> Iterator[Service]:
    """Its own dataset with short buckets. `make_client` creates the client for an address."""
    node, gateway = (f"{LOOPBACK}:{port}" for port in free_ports(2))
    name = f"service-{uuid4().hex[:8]}"
    chosen: dict[str, dict[str, object]] = {
        "dataset": {
            "name": name,
            "flush_interval": "10s",
            "grace": "1s",
            "retention": "2h",
            "stale_after": "1h",
            "kafka_retention": "2h",
            "history": "0s",
        },
        "shard": {"data_dir": str(folder / "data"), "flush_spread": 0},
        "http": {"node_address": node, "gateway_address": gateway},
        "kafka": {"bootstrap_servers": [stack.kafka_bootstrap]},
        "cassandra": {
            "contact_points": [stack.cassandra_host],
            "port": stack.cassandra_port,
            "keyspace": "service",
            "keyspace_copies": 1,
        },
    }
    for section, values in sections.items():
        chosen.setdefault(section, {}).update(values)
    folder.mkdir(parents=True, exist_ok=True)
    settings = write_settings(folder / "strandline.toml", chosen)
    # Without this machine's own settings.
    environ = {key: value for key, value in os.environ.items() if not key.startswith("STRANDLINE_")}
    made = Service(settings, make_client(node), make_client(gateway), environ)
    with ExitStack() as running:
        arguments = ["gateway", "--config", str(settings), "--create-topic", str(partitions)]
        program = Program(arguments, folder / "gateway.log", environ=environ)
        running.callback(program.end)
        _wait_until_ready(program, made.gateway, 180)
        made.start_node()
        running.callback(made.end_node)
        made.wait_until_ready()
        yield made


def eventually(condition: object, what: str, timeout: float = 120) -> None:
    """Wait until the condition holds."""
    assert callable(condition)
    assert wait_until(condition, timeout=timeout, clock=SystemClock(), poll=0.2), f"not within {timeout} s: {what}"
