"""The gateway's status as a JSON file, for programs that monitor the process."""

import json
import os
import time
from dataclasses import asdict
from pathlib import Path

import structlog

from strandline.errors import Fatal
from strandline.node.gateway.gateway import Gateway

_LOG = structlog.get_logger(__name__)


class StatusFileUnwritable(Fatal):
    """The status file can't be written."""


class GatewayStatusFile:
    """A file with the gateway's address, trouble, statistics and CPU time. It is replaced atomically."""

    def __init__(self, path: Path, gateway: Gateway, url: str) -> None:
        self._path, self._gateway, self._url = path, gateway, url

    def write_or_log(self) -> None:
        """Write the file, or log why that failed: a full disk must not end the gateway."""
        try:
            self.write()
        except StatusFileUnwritable as error:
            _LOG.warning("status file not written", error=str(error))

    def write(self) -> None:
        """Write the file. Raises `StatusFileUnwritable`."""
        document = {
            "url": self._url,
            "pid": os.getpid(),
            "cpu_seconds": time.process_time(),
            "trouble": self._gateway.trouble(),
            "figures": asdict(self._gateway.figures()),
        }
        unfinished = self._path.with_name(self._path.name + ".unfinished")
        try:
            unfinished.write_text(json.dumps(document, allow_nan=False), encoding="utf-8")
            unfinished.replace(self._path)
        except OSError as error:
            raise StatusFileUnwritable(
                f"the status file {self._path} can't be written: {error.strerror}",
                remedy="Choose a file in an existing folder that this user can write to",
            ) from error
