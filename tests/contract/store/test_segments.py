"""Segments are read by attempt, in the order of their first series, and by ranges of series."""

from bisect import bisect_left, bisect_right

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strandline.store.protocol import Store
from strandline.store.rows import Lifetime, Segment, SegmentsOf, ShardId
from support.store_contract import Lives, fresh_shard, series_key

pytestmark = pytest.mark.contract


@pytest.fixture
def where(shard: ShardId) -> SegmentsOf:
    return SegmentsOf(shard, bucket=472_222, group=5, attempt="attempt-1")


def segment(first: bytes, seq: int = 0) -> Segment:
    return Segment(first, seq, b"segment " + first + seq.to_bytes(4, "big"))


def test_an_attempt_that_was_not_written_has_no_segments(store: Store, where: SegmentsOf) -> None:
    assert list(store.segments(where)) == []
    assert list(store.segments(where, first=series_key(1), last=series_key(2))) == []


def test_writing_no_segments_writes_none(store: Store, where: SegmentsOf, lasting: Lifetime) -> None:
    store.write_segments(where, [], lasting)
    assert list(store.segments(where)) == []


def test_segments_are_read_in_the_order_of_first_series_and_number(
    store: Store, other_store: Store, where: SegmentsOf, lasting: Lifetime
) -> None:
    # Bytes from 0x80 on would be negative if compared as signed numbers.
    firsts = [
        series_key(0),
        series_key(0, 0, 2**64 - 1),
        series_key(0, 1),
        series_key(2**63 - 1, 2**64 - 1, 2**64 - 1),
        series_key(2**63),
        series_key(2**63, 2**63 - 1, 2**63),
        series_key(2**63, 2**63),
        series_key(2**64 - 1, 2**64 - 1, 2**64 - 1),
    ]
    ordered = [segment(first, seq) for first in firsts for seq in (0, 1, 9, 10, 300)]
    store.write_segments(where, ordered[::-2], lasting)
    store.write_segments(where, ordered[::2], lasting)
    assert list(store.segments(where)) == ordered
    assert list(other_store.segments(where)) == ordered


Ends = tuple[bytes | None, bytes | None]

# Four rows, of which two begin with the same series: that one has more samples than a row holds.
A, B, C = series_key(10), series_key(20), series_key(30)
ROWS = [segment(A, 0), segment(B, 0), segment(B, 1), segment(C, 0)]


@pytest.mark.parametrize(
    ("ends", "found"),
    [
        ((None, None), ROWS),
        # The rows' own first series: they may begin in the row before.
        ((A, A), ROWS[:1]),
        ((B, B), ROWS[:3]),
        ((C, C), ROWS[2:]),
        ((A, C), ROWS),
        # Between the rows' first series.
        ((series_key(15), series_key(15)), ROWS[:1]),
        ((series_key(25), series_key(25)), ROWS[2:3]),
        ((series_key(15), series_key(25)), ROWS[:3]),
        ((series_key(20, 0, 1), series_key(29, 2**64 - 1, 2**64 - 1)), ROWS[2:3]),
        # Outside of all.
        ((series_key(1), series_key(2)), []),
        ((series_key(1), A), ROWS[:1]),
        ((series_key(99), series_key(100)), ROWS[3:]),
        ((series_key(0), series_key(2**64 - 1)), ROWS),
        # Open at one end.
        ((None, series_key(9)), []),
        ((None, B), ROWS[:3]),
        ((B, None), ROWS),
        ((series_key(20, 1), None), ROWS[2:]),
        ((series_key(99), None), ROWS[3:]),
    ],
)
def test_a_range_begins_below_its_first_series_and_ends_with_its_last(
    store: Store, where: SegmentsOf, lasting: Lifetime, ends: Ends, found: list[Segment]
) -> None:
    store.write_segments(where, ROWS, lasting)
    assert list(store.segments(where, first=ends[0], last=ends[1])) == found


def test_a_series_that_spans_many_rows_is_found_completely(store: Store, where: SegmentsOf, lasting: Lifetime) -> None:
    rows = [segment(A, 0), *(segment(B, seq) for seq in range(300)), segment(C, 0)]
    store.write_segments(where, rows, lasting)
    assert list(store.segments(where, first=B, last=B)) == rows[:-1]
    assert list(store.segments(where, first=A, last=A)) == rows[:1]
    assert list(store.segments(where, first=C, last=C)) == rows[-2:]


small_keys = st.builds(series_key, *[st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 1])] * 3)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    keys=st.lists(st.tuples(small_keys, st.integers(0, 2**31 - 1)), unique=True, max_size=12),
    ends=st.tuples(small_keys, small_keys).map(sorted),
)
def test_any_range_finds_the_rows_that_may_contain_it(
    store: Store, lives: Lives, keys: list[tuple[bytes, int]], ends: list[bytes]
) -> None:
    where = SegmentsOf(fresh_shard(), 1, 0, "attempt-1")
    store.write_segments(where, [segment(first, seq) for first, seq in keys], lives.lasting())
    ordered = sorted(keys)
    firsts = [first for first, _ in ordered]
    begin = max(bisect_left(firsts, ends[0]) - 1, 0)
    expected = [segment(first, seq) for first, seq in ordered[begin : bisect_right(firsts, ends[1])]]
    assert list(store.segments(where, first=ends[0], last=ends[1])) == expected


def test_segments_of_the_usual_size_are_read_byte_for_byte(store: Store, where: SegmentsOf, lasting: Lifetime) -> None:
    pattern = bytes(range(256))
    rows = [Segment(series_key(number), 0, (pattern * 257)[number : number + 65_536]) for number in range(100)]
    store.write_segments(where, rows, lasting)
    assert list(store.segments(where)) == rows


def test_a_segment_may_be_empty_or_a_megabyte(store: Store, where: SegmentsOf, lasting: Lifetime) -> None:
    rows = [Segment(A, 0, b""), Segment(B, 0, b"\xff\x00" * 500_000), Segment(C, 0, b"\x00")]
    store.write_segments(where, rows, lasting)
    assert list(store.segments(where)) == rows


def test_writing_the_same_segments_again_changes_nothing(store: Store, where: SegmentsOf, lasting: Lifetime) -> None:
    store.write_segments(where, ROWS, lasting)
    store.write_segments(where, ROWS[1:3], lasting)
    store.write_segments(where, ROWS, lasting)
    assert list(store.segments(where)) == ROWS


def test_segments_are_seen_only_where_they_were_written(store: Store, lasting: Lifetime) -> None:
    shard = fresh_shard()
    attempts = [
        SegmentsOf(shard, 4, 5, "attempt-1"),
        SegmentsOf(shard, 4, 5, "attempt-10"),
        SegmentsOf(shard, 4, 6, "attempt-1"),
        SegmentsOf(shard, 5, 5, "attempt-1"),
        SegmentsOf(ShardId(shard.dataset, shard.shard + 1), 4, 5, "attempt-1"),
        SegmentsOf(ShardId(f"{shard.dataset}-2", shard.shard), 4, 5, "attempt-1"),
    ]
    for number, attempt in enumerate(attempts):
        store.write_segments(attempt, [Segment(A, 0, bytes([number])), Segment(B, number, b"")], lasting)
    for number, attempt in enumerate(attempts):
        expected = [Segment(A, 0, bytes([number])), Segment(B, number, b"")]
        assert list(store.segments(attempt)) == expected
        assert list(store.segments(attempt, first=B, last=C)) == expected
