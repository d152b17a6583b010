"""What a child process reports, as far as its keeper needs it: one value for shards, the front and the worker. Pure."""

from dataclasses import dataclass
from typing import Any

import orjson

from strandline.node.shard.report import ProcessFigures, ShardReport
from strandline.node.shard.status import Phase
from strandline.node.supervisor.liveness import Mark, Stage

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
    """What the front and the worker report: their process, how far they are, and the turns of their loop."""

    process: ProcessFigures
    stage: Stage
    turns: int

    def to_json(self) -> bytes:
        """For `from_json` in the supervisor."""
        return orjson.dumps(self)

    @classmethod
    def from_json(cls, document: bytes) -> "ProcessReport":
        """What `to_json` of the same version wrote."""
        fields: dict[str, Any] = orjson.loads(document)
        return cls(ProcessFigures(**fields["process"]), Stage(fields["stage"]), int(fields["turns"]))


@dataclass(frozen=True, slots=True)
class Heard:
    """One report. `stuck` names what makes no progress though the process reports. `fenced` concerns shards alone, and
    `shard` is the shard's whole report.
    """

    process: ProcessFigures
    stage: Stage
    mark: Mark
    stuck: str = ""
    fenced: bool = False
    shard: ShardReport | None = None


def heard_from_shard(document: bytes) -> Heard:
    """The report of a shard. Raises `ValueError`, `KeyError` or `TypeError` for what is not one."""
    report = ShardReport.from_json(document)
    return heard_of(report)


def heard_of(report: ShardReport) -> Heard:
    """The same, of a report that has been parsed."""
    phase, stuck = report.status.phase, report.status.stuck
    return Heard(
        report.process,
        # The reading loop's turns and CPU use say nothing about a thread that is stuck beside it.
        Stage.ENDING if stuck else _STAGES[phase],
        (phase.value, _STUCK if stuck else report.status.turns),
        stuck=stuck,
        fenced=phase is Phase.FENCED,
        shard=report,
    )


def heard_from_process(document: bytes) -> Heard:
    """The report of the front or the worker. Raises as `heard_from_shard` does."""
    report = ProcessReport.from_json(document)
    return Heard(report.process, report.stage, (report.stage.value, report.turns))
