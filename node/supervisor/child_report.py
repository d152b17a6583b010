"""The report of a child process, as its keeper uses it: the same value for shards, the front and the worker. Pure."""

from dataclasses import dataclass
from typing import Any

import orjson

from strandline.node.shard.report import ProcessFigures, ShardReport
from strandline.node.shard.status import Phase
from strandline.node.supervisor.liveness import LoopProgress, Stage

_STAGES = {
    Phase.ACQUIRING: Stage.STARTING,
    Phase.RECOVERING_INDEX: Stage.STARTING,
    Phase.REPLAYING: Stage.BEHIND,
    Phase.CATCHING_UP: Stage.BEHIND,
    Phase.ACTIVE: Stage.STEADY,
    Phase.FENCED: Stage.ENDING,
    Phase.FAILED: Stage.ENDING,
    Phase.STOPPED: Stage.ENDING,
}
_STUCK = -1


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """The report of the front or the worker. `iterations` counts those of its loop."""

    process: ProcessFigures
    stage: Stage
    iterations: int

    def to_json(self) -> bytes:
        """For `from_json` in the supervisor."""
        return orjson.dumps(self)

    @classmethod
    def from_json(cls, document: bytes) -> "ProcessReport":
        """Parse what `to_json` of the same version wrote."""
        fields: dict[str, Any] = orjson.loads(document)
        return cls(ProcessFigures(**fields["process"]), Stage(fields["stage"]), int(fields["iterations"]))


@dataclass(frozen=True, slots=True)
class ChildReport:
    """One report. `stuck` names the part that makes no progress although the process reports; empty if there is none.
    Only shards have `fenced` and `shard`, the full report.
    """

    process: ProcessFigures
    stage: Stage
    progress: LoopProgress
    stuck: str = ""
    fenced: bool = False
    shard: ShardReport | None = None


def parse_shard_report(document: bytes) -> ChildReport:
    """Parse the report of a shard. Raises `ValueError`, `KeyError` or `TypeError` if it is not one."""
    report = ShardReport.from_json(document)
    return child_report(report)


def child_report(report: ShardReport) -> ChildReport:
    """What the keeper needs of a shard's report."""
    phase, stuck = report.status.phase, report.status.stuck
    return ChildReport(
        report.process,
        # Neither the iterations of the reading loop nor CPU use reveal that another thread of the shard is stuck.
        Stage.ENDING if stuck else _STAGES[phase],
        (phase.value, _STUCK if stuck else report.status.turns),
        stuck=stuck,
        fenced=phase is Phase.FENCED,
        shard=report,
    )


def parse_process_report(document: bytes) -> ChildReport:
    """Parse the report of the front or the worker. Raises the same errors as `parse_shard_report`."""
    report = ProcessReport.from_json(document)
    return ChildReport(report.process, report.stage, (report.stage.value, report.iterations))
