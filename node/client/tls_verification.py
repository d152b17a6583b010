"""Verification of a node's TLS certificate."""

import hmac
import ssl
from dataclasses import dataclass
from pathlib import Path

from strandline.errors import ExitCode, Fatal
from strandline.node.client.errors import NodeUntrusted

_END = "-----END CERTIFICATE-----"


class BadCaFile(Fatal):
    """A file without certificates."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class TlsVerification:
    """Verifies with the certificate authorities of the system, or with those of a file. With `pinned`, only that
    certificate is accepted, for any host name: it is the one in the node's own settings.
    """

    ca_file: Path | None = None
    pinned: bytes | None = None

    @classmethod
    def pinned_to(cls, pem: str) -> "TlsVerification":
        """Accept only the first certificate of a PEM file, which is the one that the server sends."""
        start = pem.index(ssl.PEM_HEADER)
        return cls(pinned=ssl.PEM_cert_to_DER_cert(pem[start : pem.index(_END, start) + len(_END)]))

    def context(self) -> ssl.SSLContext:
        """The context of a connection. `check` must be called once it is connected. Raises `BadCaFile`."""
        if self.pinned is not None:
            pinning = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            # Comparing the certificate is stricter than verifying its signature and host name.
            pinning.check_hostname = False
            pinning.verify_mode = ssl.CERT_NONE
            return pinning
        try:
            return ssl.create_default_context(cafile=str(self.ca_file) if self.ca_file is not None else None)
        except (OSError, ssl.SSLError) as error:
            reason = error.strerror if not isinstance(error, ssl.SSLError) else "it contains no certificate"
            raise BadCaFile(
                f"{self.ca_file} can't be used: {reason}", remedy="Give a file with certificates in PEM format"
            ) from None

    def check(self, certificate: bytes | None, url: str) -> None:
        """Raises `NodeUntrusted` if the server's certificate is not the pinned one. Call it before sending anything."""
        if self.pinned is not None and not hmac.compare_digest(certificate or b"", self.pinned):
            raise NodeUntrusted(
                f"the certificate of {url} is not the one in http.tls_certificate_file",
                remedy="Reload the node if the file is new, or use --url, with its certificate authority in --ca-file",
            )
