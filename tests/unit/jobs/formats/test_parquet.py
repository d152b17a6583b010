"""Parquet files by pyarrow and pandas, read back."""

import struct
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.fs import SubTreeFileSystem

from strandline.jobs.formats.byte_ranges import UnreadableSource
from strandline.jobs.formats.parquet import (
    EXPORT_MAPPING,
    ParquetMapping,
    UnusableMapping,
    check_columns,
    read_row_groups,
    row_groups,
)
from strandline.wire.decode import Limits
from support.parquet_files import FS, MAP, VALUE, read, write
from support.prometheus_blocks import STALE
from support.sample_blocks import Labels, TimedBits, digest_of, samples_of

pytestmark = pytest.mark.unit


def bits(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def canonical(labels: dict[str, str | None]) -> Labels:
    return tuple(sorted((name, value) for name, value in labels.items() if value))


TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "b", "größer", "x" * 300]), st.text(max_size=5))
NAMES = st.sampled_from(["job", "instance", "zone", "höhe"])
ROWS = st.fixed_dictionaries(
    {
        "metric": TEXTS,
        "job_column": TEXTS,
        "labels": st.one_of(st.none(), st.lists(st.tuples(NAMES, TEXTS), max_size=4, unique_by=lambda label: label[0])),
        "time": st.one_of(st.none(), st.integers(-(10**12), 10**13)),
        "value": st.one_of(st.none(), st.floats()),
    }
)
MAPPING = ParquetMapping.from_table(
    {
        "metric": {"column": "metric"},
        "labels": {"service": "job_column"},
        "labels_map": "labels",
        "value": "value",
        "time": {"column": "time", "unit": "ms"},
        "constants": {"cluster": "eu"},
    }
)


@given(
    st.lists(ROWS, max_size=40),
    st.integers(1, 15),
    st.integers(1, 15),
    st.sampled_from([pa.string(), pa.large_string(), pa.dictionary(pa.int16(), pa.string())]),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_rows_come_back_as_samples_whatever_the_row_groups_and_blocks(
    rows: list[dict[str, Any]], group_rows: int, most: int, text_type: pa.DataType, use_dictionary: bool
) -> None:
    schema = pa.schema(
        [
            ("metric", text_type),
            ("job_column", text_type),
            ("labels", MAP),
            ("time", pa.int64()),
            ("value", pa.float64()),
        ]
    )
    with TemporaryDirectory() as folder:
        table = pa.Table.from_pylist(rows, schema=schema)
        path = write(Path(folder), table, row_group_size=group_rows, use_dictionary=use_dictionary)
        blocks = read(path, MAPPING, most=most)
        bounded = read(path, MAPPING, most=most, labels=60)
    expected: dict[Labels, list[TimedBits]] = {}
    for row in rows:
        if row["time"] is not None and row["value"] is not None:
            labels = {
                **dict(row["labels"] or ()),
                "__name__": row["metric"],
                "service": row["job_column"],
                "cluster": "eu",
            }
            expected.setdefault(canonical(labels), []).append((row["time"], bits(row["value"])))
    for found in (blocks, bounded):
        assert samples_of(found) == expected
        assert sum(block.records for block in found) == len(rows)
        assert sum(block.bad.total for block in found) == sum(
            row["time"] is None or row["value"] is None for row in rows
        )
    assert all(len(block.series) == 1 or len(block.series.labels) <= 2 * 60 for block in bounded if block.records > 1)
    lengths = [min(group_rows, len(rows) - first) for first in range(0, len(rows), group_rows)]
    assert [block.records for block in blocks] == [
        min(most, length - first) for length in lengths for first in range(0, length, most)
    ]


def test_blocks_have_as_many_rows_as_the_limit_except_the_last_of_a_row_group(tmp_path: Path) -> None:
    table = pa.table({"time": pa.array(range(17), pa.timestamp("ms")), "value": [1.0] * 17})
    path = write(tmp_path, table, row_group_size=10)
    assert [block.records for block in read(path, VALUE, most=4)] == [4, 4, 2, 4, 3]


def test_the_columns_of_an_export_are_read_by_default(tmp_path: Path) -> None:
    table = pa.table(
        {
            "metric": ["up", "up", "down"],
            "labels": pa.array([[("a", "1")], [("a", "1")], [("a", "1")]], type=MAP),
            "time": pa.array([1_000, 2_000, 3_000], type=pa.timestamp("us", "UTC")),
            "value": np.array([bits(1.0), STALE, bits(-0.0)], dtype=np.uint64).view(np.float64),
        }
    )
    blocks = read(write(tmp_path, table), EXPORT_MAPPING)
    assert samples_of(blocks) == {
        (("__name__", "up"), ("a", "1")): [(1, bits(1.0)), (2, STALE)],
        (("__name__", "down"), ("a", "1")): [(3, bits(-0.0))],
    }


def test_a_table_of_pandas_with_categories_and_zoned_times_is_read(tmp_path: Path) -> None:
    times = pd.date_range("2026-03-29", periods=50, freq="h", tz="Europe/Berlin")
    frame = pd.DataFrame(
        {
            "when": times,
            "host": pd.Categorical([f"host-{number % 7}" for number in range(50)]),
            "load": np.arange(50, dtype=np.float32) / 8,
        }
    )
    path = tmp_path / "frame.parquet"
    frame.to_parquet(path, row_group_size=13)
    mapping = ParquetMapping.from_table({"metric": "load", "labels": ["host"], "value": "load", "time": "when"})
    found = samples_of(read(str(path), mapping, most=5))
    for number, time in enumerate(times):
        labels = (("__name__", "load"), ("host", f"host-{number % 7}"))
        assert found[labels][number // 7] == (int(time.timestamp() * 1000), bits(number / 8))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_timestamps_of_every_unit_and_zone(tmp_path: Path, unit: str, zone: str | None) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    a_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    numbers = [int(moment.timestamp()) * a_second, -a_second, 0]
    table = pa.table({"time": pa.array(numbers, type=pa.timestamp(unit, zone)), "value": [1, 2, 3]})
    (block,) = read(write(tmp_path, table), VALUE)
    assert block.times.tolist() == [int(moment.timestamp() * 1000), -1000, 0]
    assert block.values.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("kind", "unit", "numbers", "milliseconds"),
    [
        (pa.int64(), "s", [5, 2**62, -(2**62)], [5000]),
        (pa.int32(), "s", [2**31 - 1], [(2**31 - 1) * 1000]),
        (pa.uint64(), "ms", [2**63 - 1, 2**63], [2**63 - 1]),
        (pa.int64(), "us", [1999, -1], [1, -1]),
        (pa.int64(), "ns", [1_999_999, -1_000_001], [1, -2]),
        (pa.float64(), "s", [1500000000.123, float("nan"), float("inf"), 1e300], [1500000000123]),
        (pa.float32(), "ms", [2.0, -3.0], [2, -3]),
        (pa.float64(), "ns", [1.5e15], [1_500_000_000]),
    ],
)
def test_times_that_are_numbers(
    tmp_path: Path, kind: pa.DataType, unit: str, numbers: list[float], milliseconds: list[int]
) -> None:
    table = pa.table({"time": pa.array(numbers, type=kind), "value": [1.0] * len(numbers)})
    mapping = ParquetMapping.from_table({"value": "value", "time": {"column": "time", "unit": unit}, "metric": "up"})
    (block,) = read(write(tmp_path, table), mapping)
    assert block.times.tolist() == milliseconds
    outside = len(numbers) - len(milliseconds)
    assert block.bad.counts == ({"time out of range": outside} if outside else {})


def test_bad_rows_are_counted_by_reason_and_shown_by_position(tmp_path: Path) -> None:
    raw = pa.array([b"a", b"\xff", b"b", b"c", b"v" * 31, b"d", b"e"]).view(pa.string())
    labels = [
        [],
        [],
        [("a", "1"), ("a", "2")],
        [("", "x")],
        [],
        [(letter, "x") for letter in "abcd"],
        [("n" * 21, "x")],
    ]
    table = pa.table({"host": raw, "labels": pa.array(labels, type=MAP), "time": [1] * 7, "value": [1.0] * 7})
    mapping = ParquetMapping.from_table(
        {"value": "value", "time": {"column": "time", "unit": "ms"}, "labels": ["host"], "labels_map": "labels"}
    )
    path = write(tmp_path, table, row_group_size=2)
    blocks = read(path, mapping, limits=Limits(labels=4, label_name=20, label_value=30))
    assert list(samples_of(blocks)) == [(("host", "a"),)]
    examples = [example for block in blocks for example in block.bad.examples]
    assert [example.reason for example in examples] == [
        "label is not UTF-8",
        "label name twice",
        "label without a name",
        "label value too long",
        "too many labels",
        "label name too long",
    ]
    assert sum(block.bad.total for block in blocks) == 6
    assert [(example.offset, example.excerpt) for example in examples] == [
        (row, f"row {row % 2} of row group {row // 2}") for row in range(1, 7)
    ]


def test_only_the_first_bad_rows_are_shown(tmp_path: Path) -> None:
    table = pa.table(
        {"time": pa.array([None] * 100, type=pa.timestamp("ms")), "value": pa.array([None] * 100, pa.float64())}
    )
    (block,) = read(write(tmp_path, table), VALUE)
    assert block.bad.counts == {"time is null": 100}
    assert [example.offset for example in block.bad.examples] == list(range(20))


def test_a_large_row_group_gives_the_same_blocks_each_time_and_alone(tmp_path: Path) -> None:
    rows = 20_000
    table = pa.table(
        {
            "metric": [f"metric-{number % 300}" for number in range(rows)],
            "labels": pa.array([[("n", str(number % 70))] for number in range(rows)], type=MAP),
            "time": pa.array(range(rows), type=pa.timestamp("ms")),
            "value": np.arange(rows, dtype=np.float64),
        }
    )
    path = write(tmp_path, table, row_group_size=15_000, data_page_size=512, dictionary_pagesize_limit=600)
    together = [digest_of(block) for block in read(path, EXPORT_MAPPING, most=4_000)]
    assert len(together) == 4 + 2
    alone = [
        digest_of(block) for group in (1, 0) for block in read_row_groups(FS, path, [group], EXPORT_MAPPING, 4_000)
    ]
    assert alone == together[4:] + together[:4]
    assert sum(len(samples) for samples in samples_of(read(path, EXPORT_MAPPING, most=4_000)).values()) == rows


def test_columns_that_switch_from_a_dictionary_to_strings_are_read(tmp_path: Path) -> None:
    """Writers switch to plain strings within a row group when a dictionary becomes too long."""
    texts = [f"text-{number * 7919 % 5000}" for number in range(5000)]
    table = pa.table(
        {
            "metric": texts,
            "labels": pa.array([[("a", text), (text, "b")] for text in texts], type=MAP),
            "time": pa.array(range(5000), type=pa.timestamp("ms")),
            "value": [0.0] * 5000,
        }
    )
    path = write(tmp_path, table, dictionary_pagesize_limit=500, data_page_size=500)
    found = samples_of(read(path, EXPORT_MAPPING, most=1234))
    assert found == {(("__name__", text), ("a", text), (text, "b")): [(number, 0)] for number, text in enumerate(texts)}


def test_row_groups_have_their_rows_and_bytes(tmp_path: Path) -> None:
    path = write(tmp_path, pa.table({"time": range(10), "value": range(10)}), row_group_size=4)
    found = row_groups(FS, path)
    assert [(group.number, group.first_row, group.rows) for group in found] == [(0, 0, 4), (1, 4, 4), (2, 8, 2)]
    assert all(group.size >= group.rows * 8 for group in found)
    assert row_groups(SubTreeFileSystem(str(tmp_path), FS), "samples.parquet") == found


def test_a_file_without_rows_has_no_blocks(tmp_path: Path) -> None:
    path = write(tmp_path, pa.table({"time": pa.array([], pa.timestamp("ms")), "value": pa.array([], pa.float64())}))
    assert read(path, VALUE) == []


@pytest.mark.parametrize(
    ("columns", "table", "message"),
    [
        ({"t": [1]}, {"value": "value", "time": "t"}, "has no column value"),
        ({"value": ["x"]}, {"value": "value", "time": "value"}, "a value must be"),
        ({"value": [1.0]}, {"value": "value", "time": "value"}, "so the mapping must have its unit (s, ms, us, ns)"),
        ({"value": [1.0], "t": ["x"]}, {"value": "value", "time": "t"}, "a time must be a timestamp or a number"),
        (
            {"value": [1.0], "t": [datetime(2026, 1, 1, tzinfo=UTC)]},
            {"value": "value", "time": {"column": "t", "unit": "ms"}},
            "which has its own unit",
        ),
        (
            {"value": [1.0], "t": [datetime(2026, 1, 1, tzinfo=UTC)], "host": [5]},
            {"value": "value", "time": "t", "labels": ["host"]},
            "a label must be a string",
        ),
        (
            {"value": [1.0], "t": [datetime(2026, 1, 1, tzinfo=UTC)], "labels": ["a=b"]},
            {"value": "value", "time": "t", "labels_map": "labels"},
            "labels must be a map of strings to strings",
        ),
    ],
)
def test_columns_that_do_not_fit_are_refused_with_a_list_of_the_existing_ones(
    tmp_path: Path, columns: dict[str, Any], table: dict[str, Any], message: str
) -> None:
    path = write(tmp_path, pa.table(columns))
    mapping = ParquetMapping.from_table({"metric": "up", **table})
    with pytest.raises(UnusableMapping, match=r"Columns of .*samples\.parquet: ") as caught:
        check_columns(FS, path, mapping)
    assert message in str(caught.value)
    assert "value (" in str(caught.value) or "t (" in str(caught.value)
    with pytest.raises(UnusableMapping):
        next(read_row_groups(FS, path, [0], mapping, 10))


def test_a_missing_row_group_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, pa.table({"time": pa.array([1], pa.timestamp("ms")), "value": [1.0]}))
    with pytest.raises(UnreadableSource, match="has 1 row groups, but not row group 1"):
        list(read_row_groups(FS, path, [1], VALUE, 10))
