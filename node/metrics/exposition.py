"""Families as text, in the format that a scraper asks for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prometheus_client.core import Metric as Family
from prometheus_client.exposition import choose_encoder

_OPENMETRICS = "application/openmetrics-text"


@dataclass(frozen=True, slots=True)
class Exposition:
    """What is answered to a scrape."""

    body: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class _Families:
    families: Sequence[Family]

    def collect(self) -> Iterable[Family]:
        return self.families


def expose(families: Sequence[Family], accept: str = "") -> Exposition:
    """Prometheus' text format, or OpenMetrics for a scraper that names it in its `Accept`."""
    named = {offer.split(";")[0].strip().lower() for offer in accept.split(",")}
    # Versions that a scraper writes are not looked at: there is one of each format.
    encode, content_type = choose_encoder(_OPENMETRICS if _OPENMETRICS in named else "")
    return Exposition(encode(_Families(families)), content_type)
