import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from strandline.index.key_table import MISSING, KeyTable
from strandline.index.part_columns import PartColumns, PartRows

pytestmark = pytest.mark.unit


def columns(keys: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([low for low, _ in keys], dtype=np.uint64), np.array([high for _, high in keys], dtype=np.uint64)


# Few low words, so that keys share runs of slots, also around the end of the table; few high words distinguish them.
KEYS = st.lists(
    st.tuples(st.sampled_from([0, 1, 2, 1022, 1023, 1024, 2047, 2**64 - 1]), st.integers(0, 6)), min_size=1, max_size=12
)


class TableBesideADict(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.table = KeyTable()
        self.model: dict[tuple[int, int], int] = {}
        self.next_row = 0

    @rule(keys=KEYS, max_keys=st.integers(0, 60))
    def assign(self, keys: list[tuple[int, int]], max_keys: int) -> None:
        assigned = self.table.assign(*columns(keys), next_row=self.next_row, max_keys=max_keys)
        expected, new, refused = [], [], 0
        for row, key in enumerate(keys):
            if key not in self.model:
                if len(self.model) >= max_keys:
                    expected.append(MISSING)
                    refused += 1
                    continue
                self.model[key] = self.next_row + len(new)
                new.append(row)
            expected.append(self.model[key])
        self.next_row += len(new)
        assert assigned.rows.tolist() == expected
        assert assigned.new.tolist() == new
        assert assigned.refused == refused

    @rule(keys=KEYS)
    def remove(self, keys: list[tuple[int, int]]) -> None:
        present = {key for key in keys if key in self.model}
        assert self.table.remove(*columns(keys)) == len(present)
        for key in present:
            del self.model[key]

    @rule(keys=KEYS)
    def insert(self, keys: list[tuple[int, int]]) -> None:
        rows = np.arange(self.next_row, self.next_row + len(keys), dtype=np.uint32)
        new = []
        for key, part_id in zip(keys, rows.tolist(), strict=True):
            new.append(key not in self.model)
            self.model.setdefault(key, part_id)
        self.next_row += len(keys)
        assert self.table.insert(*columns(keys), rows).tolist() == new

    @invariant()
    def every_key_is_found_and_no_other(self) -> None:
        assert len(self.table) == len(self.model)
        sought = [(low, high) for low in (0, 1, 2, 1022, 1023, 1024, 2047, 2**64 - 1) for high in range(7)]
        found = self.table.find(*columns(sought)).tolist()
        assert found == [self.model.get(key, MISSING) for key in sought]
        low, high, rows = self.table.dump()
        assert dict(zip(zip(low.tolist(), high.tolist(), strict=True), rows.tolist(), strict=True)) == self.model


TestTableBesideADict = TableBesideADict.TestCase


def random_keys(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    return rng.integers(0, 2**64, count, dtype=np.uint64), rng.integers(0, 2**64, count, dtype=np.uint64)


def test_growth_keeps_every_key() -> None:
    table = KeyTable()
    low, high = random_keys(100_000)
    for start in range(0, 100_000, 700):
        part = slice(start, start + 700)
        table.assign(low[part], high[part], next_row=start, max_keys=2**32)
    assert np.array_equal(table.find(low, high), np.arange(100_000, dtype=np.uint32))
    assert (table.find(high, low) == MISSING).all()


def test_a_dump_loads_into_the_same_table() -> None:
    table = KeyTable()
    low, high = random_keys(5_000)
    table.assign(low, high, next_row=17, max_keys=2**32)
    loaded = KeyTable(keys=5_000)
    assert loaded.insert(*table.dump()).all()
    assert np.array_equal(loaded.find(low, high), table.find(low, high))


def test_renumbered_keys_are_found_in_their_new_rows() -> None:
    table = KeyTable()
    low, high = random_keys(3_000)
    table.assign(low, high, next_row=0, max_keys=2**32)
    table.remove(low[:1_000], high[:1_000])
    table.renumber(np.arange(3_000, dtype=np.uint32)[::-1].copy())
    assert (table.find(low[:1_000], high[:1_000]) == MISSING).all()
    assert table.find(low[1_000:], high[1_000:]).tolist() == list(range(1_999, -1, -1))


def test_reserved_room_is_used_without_growing() -> None:
    table = KeyTable(keys=10_000)
    before = table.nbytes
    table.assign(*random_keys(10_000), next_row=0, max_keys=2**32)
    assert table.nbytes == before


def test_keys_in_the_order_of_their_rows_are_found_as_any_others() -> None:
    rng = np.random.default_rng(3)
    low, high = random_keys(2_000)
    columns = PartColumns(PartRows.new_keys(np.arange(2_000, dtype=np.uint32), low, high, low))
    table = KeyTable()
    table.insert(low, high, np.arange(2_000, dtype=np.uint32))
    gone = rng.choice(2_000, 300, replace=False)
    table.remove(low[gone], high[gone])
    columns.remove(np.sort(gone))
    for order in (np.arange(2_000), np.arange(2_000)[::-1], rng.integers(0, 2_000, 5_000)):
        keys = low[order], high[order]
        found = table.assign(*keys, next_row=0, max_keys=0, columns=columns.rows).rows
        assert np.array_equal(found, table.find(*keys))
        assert (found == MISSING).sum() == np.isin(order, gone).sum()
