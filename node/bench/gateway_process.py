"""Runs a real gateway in its own process, for benchmarks and system tests."""

import os
from collections.abc import Mapping
from pathlib import Path

from strandline.clock import Clock
from strandline.node.own_command import WatchedCommand


class GatewayProcess(WatchedCommand):
    """A running `strandline gateway`. Its output goes to files next to its status file."""

    def __init__(
        self,
        settings: Path,
        folder: Path,
        clock: Clock,
        *,
        extra: tuple[str, ...] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`environ` is added to the environment of this process."""
        self._printed = folder / "gateway.out"
        self._printed.unlink(missing_ok=True)
        super().__init__(
            ["gateway", "--config", str(settings), *extra],
            folder / "gateway.json",
            clock,
            printed=self._printed,
            environ=None if environ is None else {**os.environ, **environ},
        )

    def listening(self) -> str:
        """Wait until it listens, and return its URL."""
        return str(self.wait_for("it listens", lambda one: bool(one["url"]), timeout=60)["url"])

    def output(self) -> str:
        """Its output."""
        return self._printed.read_text(encoding="utf-8", errors="replace")
