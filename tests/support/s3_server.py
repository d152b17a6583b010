"""A real S3-compatible server on loopback, which checks credentials and permissions."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.fs as pafs
import pytest

PROCESS = Path(__file__).with_name("s3_process.py")


@dataclass(frozen=True)
class Keys:
    """The credentials of a user."""

    id: str
    secret: str = field(repr=False)


@dataclass(frozen=True)
class S3Server:
    """A running server with one bucket. `keys` permit exactly what docs/pipeline.md lists."""

    address: str
    bucket: str
    keys: Keys
    unpermitted: Keys

    def uri(self, path: str) -> str:
        return f"s3://{self.bucket}/{path}"

    def use(self, patch: pytest.MonkeyPatch, keys: Keys | None = None) -> None:
        """Set the environment of a worker."""
        keys = keys or self.keys
        patch.setenv("AWS_ENDPOINT_URL_S3", f"http://{self.address}")
        patch.setenv("AWS_ACCESS_KEY_ID", keys.id)
        patch.setenv("AWS_SECRET_ACCESS_KEY", keys.secret)

    def client(self) -> pafs.S3FileSystem:
        """A client of the test's own."""
        return pafs.S3FileSystem(
            access_key=self.keys.id,
            secret_key=self.keys.secret,
            region="us-east-1",
            endpoint_override=self.address,
            scheme="http",
        )

    def put(self, key: str, content: bytes) -> None:
        with self.client().open_output_stream(f"{self.bucket}/{key}", compression=None) as file:
            file.write(content)

    def get(self, key: str) -> bytes:
        with self.client().open_input_stream(f"{self.bucket}/{key}", compression=None) as file:
            return bytes(file.read())

    def keys_below(self, prefix: str) -> list[str]:
        """The keys of the objects, without folder markers."""
        selector = pafs.FileSelector(f"{self.bucket}/{prefix}", recursive=True, allow_not_found=True)
        found = self.client().get_file_info(selector)
        return sorted(one.path.partition("/")[2] for one in found if one.type == pafs.FileType.File)


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Start a server, and end it."""
    # Neither proxies nor credentials of the machine are of use to it.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    process = subprocess.Popen(
        [sys.executable, str(PROCESS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**environ, "INITIAL_NO_AUTH_ACTION_COUNT": "0"},
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        started = json.loads(process.stdout.readline())
        try:
            yield S3Server(
                started["address"], started["bucket"], Keys(*started["permitted"]), Keys(*started["unpermitted"])
            )
        finally:
            process.stdin.close()
            process.wait(60)
