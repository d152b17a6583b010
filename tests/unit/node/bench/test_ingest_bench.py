"""The flush interval of a benchmark run."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from strandline.node.bench.ingest_bench import IngestBench, interval_for
from strandline.node.settings.load import load_settings
from strandline.node.stack import Stack
from strandline.node.steps import Steps

pytestmark = pytest.mark.unit


def test_a_bucket_is_as_long_as_a_run_may_take_and_not_longer() -> None:
    minute = 60_000
    assert interval_for(1) == minute
    assert interval_for(100_000 * 60) == minute
    assert interval_for(100_000 * 240) == 3 * minute
    assert interval_for(10**12) == 1440 * minute, "no bucket is longer than a day"


@pytest.mark.parametrize("scrapes", [5, 60, 2_000, 1_000_000])
def test_the_settings_of_a_run_are_valid_for_each_length_of_its_bucket(tmp_path: Path, scrapes: int) -> None:
    bench = IngestBench(100_000, scrapes, tmp_path, cast("Steps", None), None)
    stack = SimpleNamespace(kafka_bootstrap="127.0.0.1:1", cassandra_host="127.0.0.1", cassandra_port=1)
    settings = load_settings(bench._settings(cast("Stack", stack)), {})
    assert settings.dataset.flush_interval.milliseconds == interval_for(100_000 * scrapes)
