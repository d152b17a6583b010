"""Posts the event of a job's end to a webhook."""

import http.client
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from strandline.jobs.completing import EventNotDelivered

_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Webhook:
    """Posts events to a URL, as JSON, each with its key in the header `Idempotency-Key`. Redirects are not followed: if
    the URL has moved, the setting must be changed.
    """

    url: str
    timeout_s: float = _TIMEOUT_S

    def __call__(self, key: str, body: bytes) -> None:
        """Raises `EventNotDelivered` unless the answer is a 2xx."""
        parts = urlsplit(self.url)
        host, path = parts.hostname or "", (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        # Without the query, which may contain a secret.
        shown = f"{parts.scheme}://{parts.netloc}{parts.path}"
        connection = (
            http.client.HTTPSConnection(host, parts.port, timeout=self.timeout_s, context=ssl.create_default_context())
            if parts.scheme == "https"
            else http.client.HTTPConnection(host, parts.port, timeout=self.timeout_s)
        )
        headers = {"Content-Type": "application/json", "Idempotency-Key": key, "User-Agent": "strandline"}
        try:
            connection.request("POST", path, body, headers)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            raise EventNotDelivered(f"{shown} did not answer: {error}", remedy="Check jobs.webhook") from error
        finally:
            connection.close()
        if not 200 <= status < 300:
            raise EventNotDelivered(f"{shown} answered {status}", remedy="Check jobs.webhook")
