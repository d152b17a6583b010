"""A node and a gateway with TLS and tokens: writes and reads by a Prometheus, refused requests, and reloads."""

import json
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from strandline.node.stack import Stack
from support.certificates import Certificates, make_certificates
from support.prometheus import PrometheusClient, prometheus
from support.service import Service, eventually, service

pytestmark = pytest.mark.system

READ, WRITE, ADMIN = "a-token-for-reading", "a-token-for-writing", "a-token-for-admins"


@dataclass
class Secured:
    """The service, its certificate and token files, and the authority of the current certificate."""

    running: Service
    folder: Path
    shown: Certificates

    def client(self, address: str, token: str | None) -> PrometheusClient:
        return PrometheusClient(address, tls=ssl.create_default_context(cafile=str(self.shown.ca)), token=token)

    @property
    def node(self) -> str:
        return self.running.node.address

    @property
    def gateway(self) -> str:
        return self.running.gateway.address


def token_file(folder: Path, name: str, token: str) -> str:
    path = folder / name
    path.write_text(token + "\n", encoding="utf-8")
    path.chmod(0o600)
    return str(path)


def show(certificates: Certificates, folder: Path) -> None:
    """Replace the files in the settings by those of a server certificate of this authority."""
    made = certificates.ca.parent
    for source, name in ((made / "server.pem", "certificate.pem"), (made / "server.key", "key.pem")):
        # Atomically, like tools that renew certificates.
        new = folder / f"{name}.new"
        shutil.copyfile(source, new)
        new.chmod(0o600)
        new.rename(folder / name)


@pytest.fixture(scope="module")
def secured(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    certificates = make_certificates(folder / "first")
    show(certificates, folder)
    http = {
        "tls_certificate_file": str(folder / "certificate.pem"),
        "tls_key_file": str(folder / "key.pem"),
        "read_token_file": token_file(folder, "read", READ),
        "write_token_file": token_file(folder, "write", WRITE),
        "admin_token_file": token_file(folder, "admin", ADMIN),
    }
    context = ssl.create_default_context(cafile=str(certificates.ca))
    with service(
        stack, folder / "service", http=http, make_client=lambda address: PrometheusClient(address, tls=context)
    ) as running:
        yield Secured(running, folder, certificates)


def test_a_prometheus_with_token_and_ca_writes_and_reads(secured: Secured, tmp_path: Path) -> None:
    def through(path: str, address: str, token: str) -> dict[str, Any]:
        return {
            "url": f"https://{address}{path}",
            "authorization": {"credentials_file": str(secured.folder / token)},
            "tls_config": {"ca_file": str(secured.shown.ca)},
        }

    def scraping_the_node(_: str) -> dict[str, Any]:
        node = through("", secured.node, "read")
        del node["url"]
        return {
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [
                {"job_name": "node", "scheme": "https", "static_configs": [{"targets": [secured.node]}], **node}
            ],
            "remote_write": [through("/api/v1/write", secured.gateway, "write")],
        }

    def reading(_: str) -> dict[str, Any]:
        return {"remote_read": [through("/api/v1/read", secured.node, "read") | {"read_recent": True}]}

    with (
        prometheus(tmp_path / "own", scraping_the_node),
        prometheus(tmp_path / "through", reading) as found,
    ):
        eventually(
            lambda: found.data("/api/v1/query", query="sum(up{job='node'} * on () strandline_active_shards)")["result"],
            "what was scraped with a token is found with one",
        )


@pytest.mark.parametrize(
    ("path", "method", "token", "status"),
    [
        ("/api/v1/labels", "GET", None, 401),
        ("/api/v1/labels", "GET", "another-token-altogether", 401),
        ("/api/v1/labels", "GET", WRITE, 403),
        ("/api/v1/labels", "GET", READ, 200),
        ("/metrics", "GET", None, 401),
        ("/", "GET", None, 401),
        ("/-/reload", "POST", READ, 403),
        ("/-/reload", "POST", ADMIN, 200),
        ("/-/healthy", "GET", None, 200),
        ("/-/ready", "GET", None, 200),
    ],
)
def test_each_path_of_the_node_requires_its_own_token(
    secured: Secured, path: str, method: str, token: str | None, status: int
) -> None:
    assert secured.client(secured.node, token).request(path, method=method)[0] == status


@pytest.mark.parametrize(("token", "status"), [(None, 401), (READ, 403), (WRITE, 400)])
def test_the_gateway_checks_the_token_before_it_reads_a_body(secured: Secured, token: str | None, status: int) -> None:
    headers = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}
    client = secured.client(secured.gateway, token)
    assert client.request("/api/v1/write", method="POST", body=b"no snappy", headers=headers)[0] == status


def test_client_commands_read_token_and_ca_from_files(secured: Secured) -> None:
    script = Path(sys.executable).with_name("strandline")
    place = ["--url", f"https://{secured.node}", "--ca-file", str(secured.shown.ca)]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        command = [str(script), "labels", "--output", "json", *place, *more]
        return subprocess.run(
            command, env=dict(secured.running.environ), capture_output=True, text=True, check=False, timeout=60
        )

    done = run("--token-file", str(secured.folder / "read"))
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)
    refused = run()
    assert refused.returncode != 0
    assert "--token-file" in json.loads(refused.stdout)["error"]["remedy"]
    assert READ not in done.stdout + done.stderr + refused.stdout + refused.stderr


def test_a_reload_applies_a_renewed_certificate_and_a_new_token(secured: Secured) -> None:
    renewed = make_certificates(secured.folder / "second")
    show(renewed, secured.folder)
    token_file(secured.folder, "read", "a-newer-token-for-reading")
    secured.running.node_program.send(signal.SIGHUP)
    secured.shown = renewed
    client = secured.client(secured.node, "a-newer-token-for-reading")
    eventually(lambda: answers(client), "the new certificate and the new token are in force")
    assert secured.client(secured.node, READ).request("/api/v1/labels")[0] == 401


def answers(client: PrometheusClient) -> bool:
    try:
        return client.request("/api/v1/labels")[0] == 200
    except ssl.SSLError:
        return False


def test_no_secret_is_logged(secured: Secured) -> None:
    folder = secured.running.settings.parent
    said = "".join(log.read_text(encoding="utf-8") for log in folder.glob("*.log"))
    assert said
    for secret in (READ, WRITE, ADMIN, "a-newer-token-for-reading", "PRIVATE KEY"):
        assert secret not in said
