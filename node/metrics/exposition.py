"""Encodes metric families in the format that a scraper accepts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prometheus_client.core import Metric as Family
from prometheus_client.exposition import choose_encoder

_OPENMETRICS = "application/openmetrics-text"


@dataclass(frozen=True, slots=True)
class Exposition:
    """The answer to a scrape."""

    body: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class _Families:
    families: Sequence[Family]

    def collect(self) -> Iterable[Family]:
        return self.families


def expose(families: Sequence[Family], accept: str = "") -> Exposition:
    """Prometheus' text format, or OpenMetrics if the `Accept` header lists it."""
    named = {offer.split(";")[0].strip().lower() for offer in accept.split(",")}
    # Versions in the header are ignored: there is one version of each format.
    encode, content_type = choose_encoder(_OPENMETRICS if _OPENMETRICS in named else "")
    return Exposition(encode(_Families(families)), content_type)
