"""Certificates for tests, made with openssl: an authority, a server at 127.0.0.1 and a client."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

STORE_PASSWORD = "keystore-password"


@dataclass(frozen=True)
class Certificates:
    """The PEM files of one authority. `server_store` has the server's key and certificate as PKCS #12."""

    ca: Path
    server_bundle: Path
    server_store: Path
    client_certificate: Path
    client_key: Path


def make_certificates(folder: Path) -> Certificates:
    """Create an authority in `folder`, and the certificates that it signs."""
    folder.mkdir()
    ca_key, ca = folder / "ca.key", folder / "ca.pem"
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test authority",
            "-keyout", ca_key, "-out", ca)  # fmt: skip
    server_key, server_certificate = _signed(folder, "server", ca, ca_key, "subjectAltName=IP:127.0.0.1")
    client_key, client_certificate = _signed(folder, "client", ca, ca_key, "extendedKeyUsage=clientAuth")
    bundle, store = folder / "server-bundle.pem", folder / "server.p12"
    bundle.write_text(server_key.read_text() + server_certificate.read_text())
    openssl("pkcs12", "-export", "-inkey", server_key, "-in", server_certificate, "-out", store,
            "-passout", f"pass:{STORE_PASSWORD}")  # fmt: skip
    return Certificates(ca, bundle, store, client_certificate, client_key)


def _signed(folder: Path, name: str, ca: Path, ca_key: Path, extension: str) -> tuple[Path, Path]:
    key, request, certificate = folder / f"{name}.key", folder / f"{name}.csr", folder / f"{name}.pem"
    extensions = folder / f"{name}.ext"
    extensions.write_text(extension)
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", request)
    openssl("x509", "-req", "-days", "2", "-in", request, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial",
            "-extfile", extensions, "-out", certificate)  # fmt: skip
    key.chmod(0o600)
    return key, certificate


def openssl(*arguments: str | Path) -> None:
    """Run openssl. Its output is in the error if it fails."""
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
