"""Scrapes of the imaginary fleet: the same series again and again, with values as real ones move.

Half of the series are counters of events that come by chance, from one in ten scrapes to a thousand a scrape. Most
others are gauges with two decimals, which change at every other scrape, and one series in ten never changes. Targets
are scraped every 15 seconds, each at a moment of its own, half of them with a jitter of some milliseconds. Bodies are
made by writing times and values into templates, so that making them does not take longer than reading them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from strandline.arrays import F64s, I64s
from strandline.node.bench.fleet import SHARED_BY_1K, requests
from strandline.wire.snappy import compress

INTERVAL_MS = 15_000
# The end of an encoded series: tag of the value, 8 bytes; tag of the time, 6 bytes of varint.
_TIME_BYTES = 6
_VALUE_AT, _TIME_AT = -(_TIME_BYTES + 9), -_TIME_BYTES


@dataclass(frozen=True, slots=True)
class Template:
    """A request with places for times and values: where each of its series ends."""

    data: np.ndarray[tuple[int], np.dtype[np.uint8]]
    ends: I64s

    def filled(self, times: I64s, values: F64s) -> bytes:
        """With a time and a value for each series."""
        data = self.data.copy()
        for byte in range(_TIME_BYTES):
            more = 0x80 if byte < _TIME_BYTES - 1 else 0
            data[self.ends + _TIME_AT + byte] = (times >> 7 * byte & 0x7F) | more
        as_bytes = values.view(np.uint8).reshape(-1, 8)
        for byte in range(8):
            data[self.ends + _VALUE_AT + byte] = as_bytes[:, byte]
        return data.tobytes()


class Scrapes:
    """Scrape after scrape of so many series, the same in each run."""

    def __init__(self, series: int, first_time: int) -> None:
        self._templates = [_template(request, count) for request, count in requests(series, first_time)]
        self._rng = np.random.default_rng(11)
        kinds = self._rng.integers(0, 10, series)
        self._is_counter, self._is_gauge = kinds < 5, (kinds >= 5) & (kinds < 9)
        # As many quiet ones as busy ones, whatever that means.
        self._rates = 10.0 ** self._rng.uniform(-1, 3, int(self._is_counter.sum()))
        self._values = self._rng.integers(0, 1_000_000, series).astype(np.float64)
        targets = np.arange(series) // SHARED_BY_1K
        moments = self._rng.integers(0, INTERVAL_MS, int(targets[-1]) + 1)
        self._offsets = first_time + moments[targets]
        self._has_jitter = targets % 2 == 0
        self._taken = 0

    def next(self) -> Iterator[bytes]:
        """The bodies of the next scrape, compressed."""
        rng, series = self._rng, len(self._values)
        self._values[self._is_counter] += rng.poisson(self._rates)
        gauges = int(self._is_gauge.sum())
        steps = rng.normal(0, 5, gauges) * rng.integers(0, 2, gauges)
        self._values[self._is_gauge] = np.round(self._values[self._is_gauge] + steps, 2)
        jitter = np.where(self._has_jitter, rng.integers(0, 5, series), 0)
        times = self._offsets + self._taken * INTERVAL_MS + jitter
        self._taken += 1
        first = 0
        for template in self._templates:
            part = slice(first, first + len(template.ends))
            first += len(template.ends)
            yield compress(template.filled(times[part], self._values[part].copy()))


def _template(request: bytes, series: int) -> Template:
    data = np.frombuffer(request, dtype=np.uint8)
    ends, at = np.empty(series, dtype=np.int64), 0
    for number in range(series):
        # Field 1, and a length of two bytes.
        at += 3 + (request[at + 1] & 0x7F | request[at + 2] << 7)
        ends[number] = at
    return Template(data, ends)
