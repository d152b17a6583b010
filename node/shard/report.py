"""What a shard's process tells about itself: a value that crosses to whoever watches it, as JSON."""

import json
import os
import resource
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from strandline.node.shard.running import RunningShard
from strandline.node.shard.status import Counters, Phase, Status


@dataclass(frozen=True, slots=True)
class ProcessFigures:
    """The process: its id, CPU seconds and memory in bytes."""

    pid: int
    cpu_seconds: float
    resident_bytes: int
    peak_resident_bytes: int


@dataclass(frozen=True, slots=True)
class BufferFigures:
    """The write buffer: what the open bucket holds, and how much of the memory for all unstored buckets is used."""

    series: int = 0
    samples: int = 0
    replaced: int = 0
    memory_bytes: int = 0
    spilled_bytes: int = 0
    budget_used: int = 0


@dataclass(frozen=True, slots=True)
class ShardReport:
    """A shard at one moment. `position` is the next offset that it reads, `checkpoint` the lowest one that is not
    stored, -1 if it was never read. `stages` has CPU seconds by stage.
    """

    status: Status
    process: ProcessFigures
    position: int | None = None
    checkpoint: int = -1
    keys: int = 0
    unstored_buckets: int = 0
    buffer: BufferFigures = BufferFigures()
    stages: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """For `from_json` elsewhere."""
        return json.dumps(asdict(self), allow_nan=False).encode()

    @classmethod
    def from_json(cls, document: bytes) -> "ShardReport":
        """What `to_json` of the same version wrote."""
        told: dict[str, Any] = json.loads(document)
        status = told.pop("status")
        counters, phase = Counters(**status.pop("counters")), Phase(status.pop("phase"))
        process, buffer = ProcessFigures(**told.pop("process")), BufferFigures(**told.pop("buffer"))
        return cls(Status(phase=phase, counters=counters, **status), process, buffer=buffer, **told)


def report_of(running: RunningShard) -> ShardReport:
    """A shard of this process, as it is now. Any thread may ask, also while the shard starts."""
    shard, process = running.shard, _process_figures()
    if shard is None:
        return ShardReport(running.status, process)
    buffer = shard.buffer.status()
    return ShardReport(
        running.status,
        process,
        position=shard.position,
        checkpoint=shard.view.lowest_checkpoint,
        keys=len(shard.index.table),
        unstored_buckets=len(shard.flusher.closed_buckets()),
        buffer=BufferFigures(
            series=buffer.series,
            samples=buffer.samples,
            replaced=buffer.replaced,
            memory_bytes=buffer.memory_bytes,
            spilled_bytes=buffer.spilled_bytes,
            budget_used=shard.memory.used,
        ),
        stages={stage.value: seconds for stage, seconds in shard.stages.seconds.items()},
    )


def _process_figures() -> ProcessFigures:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return ProcessFigures(os.getpid(), time.process_time(), pages * resource.getpagesize(), peak)
