"""When keys existed, as the lookup server reads it in the columns' memory: the rule is the catalogue's."""

import gc
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.catalogue import _is_there, _there
from strandline.index.lookup_server import LookupServer
from strandline.index.part_columns import ABSENT, LIVE, PartColumns, PartRows
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.vm import start_vm
from strandline.node.query.shard_requests import LABEL_VALUES
from strandline.time_range import EARLIEST, LATEST, TimeRange
from support.lookup_keys import add_keys, key_rows
from support.packed_lookups import ALWAYS, Found, PackedLookup, answer_to, connected

pytestmark = pytest.mark.unit

# Low ids, those around the sign bit, and the highest ones.
IDS = [*range(9), *range(2**31 - 3, 2**31 + 3), *range(2**32 - 6, 2**32)]
MANY = 3000
LAST = 2**32 - 1


class CountedIndex(PartKeyIndex):
    """Counts how often it was opened to a server."""

    opened = 0

    def serve_lookups(self, *arguments: object) -> None:
        self.opened += 1
        super().serve_lookups(*arguments)  # type: ignore[arg-type]  # as they came


class ConnectedServer:
    """A server with one connection. Each key of its index has its id as a label."""

    def __init__(self, index: CountedIndex, server: LookupServer, connection: socket.socket) -> None:
        self.index = index
        self.server = server
        self._connection = connection

    def open(self, columns: PartColumns) -> None:
        self.server.open(self.index, columns)

    def finds(self, *part_ids: int, within: tuple[int, int] = ALWAYS) -> bool:
        """Whether a lookup of keys is answered, correctly, or else declined."""
        selectors = [[("id", str(part_id))] for part_id in part_ids]
        found = answer_to(self._connection, PackedLookup(LABEL_VALUES, selectors, "id", within).frame())
        assert found in (None, Found(sorted(map(str, part_ids)), [1] * len(part_ids)))
        return found is not None


@contextmanager
def connected_server(folder: Path, part_ids: list[int]) -> Iterator[ConnectedServer]:
    start_vm()
    server = LookupServer(folder / "lookups")
    with CountedIndex.open(folder / "index") as index:
        # A server begins to listen when it is opened for the first time.
        server.open(index, PartColumns())
        add_keys(index, {part_id: {"id": str(part_id)} for part_id in part_ids})
        with connected(folder / "lookups") as connection:
            yield ConnectedServer(index, server, connection)
        server.close()


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectedServer]:
    with connected_server(tmp_path_factory.mktemp("few"), IDS) as begun:
        yield begun


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectedServer]:
    """Its ids are the lowest and the highest ones."""
    with connected_server(tmp_path_factory.mktemp("many"), [*range(MANY), *range(2**32 - MANY, 2**32)]) as begun:
        yield begun


def test_a_key_is_found_in_a_range_that_touches_its_times_at_either_edge(few: ConnectedServer) -> None:
    few.open(PartColumns(key_rows({1: (10, 20)})))
    for within in [(10, 20), (15, 15), (0, 10), (20, 30), (0, 99), (EARLIEST, LATEST), (EARLIEST, 10), (20, LATEST)]:
        assert few.finds(1, within=within)
    for within in [(0, 9), (21, 30), (9, 9), (21, 21), (EARLIEST, 9), (21, LATEST)]:
        assert not few.finds(1, within=within)


def test_a_lookup_over_all_times_finds_keys_that_ended(few: ConnectedServer) -> None:
    few.open(PartColumns(key_rows({1: (10, 20), 2: (-30, -20)})))
    for within in [ALWAYS, (99, 98), (LATEST, EARLIEST)]:
        assert few.finds(1, 2, within=within)


def test_a_live_key_exists_from_its_first_sample_on(few: ConnectedServer) -> None:
    few.open(PartColumns(key_rows({1: (10, LIVE), 2: (LIVE, LIVE)})))
    assert few.finds(1, within=(10, 10))
    assert few.finds(1, within=(LATEST, LATEST))
    assert not few.finds(1, within=(0, 9))
    # The other one has had none yet.
    assert not few.finds(2, within=(0, LATEST - 1))
    assert few.finds(2)


def test_a_purged_key_is_declined_in_any_lookup(few: ConnectedServer) -> None:
    few.open(PartColumns(key_rows({1: (10, ABSENT), 2: (10, LIVE)})))
    for within in [ALWAYS, (0, 99), (EARLIEST, LATEST), (EARLIEST, EARLIEST)]:
        assert not few.finds(1, within=within)
        assert not few.finds(1, 2, within=within)
    assert few.finds(2)


def test_a_key_without_a_row_is_declined(few: ConnectedServer) -> None:
    few.open(PartColumns())
    assert not any(few.finds(part_id) for part_id in IDS)
    few.open(PartColumns(key_rows({2: (0, LIVE), 5: (0, LIVE)})))
    assert [part_id for part_id in IDS if few.finds(part_id)] == [2, 5]


def test_one_of_several_keys_that_did_not_exist_declines_all(few: ConnectedServer) -> None:
    few.open(PartColumns(key_rows({1: (0, 10), 2: (0, 20), 3: (0, LIVE)})))
    assert few.finds(1, 2, 3, within=(10, 10))
    assert not few.finds(1, 2, 3, within=(11, 11))
    assert few.finds(2, 3, within=(11, 11))
    assert not few.finds(2, 3, 4, within=(11, 11))


ENDS = st.integers(-3, 12) | st.sampled_from([LIVE, ABSENT, LIVE - 1, ABSENT + 1])
BOUNDS = st.integers(-4, 13) | st.sampled_from([EARLIEST, LATEST])


@given(
    st.dictionaries(st.sampled_from(IDS), st.tuples(st.integers(-3, 12) | st.just(LIVE), ENDS)),
    st.lists(st.tuples(BOUNDS, BOUNDS), min_size=1, max_size=3),
)
def test_lookups_and_the_catalogue_agree_on_which_keys_existed(
    few: ConnectedServer, times: dict[int, tuple[int, int]], ranges: list[tuple[int, int]]
) -> None:
    columns = PartColumns(key_rows(dict(sorted(times.items()))))
    few.open(columns)
    for first, last in ranges:
        within = TimeRange(first, last) if first <= last else None
        found = [part_id for part_id in IDS if few.finds(part_id, within=(first, last))]
        assert found == [part_id for part_id in IDS if _is_there(columns.rows, part_id, within)]
        assert found == columns.rows.part_id[_there(columns.rows.start, columns.rows.end, within)].tolist()


def test_times_that_change_are_seen_at_once(few: ConnectedServer) -> None:
    columns = PartColumns(key_rows({1: (10, LIVE), 2: (10, LIVE)}))
    few.open(columns)
    assert few.finds(1, within=(90, 99))
    columns.rows.last[:] = [50, 60]
    columns.end(np.array([True, False]))
    assert not few.finds(1, within=(51, 99))
    assert few.finds(1, within=(50, 99))
    columns.rows.start[0] = 5
    assert few.finds(1, within=(5, 5))
    columns.rows.end[0] = LIVE
    assert few.finds(1, 2, within=(90, 99))
    columns.remove(np.array([1]))
    assert few.finds(1)
    assert not few.finds(2)


def filled_up(columns: PartColumns, first_id: int) -> PartColumns:
    """With live keys from an id on, until one more would not have room."""
    ids = np.arange(first_id, first_id + columns.memory.rows - len(columns), dtype=np.uint32)
    rows = PartRows.new_keys(ids, *(np.zeros(len(ids), np.uint64),) * 3)
    rows.start[:] = 10
    columns.append(rows)
    return columns


def test_rows_that_are_added_to_the_same_memory_are_seen_at_once(few: ConnectedServer) -> None:
    columns = PartColumns(key_rows({1: (10, 20)}))
    few.open(columns)
    memory = columns.memory
    for part_id in (2, 5):
        assert not few.finds(part_id)
        columns.append(key_rows({part_id: (10, 20)}))
        assert few.finds(part_id)
    assert not few.finds(8)
    filled_up(columns, first_id=7)
    assert few.finds(1, 2, 5, 7, 8, within=(20, 20))
    assert columns.memory is memory


def test_columns_that_have_moved_are_followed_when_they_are_opened_again(few: ConnectedServer) -> None:
    columns = filled_up(PartColumns(key_rows({1: (10, LIVE)})), first_id=8)
    few.open(columns)
    columns.append(key_rows({LAST: (10, LIVE)}))
    columns.rows.end[0] = 20
    # The server finds nothing in the old ones, which are no longer written.
    assert not few.finds(1, within=(20, 20))
    assert not few.finds(LAST)
    few.open(columns)
    assert not few.finds(1, within=(21, 21))
    assert few.finds(1, 8, LAST, within=(20, 20))
    columns.rows.end[-1] = 15
    assert not few.finds(LAST, within=(16, 16))


def test_reopening_has_no_effect_unless_index_or_columns_are_others(few: ConnectedServer) -> None:
    columns = PartColumns(key_rows({1: (10, LIVE)}))
    few.open(columns)
    before = few.index.opened
    filled_up(columns, first_id=8)
    for _ in range(3):
        few.open(columns)
    assert few.index.opened == before
    assert few.finds(1, 8)
    columns.append(key_rows({LAST: (10, LIVE)}))
    few.open(columns)
    few.open(columns)
    assert few.index.opened == before + 1
    few.server.shut()
    few.open(columns)
    assert few.index.opened == before + 2
    assert few.finds(1, 8, LAST)


@pytest.mark.parametrize("first", [0, 2**32 - MANY])
def test_keys_are_found_between_those_whose_rows_were_reclaimed(many: ConnectedServer, first: int) -> None:
    ids = np.arange(first, first + MANY)
    columns = PartColumns(key_rows({part_id: (part_id, LIVE) for part_id in ids.tolist()}))
    many.open(columns)
    # Gaps of many lengths.
    gone = np.random.default_rng(1).random(len(ids)) < 0.6
    columns.remove(np.flatnonzero(gone))
    assert [part_id for part_id in ids.tolist() if many.finds(part_id)] == ids[~gone].tolist()
    assert columns.squeeze() is not None
    many.open(columns)
    assert columns.rows.part_id.tolist() == ids[~gone].tolist()
    for within in [ALWAYS, (first + 1000, first + 1000)]:
        existing = ids[~gone & (ids <= within[1])] if within != ALWAYS else ids[~gone]
        assert [part_id for part_id in ids.tolist() if many.finds(part_id, within=within)] == existing.tolist()
    # The index has these, too, before or after all rows.
    assert not many.finds(5 if first else LAST)


def test_columns_may_be_freed_while_a_server_reads_them(few: ConnectedServer) -> None:
    few.open(PartColumns(key_rows({1: (10, 20)})))
    gc.collect()
    assert few.finds(1, within=(20, 20))
    assert not few.finds(1, within=(21, 21))
