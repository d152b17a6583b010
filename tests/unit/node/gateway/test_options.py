"""The gateway's options from the settings, and returning memory to the system."""

from dataclasses import replace

import pytest

from strandline.node.gateway.figures import GatewayCounters, GatewayFigures, ProducerCounts
from strandline.node.gateway.heap import MemoryTrimmer
from strandline.node.gateway.options import GatewayOptions, gateway_options
from strandline.node.settings import Settings
from strandline.node.settings.http_sections import GatewaySettings
from strandline.node.settings.shard_sections import ShardSettings
from strandline.time_range import EARLIEST, LATEST, TimeRange
from strandline.wire.decode import Limits

pytestmark = pytest.mark.unit


def test_the_defaults_are_those_of_the_settings() -> None:
    assert gateway_options(Settings()) == GatewayOptions()


def test_the_limits_on_labels_are_those_of_the_shards() -> None:
    shard = ShardSettings(max_labels=5, max_label_name=6, max_label_value=7)
    options = gateway_options(Settings(shard=shard, gateway=GatewaySettings(max_unpacked="1m")))
    assert options.limits == Limits(record_bytes=1 << 20, labels=5, label_name=6, label_value=7)


def test_the_limits_on_sample_times_are_those_of_the_settings() -> None:
    shard = ShardSettings(max_sample_age="1h", max_sample_ahead="5m")
    options = gateway_options(Settings(shard=shard))
    now = 1_700_000_000_000
    assert options.sample_times(now) == TimeRange(now - 3_600_000, now + 300_000)
    anything = gateway_options(Settings(shard=ShardSettings(max_sample_age=None, max_sample_ahead=None)))
    assert anything.sample_times(now) == TimeRange(EARLIEST + 1, LATEST - 1), "these two are not times"


def test_no_record_is_larger_than_shards_accept() -> None:
    shard = ShardSettings(max_record_size="512k")
    assert gateway_options(Settings(shard=shard)).max_record == 512 << 10


def figures(**changes: int) -> GatewayFigures:
    idle = GatewayCounters().figures(in_flight=0, limit=1, waiting=0, partitions=1, kafka=ProducerCounts())
    return replace(idle, **changes)


def test_memory_is_trimmed_when_the_gateway_becomes_idle() -> None:
    keeper = MemoryTrimmer()
    assert not keeper.trim_if_idle(figures(), 0.0)
    assert not keeper.trim_if_idle(figures(bytes_in=5, in_flight_bytes=1), 1.0)
    assert not keeper.trim_if_idle(figures(bytes_in=5, waiting_requests=1), 2.0)
    assert keeper.trim_if_idle(figures(bytes_in=5), 3.0)
    assert not keeper.trim_if_idle(figures(bytes_in=5), 100.0)
    assert keeper.trim_if_idle(figures(bytes_in=6), 101.0)
    assert not keeper.trim_if_idle(figures(bytes_in=7), 102.0), "at most once a minute"
