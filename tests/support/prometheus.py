"""A real Prometheus, run as by its users."""

import http.client
import json
import ssl
import subprocess
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from strandline.clock import SystemClock, wait_until
from strandline.node.stack.ports import LOOPBACK, free_ports


class PrometheusClient:
    """An address with Prometheus' API: a Prometheus, or a node of ours."""

    def __init__(self, address: str, *, tls: ssl.SSLContext | None = None, token: str | None = None) -> None:
        """With TLS if there is a context for it, and with the token if there is one."""
        self.address = address
        self._tls = tls
        self._headers = {"Authorization": f"Bearer {token}"} if token is not None else {}

    def request(
        self,
        path: str,
        *,
        method: str = "GET",
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        **parameters: Any,
    ) -> tuple[int, bytes]:
        """The status and body of an answer. A list as a parameter is sent as several parameters."""
        query = urllib.parse.urlencode({name.replace("match", "match[]"): at for name, at in parameters.items()}, True)
        with closing(self._connection()) as connection:
            connection.request(method, f"{path}?{query}" if query else path, body, {**self._headers, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.read()

    def document(self, path: str, **parameters: Any) -> dict[str, Any]:
        """The complete document of a successful answer."""
        status, body = self.request(path, **parameters)
        assert status == http.client.OK, body
        return dict(json.loads(body))

    def data(self, path: str, **parameters: Any) -> Any:
        """The data of a successful answer, which must have no warnings."""
        found = self.document(path, **parameters)
        assert not found.get("warnings"), found["warnings"]
        return found["data"]

    def post(self, path: str, body: bytes) -> bytes:
        """The answer to a body that is compressed with snappy, which must be successful."""
        status, answer = self.request(path, method="POST", body=body, headers={"Content-Encoding": "snappy"})
        assert status in (http.client.OK, http.client.NO_CONTENT), answer
        return answer

    def query(self, expression: str, at_ms: int) -> dict[tuple[tuple[str, str], ...], float]:
        """The values of an instant query by labels, without warnings."""
        found = self.data("/api/v1/query", query=expression, time=at_ms / 1000)["result"]
        return {tuple(sorted(series["metric"].items())): float(series["value"][1]) for series in found}

    def _connection(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self.address, timeout=60)
        return http.client.HTTPSConnection(self.address, timeout=60, context=self._tls)

    def is_ready(self) -> bool:
        try:
            return self.request("/-/ready")[0] == http.client.OK
        except OSError:
            return False


@contextmanager
def prometheus(
    folder: Path, settings: Callable[[str], dict[str, Any]], *options: str, data: Path | None = None
) -> Iterator[PrometheusClient]:
    """Debian's Prometheus once it is ready, with the settings for its address. Its samples are in `folder / "data"`, or
    it continues with those in `data`.
    """
    (port,) = free_ports(1)
    folder.mkdir(parents=True)
    (folder / "prometheus.yml").write_text(
        json.dumps(settings(f"{LOOPBACK}:{port}")), encoding="utf-8"
    )  # JSON is also YAML.
    command = [
        "prometheus",
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={data or folder / 'data'}",
        f"--web.listen-address={LOOPBACK}:{port}",
        *options,
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    client = PrometheusClient(f"{LOOPBACK}:{port}")
    try:
        wait_until(lambda: client.is_ready() or process.poll() is not None, timeout=60, clock=SystemClock())
        assert client.is_ready(), (folder / "log").read_text()[-2000:]
        yield client
    finally:
        process.terminate()
        try:
            process.wait(30)
        finally:
            process.kill()
            process.wait()
