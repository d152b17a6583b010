"""Damaged and unreachable Parquet files: an error that names the file."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from strandline.jobs.formats.byte_ranges import UnreadableSource
from strandline.jobs.formats.parquet import (
    EXPORT_MAPPING,
    UnusableMapping,
    read_row_groups,
    row_groups,
)
from support.parquet_files import FS, MAP, VALUE, read, write

pytestmark = pytest.mark.unit


def test_a_file_of_any_other_length_is_an_error_by_name(tmp_path: Path) -> None:
    path = Path(write(tmp_path, pa.table({"time": pa.array(range(50), pa.timestamp("ms")), "value": [1.0] * 50})))
    sound = path.read_bytes()
    for length in range(0, len(sound), 7):
        path.write_bytes(sound[:length])
        with pytest.raises(UnreadableSource, match=r"samples\.parquet is not a valid Parquet file"):
            read(str(path), VALUE)
    with pytest.raises(UnreadableSource, match=r"nowhere\.parquet does not exist"):
        row_groups(FS, str(tmp_path / "nowhere.parquet"))


def test_a_damaged_page_is_an_error_by_name(tmp_path: Path) -> None:
    table = pa.table({"time": pa.array(range(3000), pa.timestamp("ms")), "value": np.arange(3000) / 7})
    path = Path(write(tmp_path, table, write_page_checksum=True))
    sound = bytearray(path.read_bytes())
    sound[2000] ^= 0xFF
    path.write_bytes(sound)
    with pytest.raises(UnreadableSource, match=r"samples\.parquet is not a valid Parquet file"):
        read(str(path), VALUE)


def test_a_file_with_any_bit_changed_is_read_or_refused_by_name(tmp_path: Path) -> None:
    """Metadata has no checksum, so some changes are not detected, but they must not have other consequences."""
    table = pa.table(
        {
            "metric": [f"metric-{number % 3}" for number in range(30)],
            "labels": pa.array([[("a", str(number % 5))] for number in range(30)], type=MAP),
            "time": pa.array(range(30), pa.timestamp("ms")),
            "value": np.arange(30) / 7,
        }
    )
    path = Path(write(tmp_path, table, compression="none", store_schema=False))
    sound = path.read_bytes()
    refused = 0
    for position in range(0, len(sound), 7):
        path.write_bytes(sound[:position] + bytes([sound[position] ^ (1 << position % 8)]) + sound[position + 1 :])
        try:
            read(str(path), EXPORT_MAPPING)
        except (UnreadableSource, UnusableMapping) as error:
            refused += 1
            found = str(error)
            assert "samples.parquet" in found
    assert refused > 50


class FailingFiles:
    """A file system that becomes unreachable after some reads."""

    def __init__(self, reads: int) -> None:
        self.reads = reads

    def open_input_file(self, path: str) -> pa.NativeFile:
        files = self

        class Failing(io.BytesIO):
            def read(self, size: int | None = -1) -> bytes:
                files.reads -= 1
                if files.reads < 0:
                    raise ConnectionResetError("the connection was reset")
                return super().read(size)

        return pa.PythonFile(Failing(Path(path).read_bytes()), mode="r")


def test_a_failing_file_system_is_not_reported_as_a_damaged_file(tmp_path: Path) -> None:
    table = pa.table({"time": pa.array(range(3000), pa.timestamp("ms")), "value": np.arange(3000) / 7})
    path = write(tmp_path, table, row_group_size=1000)
    failures = 0
    for reads in range(40):
        try:
            blocks = list(read_row_groups(FailingFiles(reads), path, [0, 1, 2], VALUE, 500))
        except ConnectionResetError:
            failures += 1
        else:
            assert sum(len(block.times) for block in blocks) == 3000
    assert 5 < failures < 40
