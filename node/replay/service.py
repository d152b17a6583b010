"""Starts workers for a shard's replay jobs: by the node's supervisor, or by the shard's own process."""

import os
import subprocess
import sys
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog

from strandline.clock import Clock
from strandline.disk import DiskFull, is_nearly_full
from strandline.errors import Fatal
from strandline.node.exit_reason import MAX_STDOUT_BYTES, ExitReason, exit_reason
from strandline.node.settings.sections import Settings
from strandline.node.shard.folder_lock import is_locked
from strandline.node.tether import tethered

_LOG = structlog.get_logger(__name__)
# Backoff of restarts of a worker that ended although there are jobs. Doubled after each failure.
_MIN_PAUSE_S, _MAX_PAUSE_S = 2.0, 60.0
_MAX_FAILURES = 10
_IDLE_PAUSE_S = 10.0
_STOP_TIMEOUT_S = 15.0


class NodeWorker:
    """The `ReplayService` of a shard in a node: the shard's report shows that there are jobs, and the supervisor runs
    one worker for all shards.
    """

    def ensure_worker(self) -> None:
        """Nothing to do: the supervisor starts the worker."""

    def close(self) -> None:
        """Nothing to do: other shards may need the worker."""


class WorkerFails(Fatal):
    """Workers keep failing."""


class WorkerProcess:
    """The `ReplayService` of a shard without a node: runs `strandline recover work`. Must be used by one thread. The
    worker is tethered to that thread and killed when it ends.
    """

    def __init__(
        self, config: Path | None, folder: Path, clock: Clock, *, command: Sequence[str] | None = None
    ) -> None:
        """`folder` is the folder that a running worker of this node locks. `command` replaces the worker in tests."""
        self._command = list(command) if command is not None else _worker_command(config)
        self._folder, self._clock = folder, clock
        self._process: subprocess.Popen[bytes] | None = None
        # The worker's stdout goes to memory, because the disk may be full, and is not part of this command's output.
        self._stdout = os.memfd_create("strandline-worker", os.MFD_CLOEXEC)
        weakref.finalize(self, os.close, self._stdout)
        # Consecutive failures with fatal and with retryable errors.
        self._failures = self._retryable_failures = 0
        self._full_disk = ""
        self._was_idle = False
        self._not_before = float("-inf")

    @property
    def pid(self) -> int | None:
        """The worker's process id, while one runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def ensure_worker(self) -> None:
        """Start a worker unless one is running or the backoff has not passed. Raises `WorkerFails` after too many
        consecutive fatal errors. Retryable errors are retried without limit, as in a node.
        """
        if self.pid is not None:
            return
        now = self._clock.monotonic()
        if self._process is not None:
            self._was_idle = self._process.returncode == 0
            self._not_before = now + self._pause_after(self._process.returncode, self._exit_reason())
            self._process = None
        if now >= self._not_before and not self._is_disk_full():
            # Starting a worker that finds the folder locked would cost two seconds of CPU time.
            if self._was_idle and self._is_folder_locked():
                self._not_before = now + _IDLE_PAUSE_S
                return
            os.ftruncate(self._stdout, 0)
            os.lseek(self._stdout, 0, os.SEEK_SET)
            self._process = subprocess.Popen(tethered(self._command), stdin=subprocess.DEVNULL, stdout=self._stdout)

    def _pause_after(self, code: int, reason: ExitReason) -> float:
        if code == 0:
            # It found no jobs, or another worker of this node is running.
            self._failures = self._retryable_failures = 0
            return _IDLE_PAUSE_S
        if reason.retryable:
            self._retryable_failures += 1
        else:
            self._failures += 1
        if self._failures > _MAX_FAILURES:
            raise WorkerFails(
                f"the replay worker has failed {self._failures} times in a row, last with exit code {code}"
                + (f": {reason.message}" if reason.message else ""),
                remedy='See its log. `strandline recover work` runs it manually; with replay.mode = "direct" it is not'
                " needed",
            )
        self._full_disk = reason.full_disk
        pause = min(_MAX_PAUSE_S, _MIN_PAUSE_S * 2.0 ** min(self._failures + self._retryable_failures - 1, 60))
        error = {"said": reason.message, "remedy": reason.remedy} if reason.message else {}
        _LOG.warning("the replay worker has failed", exit_code=code, again_in_s=pause, **error)
        return pause

    def _exit_reason(self) -> ExitReason:
        return exit_reason(os.pread(self._stdout, MAX_STDOUT_BYTES, 0), "")

    def _is_disk_full(self) -> bool:
        """Whether the disk whose lack of space ended the last worker is still full."""
        if self._full_disk and not is_nearly_full(Path(self._full_disk)):
            _LOG.info("the disk has free space again", path=self._full_disk)
            self._full_disk = ""
        return bool(self._full_disk)

    def _is_folder_locked(self) -> bool:
        try:
            return is_locked(self._folder)
        except (OSError, DiskFull):
            # The worker reports an unusable folder.
            return False

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def worker_folder(settings: Settings, environ: Mapping[str, str]) -> Path:
    """The folder that a running worker of this node locks."""
    return settings.shard.data_folder(environ) / "replay"


def _worker_command(config: Path | None) -> list[str]:
    script = Path(sys.executable).with_name("strandline")
    given = ["--config", str(config.resolve())] if config is not None else []
    return [sys.executable, str(script), "recover", "work", *given, "--output", "json"]
