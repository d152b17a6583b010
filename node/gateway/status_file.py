"""What the gateway is doing, in a file, for whoever watches its process."""

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
    """The file for the status can't be written."""


class GatewayStatusFile:
    """A file with the gateway's address, trouble, figures and CPU time, written whole or not at all."""

    def __init__(self, path: Path, gateway: Gateway, url: str) -> None:
        self._path, self._gateway, self._url = path, gateway, url

    def write_or_log(self) -> None:
        """Write it now, or log why not: a full disk does not end the gateway."""
        try:
            self.write()
        except StatusFileUnwritable as error:
            _LOG.warning("the status is not told", error=str(error))

    def write(self) -> None:
        """Write it now. Raises `StatusFileUnwritable`."""
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
                remedy="Name a file in a folder that exists and may be written to",
            ) from error
