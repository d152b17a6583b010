"""The gateway's options, from the settings. Pure."""

from dataclasses import dataclass, field

from strandline.index.sample_limits import SampleLimits
from strandline.node.settings.sections import Settings
from strandline.node.shard.configuring import sample_limits
from strandline.time_range import TimeRange
from strandline.wire.decode import Limits

_QUEUE_TIMEOUT_DIVISOR = 4
"""The part of a request's timeout that it may wait for room: a quarter."""


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """Sizes in bytes, times in seconds. `limits` are those that shards apply to records, except for the size, which is
    that of a complete request here. `sample_limits` are those that shards apply to samples that no gateway has checked.
    `max_record` is the maximum size of an uncompressed record.
    """

    limits: Limits = field(default_factory=Limits)
    sample_limits: SampleLimits = field(default_factory=lambda: SampleLimits(behind=None, ahead=600_000))
    max_body: int = 16 << 20
    max_series: int = 100_000
    max_in_flight: int = 256 << 20
    max_record: int = 800 << 10
    timeout_s: float = 20.0
    partitions_refresh_s: float = 30.0

    @property
    def queue_timeout_s(self) -> float:
        """How long a request may wait for room."""
        return self.timeout_s / _QUEUE_TIMEOUT_DIVISOR

    def sample_times(self, now: int) -> TimeRange:
        """The accepted sample times at `now`. Shards don't check them again."""
        return self.sample_limits.times_in(now)


def gateway_options(settings: Settings) -> GatewayOptions:
    """The options of these settings. `max_record` is never larger than what a shard accepts."""
    own, shard = settings.gateway, settings.shard
    return GatewayOptions(
        limits=Limits(
            record_bytes=own.max_unpacked.bytes,
            labels=shard.max_labels,
            label_name=shard.max_label_name,
            label_value=shard.max_label_value,
        ),
        sample_limits=sample_limits(shard),
        max_body=own.max_body.bytes,
        max_series=own.max_series,
        max_in_flight=own.max_in_flight.bytes,
        max_record=min(own.max_record.bytes, shard.max_record_size.bytes),
        timeout_s=own.timeout.seconds,
        partitions_refresh_s=own.partitions_refresh.seconds,
    )
