"""The record of a running stack: `stack.json` in its state folder.

The record has addresses and processes. Whether the stack runs follows only from the state folder's lock, because a
keeper that was killed can't update its record.
"""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Self

from strandline.node.stack.ports import Ports
from strandline.node.stack.process import ProcessIdentity

FORMAT = 1


class StackState(StrEnum):
    """The state that the keeper recorded last."""

    STARTING = "starting"
    UP = "up"
    STOPPING = "stopping"
    DOWN = "down"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """One server: its process (None before its start), its version and its log."""

    name: str
    process: ProcessIdentity | None
    version: str
    log: str


@dataclass(frozen=True, slots=True)
class StackRecord:
    """The stack as of its last step. `failure` is the error with which it ended; empty if it was stopped."""

    state: StackState
    keeper: ProcessIdentity
    started_at_ms: int
    ports: Ports
    servers: tuple[ServerRecord, ...] = ()
    failure: str = ""

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self | None:
        """Parse a record; None if it is incomplete or has another format."""
        try:
            fields = json.loads(text)
            if fields["format"] != FORMAT:
                return None
            return cls(
                state=StackState(fields["state"]),
                keeper=ProcessIdentity(**fields["keeper"]),
                started_at_ms=int(fields["started_at_ms"]),
                ports=Ports(**fields["ports"]),
                servers=tuple(
                    ServerRecord(
                        name=server["name"],
                        process=ProcessIdentity(**server["process"]) if server["process"] else None,
                        version=server["version"],
                        log=server["log"],
                    )
                    for server in fields["servers"]
                ),
                failure=fields["failure"],
            )
        except (ValueError, KeyError, TypeError):
            return None
