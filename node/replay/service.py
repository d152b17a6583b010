"""Who sees to it that a worker does a shard's replay jobs: the node's supervisor, or the shard's own process."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog

from strandline.clock import Clock
from strandline.errors import Fatal
from strandline.node.settings.sections import Settings
from strandline.node.shard.folder_lock import is_locked
from strandline.node.tether import tethered

_LOG = structlog.get_logger(__name__)
# A worker that ended though there are jobs is started again, first after so long, then after twice as long ...
_LEAST_PAUSE_S, _MOST_PAUSE_S = 2.0, 60.0
_MOST_FAILURES = 10
_QUIET_PAUSE_S = 10.0
_END_S = 15.0
_STDERR = 2


class NodeWorker:
    """The `ReplayService` of a shard in a node: the supervisor sees in the shard's report that there are jobs, and
    keeps one worker for all shards.
    """

    def keep_working(self) -> None:
        """Nothing to do: see above."""

    def close(self) -> None:
        """The worker is not this shard's: others may need it."""


class WorkerFails(Fatal):
    """No worker comes to work."""


class WorkerProcess:
    """The `ReplayService` of a shard without a node: runs `strandline recover work`. To be called from one thread,
    which lives as long as the worker should: it is killed with it, whatever ends this process.
    """

    def __init__(self, config: Path | None, place: Path, clock: Clock, *, command: Sequence[str] | None = None) -> None:
        """`place` is the folder that the one worker of a node holds. `command` is another program in the worker's
        place, for tests.
        """
        self._command = list(command) if command is not None else _worker_command(config)
        self._place, self._clock = place, clock
        self._process: subprocess.Popen[bytes] | None = None
        self._failures = 0
        self._found_nothing = False
        self._not_before = float("-inf")

    @property
    def pid(self) -> int | None:
        """The worker's process id, while one runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def keep_working(self) -> None:
        """As the protocol says. Raises `WorkerFails` if one after the other ends with an error."""
        if self.pid is not None:
            return
        now = self._clock.monotonic()
        if self._process is not None:
            self._found_nothing = self._process.returncode == 0
            self._not_before = now + self._pause_after(self._process.returncode)
            self._process = None
        if now >= self._not_before:
            # A worker that only finds another one at work costs two seconds of CPU time.
            if self._found_nothing and is_locked(self._place):
                self._not_before = now + _QUIET_PAUSE_S
                return
            # What it says is no part of our own result.
            self._process = subprocess.Popen(tethered(self._command), stdin=subprocess.DEVNULL, stdout=_STDERR)

    def _pause_after(self, code: int) -> float:
        if code == 0:
            # It found nothing to do, or another worker of this node at work.
            self._failures = 0
            return _QUIET_PAUSE_S
        self._failures += 1
        if self._failures > _MOST_FAILURES:
            raise WorkerFails(
                f"the worker of the replay has ended {self._failures} times in a row, at last with exit code {code}",
                remedy='See what it said; `strandline recover work` runs it by hand, and replay.mode = "direct" does'
                " without it",
            )
        pause = min(_MOST_PAUSE_S, _LEAST_PAUSE_S * (1 << (self._failures - 1)))
        _LOG.warning("the replay's worker has ended", exit_code=code, again_in_s=pause)
        return pause

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def worker_folder(settings: Settings, environ: Mapping[str, str]) -> Path:
    """The folder that the one worker of this node holds while it is at work."""
    return settings.shard.data_folder(environ) / "replay"


def _worker_command(config: Path | None) -> list[str]:
    script = Path(sys.executable).with_name("strandline")
    given = ["--config", str(config.resolve())] if config is not None else []
    return [sys.executable, str(script), "recover", "work", *given]
