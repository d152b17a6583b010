"""The node's state, as the supervisor sends it to the front."""

from typing import Any

import orjson
import pytest

from strandline.node.shard.report import ProcessFigures
from strandline.node.status.processes import FRONT, WORKER, ProcessState, ProcessStatus, ShardProcessStatus
from strandline.node.supervisor.node_state import NodeState
from support.full_figures import full_report

pytestmark = pytest.mark.unit

FIGURES = ProcessFigures(4711, 12.5, 1000, 2000)
FULL = NodeState(
    7,
    3,
    (
        ShardProcessStatus(0, ProcessState.RUNNING, 4000, 2, report=full_report()),
        ShardProcessStatus(
            5, ProcessState.WAITING, restarts=1, starts_in_s=2.5, exit_code=-9, reason="was ended by SIGKILL"
        ),
    ),
    (
        ProcessStatus(FRONT, ProcessState.RUNNING, 4001, process=FIGURES),
        ProcessStatus(WORKER, ProcessState.DOWN, restarts=5, exit_code=1, reason="no Java"),
    ),
    "no broker answers",
    1_794_800_000_000,
    12,
    FIGURES,
)


def over_the_wire(state: NodeState) -> Any:
    return orjson.loads(orjson.dumps(state.to_fields()))


@pytest.mark.parametrize("state", [NodeState(), FULL])
def test_a_state_is_received_as_it_was_sent(state: NodeState) -> None:
    assert NodeState.from_fields(over_the_wire(state)) == state


@pytest.mark.parametrize(
    "damage",
    [
        lambda fields: fields.pop("shards"),
        lambda fields: fields.update(shards=[{}]),
        lambda fields: fields["shards"][0].update(state="asleep"),
        lambda fields: fields["shards"][0].update(new_field=1),
        lambda fields: fields["shards"][0]["report"].update(status=None),
        lambda fields: fields.update(processes=[7]),
        lambda fields: fields.update(version="x"),
        lambda fields: fields.update(supervisor={"pid": 1}),
    ],
)
def test_an_invalid_state_is_an_expected_error(damage: Any) -> None:
    fields = over_the_wire(FULL)
    damage(fields)
    with pytest.raises(ValueError, match=r"state|asleep|invalid literal"):
        NodeState.from_fields(fields)
