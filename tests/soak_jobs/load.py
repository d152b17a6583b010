"""Light load through the gateway while jobs run. All acknowledged samples have to be in the topic."""

import http.client
import threading
from contextlib import closing

from strandline.clock import Clock
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress

_HEADERS = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}
_SERIES = 20
_PAUSE_S = 0.1


class LightLoad:
    """Sends requests one after the other until `end` is called. The value of a sample is its number."""

    def __init__(self, address: str, clock: Clock) -> None:
        self._address, self._clock = address, clock
        self.acknowledged: list[int] = []
        self._next = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._send, name="light-load", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _send(self) -> None:
        while not self._over.wait(_PAUSE_S):
            numbers = range(self._next, self._next + _SERIES)
            now = self._clock.now_ms()
            body = encode_request(
                Series([("__name__", "soak_load"), ("number", str(number % _SERIES))], [(now, float(number))])
                for number in numbers
            )
            # A request without an acknowledgement is not repeated: it may be in the topic or not.
            self._next += _SERIES
            if self._post(compress(body)):
                self.acknowledged += numbers

    def _post(self, body: bytes) -> bool:
        try:
            with closing(http.client.HTTPConnection(self._address, timeout=10)) as connection:
                connection.request("POST", "/api/v1/write", body, _HEADERS)
                return connection.getresponse().status < http.client.MULTIPLE_CHOICES
        except (OSError, http.client.HTTPException):
            return False
