"""Blocks with every byte changed, and files of every length: an error that names the file, or counted bad records."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem

from strandline.jobs.formats.byte_ranges import UnreadableSource
from strandline.jobs.formats.prometheus_blocks import DamagedBlock, SeriesRange, find_blocks, plan_ranges, read_range
from strandline.jobs.sample_block import SampleBlock
from support.prometheus_blocks import ULID, Chunk, Series, TableOfContents, write_block
from support.sample_blocks import Labels, TimedBits, samples_of

pytestmark = pytest.mark.unit

FS = LocalFileSystem()
SERIES: list[Series] = [
    (
        (("a", str(number)),),
        [Chunk([(1000 * start + step, step * 0x0123456789ABCDE) for step in range(4)]) for start in range(2)],
    )
    for number in range(3)
]
TRUTH: dict[Labels, list[TimedBits]] = {labels: [s for c in chunks for s in c.samples] for labels, chunks in SERIES}


class Damaged:
    """A block, one file of which is changed at a time."""

    def __init__(self, folder: Path, version: int) -> None:
        self.places: TableOfContents = write_block(
            folder, SERIES, version=version, chunks_a_file=4, deleted=[(0, -9, -5)]
        )
        self.folder = folder
        self.block = folder / ULID

    def versions(self, name: str) -> Iterator[tuple[str, int]]:
        """Replace a valid file by damaged ones in turn. Yields the kind of damage, and its byte."""
        path = self.block / name
        sound = path.read_bytes()
        try:
            for position in range(len(sound)):
                changed = sound[position] ^ (0x01, 0x80, 0xFF)[position % 3]
                path.write_bytes(sound[:position] + bytes([changed]) + sound[position + 1 :])
                yield "changed", position
                if position % 3 == 0:
                    path.write_bytes(sound[:position])
                    yield "truncated", position
        finally:
            path.write_bytes(sound)

    def read(self) -> list[SampleBlock]:
        (block,) = find_blocks(FS, str(self.folder))
        return [samples for part in plan_ranges(FS, block, 16) for samples in read_range(FS, block, part, 7)]


@pytest.fixture(params=[1, 2])
def damaged(request: pytest.FixtureRequest, tmp_path: Path) -> Damaged:
    return Damaged(tmp_path, request.param)


def outcome(damaged: Damaged, name: str) -> list[SampleBlock] | None:
    """The blocks read, which must be correct; None after the expected error."""
    try:
        blocks = damaged.read()
    except UnreadableSource as error:
        caught = error
    else:
        caught = None
    if caught is not None:
        assert name in caught.message
        assert caught.remedy
        return None
    for labels, samples in samples_of(blocks).items():
        assert set(samples) <= set(TRUTH[labels])
    return blocks


def is_complete(blocks: list[SampleBlock]) -> bool:
    return samples_of(blocks) == TRUTH and not any(block.bad.total for block in blocks)


def test_a_damaged_index_is_an_error_or_costs_single_series(damaged: Damaged) -> None:
    """Damage to lists of postings other than the list of all series has no effect, because they are not read."""
    seen = set()
    all_series = range(damaged.places.all_postings, damaged.places.all_postings + 4 + 4 * (1 + len(SERIES)) + 4)
    for kind, offset in damaged.versions("index"):
        blocks = outcome(damaged, "index")
        bad = sum(block.bad.total for block in blocks) if blocks is not None else 0
        if kind == "truncated" or offset < 5 or offset >= damaged.places.postings_table or offset in all_series:
            assert blocks is None, (kind, offset)
        elif damaged.places.symbols <= offset < damaged.places.series:
            assert blocks is None or is_complete(blocks), (kind, offset)  # Padding has no effect.
        elif blocks is not None and not is_complete(blocks):
            # One entry of the section of series: the others are read.
            assert bad == 1
            assert len(samples_of(blocks)) == len(SERIES) - 1
            assert damaged.places.series <= offset < damaged.places.all_postings
            seen.update(reason for block in blocks for reason in block.bad.counts)
    assert seen == {"series entry has a wrong checksum", "series entry is cut off"}


@pytest.mark.parametrize("name", ["chunks/000001", "chunks/000002"])
def test_a_damaged_chunk_file_is_an_error_or_costs_single_chunks(tmp_path: Path, name: str) -> None:
    damaged = Damaged(tmp_path, 2)
    seen = set()
    for kind, offset in damaged.versions(name):
        blocks = outcome(damaged, name)
        if offset < 5 or (kind == "truncated" and offset < 8):
            assert blocks is None, (kind, offset)
            continue
        assert blocks is not None
        if kind == "changed" and offset < 8:
            assert is_complete(blocks)
            continue
        counts = [block.bad.counts for block in blocks if block.bad.total]
        assert counts, (kind, offset)
        assert sum(block.records for block in blocks) == 6
        if kind == "changed":
            assert [sum(reasons.values()) for reasons in counts] == [1]
        seen.update(reason for reasons in counts for reason in reasons)
        for example in (example for block in blocks for example in block.bad.examples):
            assert f"{ULID}/{name} " in example.excerpt
    assert seen >= {"chunk has a wrong checksum", "chunk is cut off", "chunk lies outside of its file"}


def test_damaged_tombstones_are_an_error(damaged: Damaged) -> None:
    for _kind, _place in damaged.versions("tombstones"):
        assert outcome(damaged, "tombstones") is None


def test_a_truncated_meta_file_is_an_error(tmp_path: Path) -> None:
    damaged = Damaged(tmp_path, 2)
    for kind, _place in damaged.versions("meta.json"):
        blocks = outcome(damaged, "meta.json")
        assert blocks is None or kind == "changed"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version 2 of the block format is not 1"),
        ({"ulid": 7}, '"ulid" is 7, not a ULID'),
        ({"minTime": "now"}, "\"minTime\" is 'now', not an integer"),
        ({"stats": []}, '"stats" is not an object'),
        ({"stats": {"numChunks": True}}, '"numChunks" is True, not an integer'),
    ],
)
def test_a_meta_file_with_other_content_is_an_error(damaged: Damaged, change: dict[str, object], message: str) -> None:
    path = damaged.block / "meta.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change), encoding="utf-8")
    with pytest.raises(DamagedBlock, match=r"meta\.json") as caught:
        find_blocks(FS, str(damaged.folder))
    assert message in caught.value.message


@pytest.mark.parametrize("name", ["meta.json", "index"])
def test_a_block_without_a_file_is_an_error(damaged: Damaged, name: str) -> None:
    (damaged.block / name).unlink()
    with pytest.raises(DamagedBlock, match=f"{name}: the file is missing"):
        find_blocks(FS, str(damaged.folder))


def test_a_chunk_file_that_is_missing_is_an_error(damaged: Damaged) -> None:
    (damaged.block / "chunks" / "000002").unlink()
    with pytest.raises(DamagedBlock, match="chunks/000002: the file is missing, but the index refers to it"):
        damaged.read()
    shutil.rmtree(damaged.block / "chunks")
    with pytest.raises(DamagedBlock, match="chunks/000001: the file is missing"):
        damaged.read()


def test_folders_without_blocks_are_errors_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match="has no Prometheus blocks"):
        find_blocks(FS, str(tmp_path))
    with pytest.raises(UnreadableSource, match="nowhere does not exist"):
        find_blocks(FS, str(tmp_path / "nowhere"))


def test_a_range_that_the_index_does_not_have_is_an_error(damaged: Damaged) -> None:
    (block,) = find_blocks(FS, str(damaged.folder))
    with pytest.raises(DamagedBlock, match="series 2 to 4 are not among the 3 series"):
        list(read_range(FS, block, SeriesRange(2, 4, 1), 10))
