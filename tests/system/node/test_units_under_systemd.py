"""The units, run by a real systemd: their sandboxes, notifications, restarts, watchdog and stops."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from strandline.clock import SystemClock
from strandline.node.stack import Stack
from strandline.node.stack.ports import LOOPBACK, free_ports
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress
from support.deployment import Deployment
from support.installed_units import GATEWAY, LEFT_OUT, NODE, Units, installed_units
from support.prometheus import PrometheusClient

pytestmark = pytest.mark.system

HANG_AFTER_S = 5
THE_NODE, THE_GATEWAY = f"{NODE}@metrics", f"{GATEWAY}@metrics"


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Units]:
    with installed_units(tmp_path_factory.mktemp("machine")) as machine:
        yield machine


@pytest.fixture
def addresses() -> list[str]:
    return [f"{LOOPBACK}:{port}" for port in free_ports(2)]


@pytest.fixture
def replay() -> str:
    """How the node reads missed records."""
    return "spark"


@pytest.fixture
def deployment(stack: Stack, tmp_path: Path, units: Units, addresses: list[str], replay: str) -> Iterator[Deployment]:
    """A dataset, and the instance `metrics` for it, whose folders are those of the units."""
    node, gateway = addresses
    deployed = Deployment(
        stack,
        tmp_path,
        partitions=2,
        node={"hang_after": f"{HANG_AFTER_S}s"},
        replay={"mode": replay},
        kafka={"request_timeout": "4s"},
        http={"node_address": node, "gateway_address": gateway},
    )
    lines = deployed.settings.read_text().splitlines(keepends=True)
    units.configure("metrics", "".join(line for line in lines if not line.startswith("data_dir")))
    with closing(deployed.store):
        yield deployed
    units.done("stop", THE_NODE, THE_GATEWAY)


def is_active_again(units: Units, restarts: int) -> bool:
    properties = units.properties(THE_NODE)
    return properties["ActiveState"] == "active" and int(properties["NRestarts"]) >= restarts


def test_a_node_and_a_gateway_work_inside_their_sandboxes(
    units: Units, deployment: Deployment, addresses: list[str]
) -> None:
    node, gateway = map(PrometheusClient, addresses)
    deployment.produce_hours(2, records=5, series=50)
    # It returns when both have notified readiness: the replay on Spark is over by then.
    units.done("start", THE_GATEWAY, THE_NODE)
    deployment.check_stored(before=deployment.this_hour)
    properties = units.properties(THE_NODE)
    assert (properties["StatusText"], properties["NRestarts"]) == ("2 of 2 shards active", "0")

    now = SystemClock().now_ms()
    series = [Series([("__name__", "written"), ("number", str(number))], [(now, 1.0)]) for number in range(100)]
    gateway.post("/api/v1/write", compress(encode_request(series)))
    units.until(lambda: len(node.data("/api/v1/series", match="written")) == len(series))
    units.done("reload", THE_GATEWAY, THE_NODE)
    assert units.properties(THE_NODE)["MainPID"] == properties["MainPID"]

    units.done("kill", "--signal=KILL", "--kill-who=main", THE_NODE)
    units.until(lambda: is_active_again(units, 1))
    assert len(node.query("written", now)) == len(series)

    units.done("stop", THE_NODE, THE_GATEWAY)
    for unit in (THE_NODE, THE_GATEWAY):
        properties = units.properties(unit)
        assert (properties["ActiveState"], properties["Result"], properties["ExecMainStatus"]) == (
            "inactive",
            "success",
            "0",
        )
    kept, cache = units.root / "var/lib/strandline/node-metrics", units.root / "var/cache/strandline/node-metrics"
    assert {path.name for path in (kept / f"strandline/shards/{deployment.name}").iterdir()} == {"0", "1"}
    assert any((cache / "numba").glob(f"*/{LEFT_OUT}*"))


# The test above covers Spark in the sandbox.
@pytest.mark.parametrize("replay", ["direct"])
def test_the_watchdog_restarts_a_suspended_node(units: Units, deployment: Deployment) -> None:
    # With a pause that is long enough to read the result.
    units.change(NODE, f"[Service]\nWatchdogSec={2 * HANG_AFTER_S}s\nRestartSec=2s\n")
    deployment.produce_hours(1, records=1, series=1)
    units.done("start", THE_NODE)
    units.done("kill", "--signal=STOP", "--kill-who=main", THE_NODE)
    units.until(lambda: units.properties(THE_NODE)["Result"] == "watchdog")
    units.until(lambda: is_active_again(units, 1))


def test_invalid_settings_are_reported_without_a_restart(units: Units) -> None:
    units.configure("wrong", "[node]\nshards = 'some'\n")
    assert units.systemd.control("start", f"{NODE}@wrong").returncode != 0
    properties = units.properties(f"{NODE}@wrong")
    assert (properties["Result"], properties["ExecMainStatus"], properties["NRestarts"]) == ("exit-code", "2", "0")
    assert "node.shards" in units.logs()
