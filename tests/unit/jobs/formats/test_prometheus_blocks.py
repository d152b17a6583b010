"""Handwritten blocks, read in parts and pieces of all sizes."""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from strandline.jobs.formats.prometheus_blocks import (
    BlockInfo,
    SeriesRange,
    chunk_files,
    find_blocks,
    index_file,
    plan_ranges,
    read_range,
)
from strandline.jobs.sample_block import SampleBlock
from strandline.wire.decode import Limits
from support.prometheus_blocks import (
    FLOAT_HISTOGRAM,
    HISTOGRAM,
    STALE,
    XOR_2,
    Chunk,
    Labels,
    Sample,
    Series,
    write_block,
    xor_chunk,
)
from support.sample_blocks import digest_of, samples_of
from support.xor_chunks import read_chunk

pytestmark = pytest.mark.unit

FS = LocalFileSystem()
EVERYTHING = 1 << 20
I64 = st.integers(-(2**63), 2**63 - 1)


def bits(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def a_series(number: int, *chunks: Chunk, **labels: str) -> Series:
    return tuple(sorted({"__name__": "up", "number": f"{number:05d}", **labels}.items())), chunks


def samples(count: int, *, start: int = 0, step: int = 15_000) -> list[Sample]:
    return [(start + step * number, bits(number / 7)) for number in range(count)]


def truth_of(series: Sequence[Series]) -> dict[Labels, list[Sample]]:
    found = {labels: [sample for chunk in chunks for sample in chunk.samples] for labels, chunks in series}
    return {labels: own for labels, own in found.items() if own}


def only_block(folder: Path) -> BlockInfo:
    (block,) = find_blocks(FS, str(folder))
    return block


def read_all(
    block: BlockInfo, *, part: int = EVERYTHING, most: int = EVERYTHING, limits: Limits | None = None
) -> Iterator[SampleBlock]:
    for series in plan_ranges(FS, block, part):
        yield from read_range(FS, block, series, most, limits=limits)


STARTS = st.one_of(st.integers(-(10**12), 10**12), I64)
STEPS = st.integers(0, 10**6)
STEP_CHANGES = st.one_of(st.just(0), st.integers(-(2**13), 2**13), st.integers(-(2**20), 2**20), I64)
VALUES = st.one_of(
    st.sampled_from([0, STALE, bits(1.0), bits(-1.5)]),
    st.integers(0, 1000).map(float).map(bits),
    st.integers(0, 2**64 - 1),
)


@st.composite
def chunks(draw: st.DrawFn) -> Chunk:
    """Regular and irregular steps, and values with and without common bits."""
    time, step = draw(STARTS), draw(STEPS)
    found = []
    for _ in range(draw(st.integers(0, 12))):
        found.append((time, draw(VALUES)))
        step += draw(STEP_CHANGES)
        time = (time + step + 2**63) % 2**64 - 2**63
    return Chunk(found)


@given(
    st.lists(st.lists(chunks(), max_size=4), max_size=6),
    st.sampled_from([1, 2]),
    st.integers(1, 5),
    st.integers(1, 40),
    st.integers(1, 40),
)
@settings(max_examples=60, deadline=None)
def test_every_sample_is_read_whatever_the_parts_and_pieces(
    drawn: list[list[Chunk]], version: int, chunks_a_file: int, part: int, most: int
) -> None:
    series = [a_series(number, *own) for number, own in enumerate(drawn)]
    with TemporaryDirectory() as folder:
        write_block(Path(folder), series, version=version, chunks_a_file=chunks_a_file)
        block = only_block(Path(folder))
        blocks = list(read_all(block, part=part, most=most))
    assert samples_of(blocks) == truth_of(series)
    assert sum(block.records for block in blocks) == sum(len(own) for own in drawn)
    assert all(len(block.times) <= max(most, 12) for block in blocks)
    assert not any(block.bad.total for block in blocks)


@given(chunks())
@example(Chunk([(0, 5), (1, 5), (2, 2**63 + 1), (3, 7)]))
@settings(deadline=None)
def test_the_writer_that_these_tests_use_agrees_with_another_reader(chunk: Chunk) -> None:
    if chunk.samples:
        assert read_chunk(chunk.encoded() + b"") == list(chunk.samples)


def test_a_chunk_that_was_reopened_begins_with_the_whole_word_as_its_window(tmp_path: Path) -> None:
    own = [(0, 5), (15, 5), (30, bits(2.5)), (45, bits(3.5))]
    series = [a_series(1, Chunk(own, data=xor_chunk(own, reopened=True)))]
    assert xor_chunk(own, reopened=True) != xor_chunk(own)
    write_block(tmp_path, series)
    assert samples_of(read_all(only_block(tmp_path))) == truth_of(series)


def test_long_chunks_and_gaps_between_chunks_are_read(tmp_path: Path) -> None:
    """A last chunk of a run that is longer than assumed, and a gap longer than the maximum."""
    noise = [(1000 * number, (number * 0x9E3779B97F4A7C15) % 2**64) for number in range(9000)]
    series = [
        a_series(1, Chunk(samples(10))),
        a_series(2, Chunk(noise)),
        a_series(3, Chunk(samples(10))),
    ]
    write_block(tmp_path, series)
    block = only_block(tmp_path)
    assert samples_of(read_all(block)) == truth_of(series)
    # Other writers may order the chunks of adjacent series differently.
    for number, part in enumerate(plan_ranges(FS, block, 1)):
        (labels, _) = series[number]
        assert list(samples_of(read_range(FS, block, part, 100))) == [labels]


def test_pieces_of_the_index_and_runs_of_chunks_may_be_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = [a_series(number, Chunk(samples(5)), Chunk(samples(3, start=10**6))) for number in range(40)]
    write_block(tmp_path, series, chunks_a_file=7)
    block = only_block(tmp_path)
    for piece, run in ((1, 1), (100, 30), (1000, 10_000)):
        monkeypatch.setattr(index_file, "PIECE_BYTES", piece)
        monkeypatch.setattr(index_file, "PIECE_SERIES", max(1, piece // 50))
        monkeypatch.setattr(chunk_files, "_MAX_RUN", run)
        assert samples_of(read_all(block, part=100, most=9)) == truth_of(series)


def test_the_same_arguments_give_the_same_blocks_and_parts_can_run_alone(tmp_path: Path) -> None:
    series = [
        a_series(number, *(Chunk(samples(30, start=10**6 * c)) for c in range(number % 5))) for number in range(60)
    ]
    write_block(tmp_path, series)
    block = only_block(tmp_path)
    ranges = plan_ranges(FS, block, 500)
    assert ranges == plan_ranges(FS, block, 500)
    assert len(ranges) > 3
    forwards = [[digest_of(piece) for piece in read_range(FS, block, part, 100)] for part in ranges]
    backwards = [[digest_of(piece) for piece in read_range(FS, block, part, 100)] for part in reversed(ranges)]
    assert forwards == backwards[::-1]


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 200))
@settings(max_examples=40, deadline=None)
def test_ranges_cover_all_series_once_and_are_as_large_as_allowed(counts: list[int], most: int) -> None:
    series = [a_series(number, *[Chunk(samples(10))] * count) for number, count in enumerate(counts)]
    with TemporaryDirectory() as folder:
        write_block(Path(folder), series)
        ranges = plan_ranges(FS, only_block(Path(folder)), most)
    assert [number for part in ranges for number in range(part.first, part.behind)] == list(range(len(counts)))
    max_chunks = max(1, most // 10)
    for part in ranges:
        assert part.chunks == sum(counts[part.first : part.behind])
        assert part.chunks <= max_chunks or part.behind == part.first + 1
        if part.behind < len(counts):
            assert part.chunks + counts[part.behind] > max_chunks


def test_a_block_without_figures_is_planned_by_the_usual_size_of_chunks(tmp_path: Path) -> None:
    write_block(tmp_path, [a_series(number, Chunk(samples(2))) for number in range(10)])
    (tmp_path / only_block(tmp_path).ulid / "meta.json").write_text(
        '{"ulid": "01HZZZZZZZZZZZZZZZZZZZZZZ0", "minTime": 0, "maxTime": 9, "version": 1}', encoding="utf-8"
    )
    ranges = plan_ranges(FS, only_block(tmp_path), 600)
    assert ranges == [SeriesRange(0, 5, 5), SeriesRange(5, 10, 5)]


@pytest.mark.parametrize("version", [1, 2])
def test_tombstones_hide_samples_of_their_series_only(tmp_path: Path, version: int) -> None:
    series = [
        a_series(number, Chunk(samples(10, step=10)), Chunk(samples(10, start=100, step=10))) for number in range(4)
    ]
    deleted = [(2, 150, 2**63 - 1), (1, 20, 40), (2, -(2**63), 10), (1, 35, 60)]
    write_block(tmp_path, series, version=version, deleted=deleted)
    expected = truth_of(series)
    for number, first, last in deleted:
        labels, _ = series[number]
        expected[labels] = [(time, value) for time, value in expected[labels] if not first <= time <= last]
    assert samples_of(read_all(only_block(tmp_path), part=20, most=15)) == expected


def test_tombstones_apply_to_their_series_after_a_bad_one(tmp_path: Path) -> None:
    series = [((), [Chunk(samples(3))]), a_series(1, Chunk(samples(3))), a_series(2, Chunk(samples(3)))]
    write_block(tmp_path, series, deleted=[(0, 0, 0), (1, 0, 10**9)])
    assert samples_of(read_all(only_block(tmp_path))) == truth_of(series[2:])


def test_a_block_without_a_tombstones_file_has_none(tmp_path: Path) -> None:
    series = [a_series(1, Chunk(samples(3)))]
    write_block(tmp_path, series)
    block = only_block(tmp_path)
    (Path(block.path) / "tombstones").unlink()
    assert samples_of(read_all(block)) == truth_of(series)


def test_chunks_of_other_encodings_are_bad_records_with_a_reason(tmp_path: Path) -> None:
    other = b"\x00\x01 something"
    series = [
        a_series(1, Chunk(samples(3)), Chunk(encoding=HISTOGRAM, data=other)),
        a_series(2, Chunk(encoding=FLOAT_HISTOGRAM, data=other)),
        a_series(3, Chunk(encoding=XOR_2, data=other), Chunk(encoding=XOR_2, data=other), Chunk(encoding=0, data=b"")),
        a_series(4, Chunk(samples(5))),
    ]
    write_block(tmp_path, series)
    (block,) = read_all(only_block(tmp_path))
    assert samples_of([block]) == truth_of(series)
    assert block.bad.counts == {"native histogram": 2, "unknown chunk encoding 4": 2, "unknown chunk encoding 0": 1}
    assert block.records == 7
    assert len(block.bad.examples) == 5
    histogram = block.bad.examples[0]
    assert histogram.reason == "native histogram"
    assert histogram.excerpt.endswith('/chunks/000001 {__name__="up", number="00001"}')
    content = (Path(only_block(tmp_path).path) / "chunks" / "000001").read_bytes()
    assert content[histogram.offset + 1] == HISTOGRAM


def test_xor_data_that_ends_too_early_is_a_bad_record(tmp_path: Path) -> None:
    whole = xor_chunk(samples(20))
    series = [a_series(length, Chunk(data=whole[:length])) for length in range(len(whole))]
    write_block(tmp_path, [*series, a_series(99, Chunk(samples(20), data=whole))])
    blocks = list(read_all(only_block(tmp_path), most=64))
    assert samples_of(blocks) == truth_of([a_series(99, Chunk(samples(20)))])
    assert sum(block.bad.counts.get("chunk is malformed", 0) for block in blocks) == len(whole)
    assert sum(block.records for block in blocks) == len(whole) + 1


def test_series_that_break_a_limit_are_bad_records(tmp_path: Path) -> None:
    good = a_series(1, Chunk(samples(3)))
    series: list[Series] = [
        good,
        a_series(2, Chunk(samples(1)), a="1", b="2", c="3"),
        a_series(3, Chunk(samples(1)), **{"n" * 21: "x"}),
        a_series(4, Chunk(samples(1)), a="v" * 31),
        a_series(5, Chunk(samples(1)), a="\udcff"),
        ((("a", "1"), ("a", "2")), [Chunk(samples(1))]),
        ((("", "1"),), [Chunk(samples(1))]),
        ((("a", ""),), [Chunk(samples(1))]),
        ((), [Chunk(samples(1))]),
    ]
    write_block(tmp_path, series)
    (block,) = read_all(only_block(tmp_path), limits=Limits(labels=4, label_name=20, label_value=30))
    assert samples_of([block]) == truth_of([good])
    assert block.bad.counts == {
        "too many labels": 1,
        "label name too long": 1,
        "label value too long": 1,
        "label is not UTF-8": 1,
        "label name twice": 1,
        "label without a name": 1,
        "series without a label": 2,
    }
    assert block.records == 1 + 8


def test_labels_that_are_not_sorted_come_out_sorted_and_without_empty_ones(tmp_path: Path) -> None:
    write_block(tmp_path, [((("b", "1"), ("empty", ""), ("a", "2"), ("__name__", "up")), [Chunk(samples(2))])])
    assert samples_of(read_all(only_block(tmp_path))) == {
        (("__name__", "up"), ("a", "2"), ("b", "1")): samples(2),
    }


def test_a_piece_with_only_bad_series_is_reported(tmp_path: Path) -> None:
    write_block(tmp_path, [((), [Chunk(samples(1))])])
    (block,) = read_all(only_block(tmp_path))
    assert (len(block.series), len(block.times), block.records) == (0, 0, 1)
    assert block.bad.counts == {"series without a label": 1}


def test_the_list_of_all_series_may_be_anywhere_in_the_postings_table(tmp_path: Path) -> None:
    series = [a_series(number, Chunk(samples(2)), long="x" * 400) for number in range(50)]
    write_block(tmp_path, series, all_last=True)
    assert samples_of(read_all(only_block(tmp_path))) == truth_of(series)


def test_a_block_without_series_has_no_parts(tmp_path: Path) -> None:
    write_block(tmp_path, [])
    assert plan_ranges(FS, only_block(tmp_path), 10) == []


def test_blocks_are_found_by_time_below_any_file_system(tmp_path: Path) -> None:
    names = [f"01HZZZZZZZZZZZZZZZZZZZZZZ{number}" for number in range(3)]
    for name, start in zip(names, (2000, 1000, 3000), strict=True):
        write_block(tmp_path / "data", [a_series(1, Chunk(samples(4, start=start)))], ulid=name)
    for other in ("wal", "chunks_head", f"{names[0]}.tmp-for-creation"):
        (tmp_path / "data" / other).mkdir()
    (tmp_path / "data" / "lock").touch()
    fs = SubTreeFileSystem(str(tmp_path), FS)
    found = find_blocks(fs, "data")
    assert [block.ulid for block in found] == [names[1], names[0], names[2]]
    assert [block.path for block in found] == [f"data/{block.ulid}" for block in found]
    assert (found[0].min_time, found[0].max_time) == (1000, 46_001)
    assert (found[0].series, found[0].chunks, found[0].samples) == (1, 1, 4)
    own = tmp_path / "data" / names[1]
    assert found[0].size == sum(path.stat().st_size for path in own.rglob("*") if path.is_file())
    assert find_blocks(fs, f"data/{names[1]}/") == find_blocks(fs, f"data/{names[1]}") == [found[0]]
    (block,) = read_range(fs, found[0], SeriesRange(0, 1, 1), 10)
    assert len(block.times) == 4
