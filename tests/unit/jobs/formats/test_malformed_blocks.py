"""Blocks with malformed content but valid checksums, as from a faulty or malicious writer."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.fs import LocalFileSystem

from strandline.jobs.formats.prometheus_blocks import DamagedBlock, find_blocks, plan_ranges, read_range
from strandline.jobs.sample_block import SampleBlock
from support import prometheus_blocks as writer
from support.prometheus_blocks import ULID, Chunk, crc, uvarint, write_block
from support.sample_blocks import samples_of

pytestmark = pytest.mark.unit

FS = LocalFileSystem()
SAMPLES = [(1000 * number, number) for number in range(5)]
GOOD = (("a", "good"),)
# Boundary values, among random bytes.
NUMBERS = st.one_of(st.sampled_from([0, 1, 2, 3, 127, 128, 2**31, 2**32 - 1, 2**63, 2**64 - 1]), st.integers(0, 300))
CONTENTS = st.one_of(st.binary(max_size=60), st.lists(NUMBERS.map(uvarint), max_size=20).map(b"".join))


def read(folder: str) -> list[SampleBlock]:
    (block,) = find_blocks(FS, folder)
    return [samples for part in plan_ranges(FS, block, 1) for samples in read_range(FS, block, part, 3)]


@given(CONTENTS, st.integers(0, 65_535))
@settings(max_examples=60, deadline=None)
def test_any_bytes_as_xor_data_are_samples_or_a_bad_record(content: bytes, count: int) -> None:
    data = count.to_bytes(2, "big") + content
    with TemporaryDirectory() as folder:
        write_block(Path(folder), [((("a", "bad"),), [Chunk(data=data)]), (GOOD, [Chunk(SAMPLES)])])
        blocks = read(folder)
    found = samples_of(blocks)
    assert found.pop(GOOD) == SAMPLES
    assert sum(block.records for block in blocks) == 2
    bad = sum(block.bad.total for block in blocks)
    assert [len(samples) for samples in found.values()] == ([] if bad or not count else [count])


@pytest.mark.parametrize("version", [1, 2])
@given(CONTENTS)
@settings(max_examples=40, deadline=None)
def test_any_bytes_as_the_entry_of_a_series_disturb_no_other(version: int, content: bytes) -> None:
    entry = writer._entry

    def faulty(labels: writer.Labels, *arguments: object) -> bytes:
        if labels == GOOD:
            return entry(labels, *arguments)  # type: ignore[arg-type]
        return uvarint(len(content)) + content + crc(content)

    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "_entry", faulty)
        write_block(Path(folder), [((("a", "bad"),), []), (GOOD, [Chunk(SAMPLES)])], version=version)
        try:
            blocks = read(folder)
        except DamagedBlock as error:
            # The entry refers to a missing chunk file.
            found = error.message
            assert "chunks" in found
            return
    assert samples_of(blocks)[GOOD] == SAMPLES


@given(CONTENTS)
@settings(max_examples=40, deadline=None)
def test_any_bytes_as_symbols_are_an_error_or_bad_series(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        places = write_block(Path(folder), [(GOOD, [Chunk(SAMPLES)])])
        path = Path(folder) / ULID / "index"
        sound = path.read_bytes()
        room = places.series - places.symbols - 8
        content = content[:room].ljust(room, b"\0")
        path.write_bytes(sound[: places.symbols + 4] + content + crc(content) + sound[places.series :])
        try:
            blocks = read(folder)
        except DamagedBlock as error:
            found = error.message
            assert "the symbol table" in found
            return
    assert sum(block.records for block in blocks) == 1
