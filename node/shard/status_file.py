"""A file with a shard's status, for monitoring its process."""

import json
import os
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import structlog

from strandline.clock import Clock
from strandline.errors import Fatal
from strandline.node.shard.running import RunningShard

_EVERY_S = 0.5
_LOG = structlog.get_logger(__name__)


class StatusFileUnwritable(Fatal):
    """The status file can't be written."""


def status_of(running: RunningShard) -> dict[str, Any]:
    """A shard's status as a JSON document: phase, counters, buffer, and CPU seconds of the process and by stage."""
    shard = running.shard
    document: dict[str, Any] = asdict(running.status) | {
        "pid": os.getpid(),
        "cpu_seconds": time.process_time(),
        "peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "resident_bytes": _resident_bytes(),
        "position": None,
        "checkpoint": -1,
        "keys": 0,
    }
    if running.parts.store_health is not None:
        document["store"] = asdict(running.parts.store_health.figures())
    if shard is not None:
        document |= {
            "position": shard.position,
            "checkpoint": shard.view.lowest_checkpoint,
            "keys": len(shard.index.table),
            "buffer": asdict(shard.buffer.status()) | {"budget_used": shard.memory.used},
            "unstored_buckets": len(shard.flusher.closed_buckets()),
            "stages": {stage.value: seconds for stage, seconds in shard.stages.seconds.items()},
        }
    return document


class StatusFile:
    """A file with a shard's status, replaced atomically."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path, self._clock = path, clock

    @contextmanager
    def updating(self, running: RunningShard) -> Iterator[None]:
        """Update the file from a separate thread while the shard runs, and once more at the end.

        Raises `StatusFileUnwritable` only at the beginning: a full disk must neither end a shard nor hide why it ended.
        """
        self.write(running)
        ended = threading.Event()

        def keep() -> None:
            while not ended.wait(_EVERY_S):
                self._write_or_log(running)

        keeper = threading.Thread(target=keep, name="status", daemon=True)
        keeper.start()
        try:
            yield
        finally:
            ended.set()
            keeper.join()
            self._write_or_log(running)

    def write(self, running: RunningShard) -> None:
        """Write it now. Raises `StatusFileUnwritable`."""
        document = json.dumps(status_of(running) | {"written_at": self._clock.now_ms()}, allow_nan=False)
        unfinished = self._path.with_name(self._path.name + ".unfinished")
        try:
            unfinished.write_text(document, encoding="utf-8")
            unfinished.replace(self._path)
        except OSError as error:
            raise StatusFileUnwritable(
                f"the status file {self._path} can't be written: {error.strerror}",
                remedy="Name a file in an existing, writable folder",
            ) from error

    def _write_or_log(self, running: RunningShard) -> None:
        try:
            self.write(running)
        except StatusFileUnwritable as error:
            _LOG.warning("the status file could not be updated", error=str(error))


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()
