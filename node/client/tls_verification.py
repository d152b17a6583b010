"""TLS: by what a node is known."""

import hmac
import ssl
from dataclasses import dataclass
from pathlib import Path

from strandline.errors import ExitCode, Fatal
from strandline.node.client.errors import NodeUntrusted

_END = "-----END CERTIFICATE-----"


class BadCaFile(Fatal):
    """A file that holds no certificates."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class TlsVerification:
    """Either the authorities of the system, or those of a file; or the very certificate that the node's own settings
    name, which then is the only one that will do, whatever host it is for.
    """

    ca_file: Path | None = None
    pinned: bytes | None = None

    @classmethod
    def pinned_to(cls, pem: str) -> "TlsVerification":
        """TlsVerification the first certificate of a file's text, which is the one that a server shows."""
        start = pem.index(ssl.PEM_HEADER)
        return cls(pinned=ssl.PEM_cert_to_DER_cert(pem[start : pem.index(_END, start) + len(_END)]))

    def context(self) -> ssl.SSLContext:
        """For a connection, whose certificate `check` then has to see. Raises `BadCaFile`."""
        if self.pinned is not None:
            pinning = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            # Who signed it and for whom says less than that it is the same one.
            pinning.check_hostname = False
            pinning.verify_mode = ssl.CERT_NONE
            return pinning
        try:
            return ssl.create_default_context(cafile=str(self.ca_file) if self.ca_file is not None else None)
        except (OSError, ssl.SSLError) as error:
            reason = error.strerror if not isinstance(error, ssl.SSLError) else "it holds no certificate"
            raise BadCaFile(
                f"{self.ca_file} can't be used: {reason}", remedy="Name a file with certificates in PEM format"
            ) from None

    def check(self, shown: bytes | None, url: str) -> None:
        """Raises `NodeUntrusted` unless the certificate that was shown will do. Nothing may be sent before."""
        if self.pinned is not None and not hmac.compare_digest(shown or b"", self.pinned):
            raise NodeUntrusted(
                f"{url} shows another certificate than the one of http.tls_certificate_file",
                remedy="Reload the node if the file is new, or name the node by --url, and its authority by --ca-file",
            )
