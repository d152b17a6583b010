"""Compressed files: the same records as plain files, and a clear error for a damaged one."""

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from strandline.jobs.importing.text_parts import TO_THE_END
from strandline.jobs.sources.compressed import CompressedReader, compression_of
from strandline.jobs.sources.files import identify
from strandline.jobs.sources.source_errors import SourceUnusable
from strandline.jobs.sources.text_records import RecordRules, read_chunks

pytestmark = pytest.mark.unit

RULES = RecordRules(chunk_bytes=3_000, max_record=2_000)
TEXT = b"".join(b"line %d %s\n" % (number, b"x" * (number % 97)) for number in range(5_000))


def packed(kind: str) -> bytes:
    return gzip.compress(TEXT) if kind == "gzip" else pa.compress(TEXT, codec="zstd", asbytes=True)


@pytest.mark.parametrize(("ending", "kind"), [(".gz", "gzip"), (".zst", "zstd")])
def test_their_records_are_those_of_the_plain_file_from_any_chunk_on(tmp_path: Path, ending: str, kind: str) -> None:
    path = tmp_path / f"file{ending}"
    path.write_bytes(packed(kind))
    file = identify(str(path))
    assert compression_of(file.uri) == kind

    def chunks(position: int) -> list[bytes]:
        with CompressedReader(file, kind) as reader:
            found = list(read_chunks(reader, position, len(TEXT) + 1, RULES))
        return [data for chunk in found for _, data in chunk.pieces]

    everything = chunks(0)
    assert b"".join(everything) == TEXT
    third = sum(map(len, everything[:3]))
    assert chunks(third) == everything[3:]


def damaged(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]


@pytest.mark.parametrize("harm", [damaged, lambda data: data[: len(data) // 2]], ids=["damaged", "cut short"])
@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, kind: str, harm: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "file"
    path.write_bytes(harm(packed(kind)))
    with CompressedReader(identify(str(path)), kind) as reader, pytest.raises(SourceUnusable, match=r"file can't be"):
        reader.read_at(len(TEXT) + 1, 0)


def test_plain_files_have_no_compression() -> None:
    assert compression_of("s3://bucket/file.csv?region=eu.gz") is None


def test_a_line_of_many_megabytes_is_skipped_with_a_block_or_two_in_memory(tmp_path: Path) -> None:
    huge = 120 << 20
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(b"before\n" + b"x" * huge + b"\nafter\n", 1))
    rules = RecordRules(chunk_bytes=1 << 20, max_record=1 << 20)
    tracemalloc.start()
    try:
        with CompressedReader(identify(str(path)), "gzip") as reader:
            chunks = list(read_chunks(reader, 0, TO_THE_END, rules))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [data for chunk in chunks for _, data in chunk.pieces] == [b"before\n", b"after\n"]
    assert [offset for chunk in chunks for offset in chunk.too_long] == [7]
    assert most < 48 << 20
