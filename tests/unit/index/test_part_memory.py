"""The columns that Java reads: the content of their file, byte by byte."""

import gc
import mmap
import os
import struct
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.part_columns import ABSENT, LIVE, PartColumns, PartRows
from strandline.index.part_memory import PartMemory

pytestmark = pytest.mark.unit

SHARED = ["part_id", "start", "end"]


@dataclass
class Stored:
    """The valid rows of a file."""

    part_id: list[int]
    start: list[int]
    end: list[int]


def stored(memory: PartMemory) -> Stored:
    """Parse the file value by value."""
    data, rows = Path(memory.path).read_bytes(), memory.rows
    ids_end = 8 + (4 * rows + 7) // 8 * 8
    assert len(data) == ids_end + 16 * rows
    (length,) = struct.unpack_from("<Q", data)
    return Stored(
        list(struct.unpack_from(f"<{length}I", data, 8)),
        list(struct.unpack_from(f"<{length}q", data, ids_end)),
        list(struct.unpack_from(f"<{length}q", data, ids_end + 8 * rows)),
    )


def rows_from(first_id: int, count: int, gap: int = 1) -> PartRows:
    """Rows with distinct values in all columns and keys."""
    ids = np.arange(first_id, first_id + count * gap, gap, dtype=np.uint32)
    rows = PartRows.new_keys(ids, *(ids.astype(np.uint64) * 10 + position for position in range(3)))
    rows.start[:] = -10 * ids.astype(np.int64) - 1
    rows.last[:] = 10 * ids.astype(np.int64) + 7
    rows.newest[:] = ids % 11
    rows.active_in[:] = ids % 13
    rows.number[:] = ids % 17
    return rows


def assert_same(rows: PartRows, expected: PartRows) -> None:
    for field in fields(PartRows):
        column, expected_column = getattr(rows, field.name), getattr(expected, field.name)
        assert column.dtype == expected_column.dtype
        assert np.array_equal(column, expected_column), field.name


def assert_holds(columns: PartColumns, expected: PartRows) -> None:
    """In the columns, and in the file."""
    assert len(columns) == len(expected)
    assert_same(columns.rows, expected)
    assert columns.live == np.count_nonzero(expected.end == LIVE)
    assert stored(columns.memory) == Stored(*(getattr(expected, name).tolist() for name in SHARED))


def open_files() -> int:
    """The number of memory files that this process has open, including one for each mapping."""
    gc.collect()
    count = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        # Some are closed when they are read, at least that of the folder itself.
        with suppress(FileNotFoundError):
            count += "strandline-keys" in str(descriptor.readlink())
    return count


@pytest.mark.parametrize("needed", [0, 1, 2, 1000, 1 << 16, (1 << 16) + 1])
def test_a_memory_has_room_for_what_is_needed_and_all_of_it_is_zero(needed: int) -> None:
    memory = PartMemory(needed)
    assert memory.rows >= needed
    assert [len(getattr(memory, name)) for name in SHARED] == [memory.rows] * 3
    assert stored(memory) == Stored([], [], [])
    memory.set_length(memory.rows)
    zeros = [0] * memory.rows
    assert stored(memory) == Stored(zeros, zeros, zeros)


def test_the_columns_are_one_after_the_other() -> None:
    memory = PartMemory(3)
    memory.part_id[:3] = [1, 2**31, 2**32 - 1]
    memory.start[:3] = [-5, LIVE, 6]
    memory.end[:3] = [ABSENT, LIVE, -7]
    memory.set_length(2)
    assert stored(memory) == Stored([1, 2**31], [-5, LIVE], [ABSENT, LIVE])
    memory.set_length(3)
    assert stored(memory) == Stored([1, 2**31, 2**32 - 1], [-5, LIVE, 6], [ABSENT, LIVE, -7])
    # The last of each is where the next one begins.
    memory.part_id[-1], memory.start[-1], memory.end[-1] = 8, -9, -10
    data, rows = Path(memory.path).read_bytes(), memory.rows
    ids_end = 8 + 4 * rows
    assert struct.unpack_from("<I", data, ids_end - 4) == (8,)
    assert struct.unpack_from("<qq", data, ids_end + 8 * rows - 8) == (-9, ABSENT)
    assert struct.unpack_from("<q", data, len(data) - 8) == (-10,)


def test_what_is_written_is_visible_in_every_mapping_of_the_file() -> None:
    memory = PartMemory(4)
    with Path(memory.path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as seen:
        for length in range(5):
            memory.set_length(length)
            memory.part_id[0] = 2**32 - 1 - length
            assert struct.unpack_from("<QI", seen) == (length, 2**32 - 1 - length)


def test_no_two_memories_share_anything() -> None:
    one, other = PartMemory(2), PartMemory(2)
    assert one.path != other.path
    one.part_id[0] = 7
    one.set_length(1)
    assert stored(other) == Stored([], [], [])


def test_arrays_outlive_their_memory_and_its_file_is_closed_with_it() -> None:
    before = open_files()
    memory = PartMemory(2)
    ids, start, end = memory.part_id, memory.start, memory.end
    ids[:2], start[:2], end[:2] = [1, 2], [3, 4], [5, 6]
    memory.set_length(2)
    rows, open_with_memory = memory.rows, open_files()
    with Path(memory.path).open("rb") as other:
        del memory
        end[1] = 60
        # A process that has opened the file can still read it.
        other.seek(-8 * rows, os.SEEK_END)
        assert struct.unpack("<qq", other.read(16)) == (5, 60)
    assert open_files() < open_with_memory
    assert (ids[:2].tolist(), start[:2].tolist(), end[:2].tolist()) == ([1, 2], [3, 4], [5, 60])
    del ids, start, end
    assert open_files() == before


def test_no_files_stay_open_however_often_columns_move() -> None:
    before = open_files()
    columns = PartColumns()
    open_for_columns = open_files() - before
    for number in range(50):
        memory = columns.memory
        columns.append(rows_from(2000 * number, 2000))
        columns.remove(np.arange(len(columns) - 1))
        assert columns.squeeze() is not None
        assert columns.memory is not memory
    del memory
    assert open_files() - before == open_for_columns
    columns.append(rows_from(200_000, columns.memory.rows))
    assert open_files() - before == open_for_columns
    del columns
    assert open_files() == before


def test_columns_begin_with_no_rows_or_with_those_they_are_given() -> None:
    assert_holds(PartColumns(), rows_from(0, 0))
    assert_holds(PartColumns(rows_from(0, 0)), rows_from(0, 0))
    assert_holds(PartColumns(rows_from(5, 3, gap=4)), rows_from(5, 3, gap=4))
    assert_holds(PartColumns(rows_from(2**32 - 3, 3)), rows_from(2**32 - 3, 3))


def test_rows_that_are_moved_have_those_columns_in_the_memory_that_lie_in_one() -> None:
    rows, memory = rows_from(5, 3), PartMemory(3)
    moved = rows.moved_into(memory)
    assert_same(moved, rows)
    for field in fields(PartRows):
        column = getattr(moved, field.name)
        is_shared = field.name in SHARED
        assert np.shares_memory(column, getattr(rows, field.name)) is not is_shared
        if is_shared:
            assert np.shares_memory(column, getattr(memory, field.name))
    rows.start[0] = 99
    assert moved.start[0] != 99


def test_changes_of_rows_are_in_the_file_at_once() -> None:
    columns = PartColumns(rows_from(5, 3))
    columns.rows.start[1] = -1000
    columns.end(np.array([True, False, False]))
    columns.remove(np.array([2]))
    assert stored(columns.memory) == Stored([5, 6, 7], [-51, -1000, -71], [57, LIVE, ABSENT])


def test_rows_that_a_reader_holds_stay_unchanged_when_the_columns_move() -> None:
    columns = PartColumns(rows_from(0, 2000))
    columns.remove(np.arange(1500))
    held, memory = columns.rows, columns.memory
    before = held.take(np.arange(2000))
    assert columns.squeeze() is not None
    columns.append(rows_from(5000, 100_000))
    columns.rows.end[:] = 5
    assert columns.memory is not memory
    assert_same(held, before)
    assert stored(memory).part_id == [], "a reader in Java must not take it for the current memory"


def test_memory_is_freed_although_java_has_it_mapped() -> None:
    """Java unmaps memory when it is garbage-collected, which may take days."""
    memory = PartMemory(1)
    memory.start[:] = 7
    memory.set_length(1)
    file = os.open(memory.path, os.O_RDONLY)
    with mmap.mmap(file, 0, prot=mmap.PROT_READ) as mapped:
        held = memory.start
        assert os.fstat(file).st_blocks > 0
        del memory
        assert held[0] == 7, "an array keeps its values"
        del held
        assert os.fstat(file).st_blocks == 0
        assert mapped[:8] == bytes(8)
    os.close(file)


STEPS = st.one_of(
    st.tuples(st.just("append"), st.sampled_from([0, 1, 3, 1000, 1024, 1500, 70_000])),
    st.tuples(st.just("forget"), st.integers(1, 5)),
    st.tuples(st.just("end"), st.integers(1, 5)),
    st.tuples(st.just("begin again"), st.integers(1, 5)),
    st.tuples(st.just("squeeze"), st.none()),
)


@given(st.integers(0, 2000) | st.none(), st.lists(STEPS, max_size=8), st.integers(1, 3))
def test_whatever_happens_to_columns_is_in_their_memory(
    begun: int | None, steps: list[tuple[str, int | None]], gap: int
) -> None:
    """Compared with columns that are new arrays after each step."""
    expected = rows_from(0, begun or 0, gap)
    columns = PartColumns(rows_from(0, begun, gap) if begun is not None else None)
    next_id = (begun or 0) * gap
    for step, number in steps:
        some = np.arange(len(expected)) % (number or 1) == 0
        some &= expected.present()
        match step, number:
            case "append", int():
                columns.append(rows_from(next_id, number, gap))
                expected = PartRows.concatenated([expected, rows_from(next_id, number, gap)])
                next_id += number * gap
            case "forget", _:
                columns.remove(np.flatnonzero(some))
                expected.end[some], expected.newest[some] = ABSENT, -1
            case "end", _:
                columns.end(some)
                expected.end[some] = expected.last[some]
            case "begin again", _:
                columns.resume(int(np.count_nonzero(expected.end[some] != LIVE)))
                columns.rows.start[some], columns.rows.end[some] = -5, LIVE
                expected.start[some], expected.end[some] = -5, LIVE
            case _:
                moved = columns.squeeze()
                if moved is not None:
                    present = expected.present()
                    assert moved[present].tolist() == list(range(np.count_nonzero(present)))
                    expected = expected.take(present)
        assert_holds(columns, expected)
