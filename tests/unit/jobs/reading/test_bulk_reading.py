"""Pins, selectors, label order, tasks and Arrow batches of a bulk read, with a store in memory."""

from dataclasses import replace
from typing import cast

import numpy as np
import pyarrow as pa
import pytest

from strandline.clock import ManualClock
from strandline.index.documents import encode_part_key
from strandline.index.matchers import InvalidMatcher
from strandline.index.selectors import parse_selector
from strandline.jobs.reading.arrow_batches import SampleColumns, dictionary_batches, plain_batches
from strandline.jobs.reading.matching import check_matchers, match_keys
from strandline.jobs.reading.pins import PinnedRowExpired, Pins, RowId, expired_rows, pin_rows
from strandline.jobs.reading.resolving import resolve_series
from strandline.jobs.reading.series_reading import PinnedRowMissing, read_slices
from strandline.jobs.reading.series_set import LabelBytes
from strandline.jobs.reading.series_task import series_ranges
from strandline.jobs.reading.task_division import divide_into_tasks
from strandline.recovery.checkpoints import designated_group
from strandline.recovery.periods import HOUR
from strandline.store.protocol import Store
from strandline.store.rows import ManifestRows, ShardId
from strandline.time_range import TimeRange
from support.memory_store import MemoryServer, MemoryStore
from support.stored_samples import (
    DATASET,
    DAY,
    GROUPS,
    START,
    Labels,
    Sample,
    Series,
    StoredSamples,
    export_order,
    rows_of_table,
    series_of,
)

pytestmark = pytest.mark.unit

FIRST = START // HOUR
TODAY = TimeRange(START, START + DAY - 1)
KEYS: list[dict[str, str]] = [
    {"__name__": "up", "job": "node", "Zone": "a"},
    {"__name__": "up", "job": "node", "host": "x\ny"},
    {"__name__": "up"},
    {"job": "node"},
    {"__name__": "upper", "job": ""},
    {"__name__": "http_requests", "code": "500", "ü": "ü"},
]


class Stored:
    """A dataset in memory."""

    def __init__(self, shards: int = 1) -> None:
        self.clock = ManualClock(START + 2 * DAY)
        self.server = MemoryServer(self.clock)
        self.store = cast("Store", MemoryStore(self.server))
        self.samples = StoredSamples(self.store, self.clock, shards)

    def pins(self, times: TimeRange = TODAY) -> Pins:
        return pin_rows(DATASET, GROUPS, self.samples.manifests(), times, self.clock.now_ms())

    def read(self, selector: str, times: TimeRange = TODAY, *, task_samples: int = 100, at_once: int = 50) -> pa.Table:
        """All samples, read with tasks and slices of about these numbers of samples."""
        pins = self.pins(times)
        resolved = resolve_series(self.store, pins, parse_selector(selector))
        batches = [
            batch
            for task in divide_into_tasks(pins, resolved, times, task_samples)
            for part in read_slices(self.store, task, self.clock, slice_samples=at_once)
            for batch in plain_batches(SampleColumns.of(part), 7)
        ]
        return pa.Table.from_batches(batches) if batches else pa.table({name: [] for name in ("metric", "labels")})


def some(bucket: int, hosts: range, value: float = 0.0, metrics: str = "abcdef") -> list[Sample]:
    return [
        ({"__name__": metric, "host": str(host)}, bucket * HOUR + at, value + host + at)
        for metric in metrics
        for host in hosts
        for at in range(3)
    ]


def keys_of(labels: list[dict[str, str]]) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    encoded = [encode_part_key(label_set) for label_set in labels]
    return np.cumsum([0, *map(len, encoded)]), np.frombuffer(b"".join(encoded), dtype=np.uint8)


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("up", [0, 1, 2]),
        ('up{job="node"}', [0, 1]),
        ('up{job!="node"}', [2]),
        ('{job="",__name__!=""}', [2, 4, 5]),
        ('{__name__=~"up|http.*"}', [0, 1, 2, 5]),
        ('{__name__=~"up."}', []),
        ('{__name__=~"up.+"}', [4]),
        ('{host=~"x.y"}', [1]),
        ('{host!~"x.y",job="node"}', [0, 3]),
        ('{"ü"="ü"}', [5]),
        ('{code=~"(?i)5[0-9]{2}"}', [5]),
        ('{Zone="a"}', [0]),
    ],
)
def test_matchers_match_as_in_promql(selector: str, found: list[int]) -> None:
    assert np.flatnonzero(match_keys(*keys_of(KEYS), parse_selector(selector))).tolist() == found


@pytest.mark.parametrize("selector", ['{a=~"("}', '{a=~"a)|(b"}', r'{a=~"\\p{Nonsense}"}'])
def test_an_invalid_expression_is_refused(selector: str) -> None:
    with pytest.raises(InvalidMatcher):
        check_matchers(parse_selector(selector))


def test_series_are_ordered_by_metric_and_then_by_labels() -> None:
    labels = LabelBytes.of_part_keys(*keys_of(KEYS))
    series = [series_of({name: value for name, value in key.items() if value}) for key in KEYS]
    ordered = [series[position] for position in labels.order().tolist()]
    assert ordered == sorted(series, key=export_order)
    assert [dict(label_set).get("__name__") for label_set in ordered] == [
        None,
        "http_requests",
        "up",
        "up",
        "up",
        "upper",
    ]


def test_tasks_read_every_sample_once_whatever_their_size() -> None:
    stored = Stored(shards=2)
    for bucket in range(FIRST, FIRST + 3):
        stored.samples.write(0, bucket, some(bucket, range(6)))
        stored.samples.write(1, bucket, some(bucket, range(4, 9), 100.0))
    # Late duplicates, and series that another shard also has.
    stored.samples.write(0, FIRST + 3, some(FIRST, range(3), 1000.0))
    expected = sorted(stored.samples.expected(START, START + DAY))
    assert len(expected) == 9 * 6 * 9
    for task_samples, at_once in ((1, 1), (20, 5), (10_000, 40), (10_000, 10_000)):
        table = stored.read('{__name__=~"[a-f]"}', task_samples=task_samples, at_once=at_once)
        assert sorted(rows_of_table(table)) == expected


def test_only_the_window_is_read_to_the_millisecond() -> None:
    stored = Stored()
    stored.samples.write(0, FIRST, some(FIRST, range(2)))
    window = TimeRange(START + 1, START + 1)
    found = sorted(rows_of_table(stored.read('{host=~".*",__name__!=""}', window)))
    assert found == sorted(stored.samples.expected(START + 1, START + 2))
    assert len(found) == 12


def test_windows_of_days_divide_a_long_read() -> None:
    stored = Stored()
    for day in range(2):
        stored.samples.write(0, FIRST + 24 * day, some(FIRST + 24 * day, range(4)))
    pins = stored.pins(TimeRange(START, START + 2 * DAY - 1))
    resolved = resolve_series(stored.store, pins, parse_selector('{host!=""}'))
    whole, many = (
        divide_into_tasks(pins, resolved, TimeRange(START, START + 2 * DAY - 1), size) for size in (1000, 72)
    )
    assert [(task.times.first, len(task.series)) for task in whole] == [(START, 24)]
    assert [(task.times.first, len(task.series)) for task in many] == [(START, 24), (START + DAY, 24)]
    assert [{row.bucket for row in task.rows} for task in many] == [{FIRST}, {FIRST + 24}]


def test_superseded_rows_are_not_pinned_and_their_keys_are_known() -> None:
    stored = Stored()
    stored.samples.write(0, FIRST, some(FIRST, range(2)))
    rows = stored.samples.write(0, FIRST + 1, some(FIRST + 1, range(3)))
    stored.samples.load.commit(0, *(replace(row, superseded=True) for row in rows))
    pins = stored.pins()
    assert {row.bucket for row in pins.rows} == {FIRST}
    assert [(index.row.bucket, index.row.superseded) for index in pins.indexes] == [(FIRST, False), (FIRST + 1, True)]
    assert len(resolve_series(stored.store, pins, parse_selector('{host="2"}')).series) == 6
    # An incomplete rewind: the index is valid, and one row is superseded.
    designated = designated_group(ShardId(DATASET, 0), GROUPS)
    filled = {row.group for row in rows if row.samples}
    other = max(filled - {designated})
    stored.samples.load.commit(0, *(replace(row, superseded=row.group == other) for row in rows))
    assert {row.group for row in stored.pins().rows if row.bucket == FIRST + 1} == filled - {other}


def test_rows_after_the_newest_stored_index_are_not_pinned() -> None:
    stored = Stored()
    for bucket in (FIRST, FIRST + 1):
        stored.samples.write(0, bucket, some(bucket, range(2)))
    manifest = stored.samples.manifests()[0]
    designated = designated_group(ShardId(DATASET, 0), GROUPS)
    groups = tuple(row for row in manifest.groups if (row.bucket, row.group) != (FIRST + 1, designated))
    found = pin_rows(DATASET, GROUPS, {0: replace(manifest, groups=groups)}, TODAY, stored.clock.now_ms())
    assert {row.bucket for row in found.rows} == {FIRST}


def test_expired_data_is_refused_by_name_even_if_the_index_has_expired_too() -> None:
    stored = Stored()
    stored.samples.write(0, FIRST, some(FIRST, range(2)))
    manifest = stored.samples.manifests()[0]
    expires = manifest.groups[0].data_expires
    assert pin_rows(DATASET, GROUPS, {0: manifest}, TODAY, expires - 60_001).rows
    with pytest.raises(PinnedRowExpired, match=rf"bucket {FIRST}, group 0 of shard 0 have expired"):
        pin_rows(DATASET, GROUPS, {0: manifest}, TODAY, expires - 60_000)
    # Another time does not need it.
    assert pin_rows(DATASET, GROUPS, {0: manifest}, TimeRange(0, 1), expires).rows == ()


def test_a_row_without_its_segments_is_an_error_by_name_and_not_read_as_empty() -> None:
    stored = Stored()
    stored.samples.write(0, FIRST, some(FIRST, range(2)))
    stored.server.segments.clear()
    with pytest.raises(PinnedRowMissing, match=f"bucket {FIRST}, group . of shard 0 has 0 segments"):
        stored.read('{host!=""}')


def test_a_row_that_was_written_again_is_not_taken_for_an_expired_one() -> None:
    stored = Stored()
    rows = stored.samples.write(0, FIRST, some(FIRST, range(2)))
    manifest: ManifestRows = stored.samples.manifests()[0]
    ids = [RowId(0, FIRST, row.group, "another checksum") for row in rows]
    now = stored.clock.now_ms()
    assert expired_rows(ids, {0: manifest}, now) == []
    assert expired_rows(ids, {0: replace(manifest, groups=manifest.groups[1:])}, now) == [ids[manifest.groups[0].group]]
    assert expired_rows(ids, {}, now) == ids
    assert expired_rows(ids, {0: manifest}, rows[0].data_expires) == ids


@pytest.mark.parametrize("most", [1, 3, 10, 1000])
def test_pieces_hold_every_series_once_and_are_not_much_too_large(most: int) -> None:
    expected = np.random.default_rng(most).integers(0, 7, 200).astype(np.float64)
    found = series_ranges(expected, most)
    assert [position for first, behind in found for position in range(first, behind)] == list(range(200))
    assert max(expected[first:behind].sum() for first, behind in found) <= most + 7
    assert series_ranges(expected[:0], most) == []


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_batches_contain_each_sample_with_its_labels(rows: int) -> None:
    labels: list[Labels] = [KEYS[0], KEYS[2], KEYS[3], KEYS[5]]
    encoded = [encode_part_key(dict(label_set)) for label_set in labels]
    series = LabelBytes.of_part_keys(
        np.cumsum([0, *map(len, encoded)]), np.frombuffer(b"".join(encoded), dtype=np.uint8)
    )
    first = np.array([0, 3, 4, 6, 11])
    time, value = np.arange(11) + START, np.arange(11) / 4
    columns = SampleColumns(series, first, time, value)
    expected: list[tuple[Series, int, float]] = [
        (series_of(label_set), int(time[at]), float(value[at]))
        for number, label_set in enumerate(labels)
        for at in range(first[number], first[number + 1])
    ]
    for made in (dictionary_batches, plain_batches):
        batches = list(made(columns, rows))
        assert max(batch.num_rows for batch in batches) <= rows
        assert [row for batch in batches for row in rows_of_table(pa.Table.from_batches([batch]))] == expected
