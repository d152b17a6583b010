"""The state of a node as one value, which the supervisor sends to the front."""

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from typing import Any

from strandline.node.shard.report import ProcessFigures, ShardReport
from strandline.node.status.processes import ProcessState, ProcessStatus, ShardProcessStatus


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node at one moment. `version` rises with each state that is published, and `settings` with each reload.
    `waits_for` is the reason why the shards are not known yet. `supervisor` has the figures of the supervisor's
    process, which started at `started_at`. `watchdog_feeds` counts the notifications to systemd's watchdog.
    `partitions` is the topic's number of partitions, None before it is known.
    """

    version: int = 0
    settings: int = 0
    shards: tuple[ShardProcessStatus, ...] = ()
    processes: tuple[ProcessStatus, ...] = ()
    waits_for: str = ""
    started_at: int = 0
    watchdog_feeds: int = 0
    supervisor: ProcessFigures | None = None
    partitions: int | None = None

    def to_fields(self) -> Mapping[str, Any]:
        """The fields of a frame's header, with values that orjson can write. `from_fields` is the inverse."""
        return {field.name: getattr(self, field.name) for field in dataclass_fields(self)}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> "NodeState":
        """Parse what `to_fields` of the same version returned. Raises `ValueError` for anything else."""
        try:
            supervisor, partitions = fields["supervisor"], fields["partitions"]
            return cls(
                int(fields["version"]),
                int(fields["settings"]),
                tuple(map(_shard, fields["shards"])),
                tuple(map(_process, fields["processes"])),
                str(fields["waits_for"]),
                int(fields["started_at"]),
                int(fields["watchdog_feeds"]),
                ProcessFigures(**supervisor) if supervisor is not None else None,
                int(partitions) if partitions is not None else None,
            )
        except (LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"not the state of a node: {type(error).__name__}: {error}") from error


def _shard(fields: Mapping[str, Any]) -> ShardProcessStatus:
    report = fields["report"]
    return ShardProcessStatus(
        **{
            **fields,
            "state": ProcessState(fields["state"]),
            "report": ShardReport.from_fields(dict(report)) if report is not None else None,
        }
    )


def _process(fields: Mapping[str, Any]) -> ProcessStatus:
    process = fields["process"]
    return ProcessStatus(
        **{
            **fields,
            "state": ProcessState(fields["state"]),
            "process": ProcessFigures(**process) if process is not None else None,
        }
    )
