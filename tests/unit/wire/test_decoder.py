"""Several batches, decoded in the same memory."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.wire import decode
from strandline.wire.columns import Columns
from strandline.wire.decode import Decoder, Limits, batches_within, decode_batch
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress
from support.decoding import rows_of

pytestmark = pytest.mark.unit

LIMITS = Limits(record_bytes=100_000, labels=4)
SERIES_COLUMNS = ("record", "labels_start", "labels_length", "key_low", "key_high", "metric")
SAMPLE_COLUMNS = ("time", "value")


def body(*names: str, time: int = 1, samples: int = 1) -> bytes:
    """A record with a series of each of these names."""
    return compress(
        encode_request(
            Series([("name", name)], [(time + number, float(number)) for number in range(samples)]) for name in names
        )
    )


def copied(columns: Columns) -> dict[str, bytes]:
    """A copy of all columns."""
    names = ("data", *SERIES_COLUMNS, "first_sample", *SAMPLE_COLUMNS)
    return {name: getattr(columns, name).tobytes() for name in names}


def test_batches_of_like_size_are_decoded_in_the_same_memory() -> None:
    decoder = Decoder(LIMITS)
    first = decoder.decode([body("a", "b")])
    second = decoder.decode([body("c")])
    for name in ("data", *SERIES_COLUMNS, *SAMPLE_COLUMNS):
        assert np.shares_memory(getattr(first, name), getattr(second, name)), name


def test_decoded_columns_are_valid_until_the_next_call_and_no_longer() -> None:
    decoder = Decoder(LIMITS)
    first = decoder.decode([body("a", time=1), body("b", time=2)])
    before = copied(first)
    assert copied(first) == before
    assert [labels for _, labels, _ in rows_of(first)] == [b"\n\t\n\x04name\x12\x01a", b"\n\t\n\x04name\x12\x01b"]
    decoder.decode([body("c", time=3)])
    assert first.time.tolist() == [3, 2]
    assert first.labels(0) == b"\n\t\n\x04name\x12\x01c"


def test_where_samples_begin_is_not_overwritten_and_nor_are_faults() -> None:
    decoder = Decoder(LIMITS)
    first = decoder.decode([body("a", samples=3), b"\xff"])
    decoder.decode([body("c"), body("d")])
    assert first.first_sample.tolist() == [0, 3]
    assert [fault.record for fault in first.faults] == [1]


def test_decoders_share_no_memory_with_one_another() -> None:
    first = Decoder(LIMITS).decode([body("a")])
    before = copied(first)
    decode_batch([body("b", time=99)], LIMITS)
    assert copied(first) == before


def test_an_empty_batch_between_others_has_no_rows_and_no_effect() -> None:
    decoder = Decoder(LIMITS)
    decoder.decode([body("a")])
    assert len(decoder.decode([]).record) == 0
    assert decoder.decode([body("b", time=7)]).time.tolist() == [7]


def test_a_fault_of_one_batch_does_not_reach_the_next() -> None:
    decoder = Decoder(LIMITS)
    assert len(decoder.decode([b"\xff" * 9, body("a")]).faults) == 1
    columns = decoder.decode([body("a"), body("b")])
    assert columns.faults == ()
    assert columns.record.tolist() == [0, 1]


def test_a_record_that_can_not_be_unpacked_shows_nothing_of_the_batch_before() -> None:
    decoder = Decoder(LIMITS)
    decoder.decode([body(*"abcdefgh")])
    broken = body(*"stuvwxyz")
    columns = decoder.decode([broken[: len(broken) // 2], body("k")])
    assert [labels for _, labels, _ in rows_of(columns)] == [b"\n\t\n\x04name\x12\x01k"]
    assert [fault.record for fault in columns.faults] == [0]


def held(decoder: Decoder) -> tuple[int, int, int]:
    """Rows of series, rows of samples and bytes that a decoder keeps."""
    return len(decoder._series[0]), len(decoder._samples[0]), len(decoder._data)


def test_memory_grows_with_the_batches_and_stays_as_it_is_for_smaller_ones() -> None:
    decoder = Decoder(LIMITS)
    decoder.decode([body(*map(str, range(200)))])
    after_large = held(decoder)
    assert min(after_large) >= 200
    decoder.decode([body("a")])
    assert held(decoder) == after_large


def test_memory_for_rows_past_the_bound_is_released_by_the_next_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "_MAX_ROWS_KEPT", 64)
    decoder = Decoder(LIMITS)
    decoder.decode([body(*map(str, range(33)))])
    assert held(decoder)[:2] == (64, 64)
    decoder.decode([body("a")])
    assert held(decoder)[:2] == (64, 64), "at the bound it is kept"
    huge = decoder.decode([body(*map(str, range(65)))])
    before = copied(huge)
    assert held(decoder)[:2] == (128, 128)
    assert decoder.decode([body("a", time=5)]).time.tolist() == [5]
    assert held(decoder)[:2] == (16, 16)
    assert {name: copied(huge)[name] for name in SERIES_COLUMNS} == {name: before[name] for name in SERIES_COLUMNS}


def test_memory_for_samples_past_the_bound_is_released_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "_MAX_ROWS_KEPT", 64)
    decoder = Decoder(LIMITS)
    decoder.decode([body("a", samples=1_000)])
    assert held(decoder)[1] >= 1_000
    decoder.decode([body("a")])
    assert held(decoder)[1] == 16


def test_memory_for_bytes_past_the_bound_is_released_by_the_next_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "_MAX_BYTES_KEPT", 2_000)
    decoder = Decoder(LIMITS)
    decoder.decode([body("a" * 1_000)])
    kept = held(decoder)[2]
    assert 1_000 < kept <= 2_000
    decoder.decode([body("a")])
    assert held(decoder)[2] == kept
    huge = decoder.decode([body("b" * 4_000)])
    assert held(decoder)[2] > 4_000
    assert len(decoder.decode([body("a")]).record) == 1
    assert held(decoder)[2] < 100
    assert b"b" * 4_000 in huge.data.tobytes(), "its current holder keeps it"


# Valid and invalid records, with labels in any order, too many of them, or none.
NAMES = st.sampled_from(["", "a", "b", "__name__", "job"])
VALUES = st.sampled_from(["", "1", "v" * 200])
# As bytes: numbers one by one take longer to draw than to decode.
SAMPLES = st.binary(max_size=320).map(
    lambda drawn: [struct.unpack_from("<qd", drawn, at) for at in range(0, len(drawn) - 15, 16)]
)
SERIES = st.builds(Series, st.lists(st.tuples(NAMES, VALUES), max_size=5), SAMPLES)
BODIES = st.one_of(
    st.lists(SERIES, max_size=4).map(lambda series: compress(encode_request(series))),
    st.binary(max_size=12),
    st.binary(max_size=12).map(compress),
)


@settings(max_examples=50)
@given(st.lists(st.lists(BODIES, max_size=3), min_size=2, max_size=5))
def test_a_sequence_of_batches_decodes_like_each_batch_alone(batches: list[list[bytes]]) -> None:
    decoder = Decoder(LIMITS)
    for bodies in batches:
        together, alone = decoder.decode(bodies), decode_batch(bodies, LIMITS)
        assert rows_of(together) == rows_of(alone)
        assert (together.faults, together.skipped) == (alone.faults, alone.skipped)
        for name in (*SERIES_COLUMNS, "first_sample"):
            assert np.array_equal(getattr(together, name), getattr(alone, name)), name


@given(st.lists(st.integers(0, 60), max_size=30), st.integers(1, 100))
def test_a_batch_is_divided_by_decompressed_bytes_or_into_single_records(lengths: list[int], most: int) -> None:
    # Zeros, so that the compressed lengths are not proportional.
    bodies = [compress(bytes(length)) for length in lengths]
    pieces = list(batches_within(bodies, most, Limits(record_bytes=50)))
    assert [position for first, behind in pieces for position in range(first, behind)] == list(range(len(bodies)))
    # A record over the limit is never decompressed.
    sizes = [sum(length for length in lengths[first:behind] if length <= 50) for first, behind in pieces]
    assert all(size <= most or behind - first == 1 for size, (first, behind) in zip(sizes, pieces, strict=True))
    joined = zip(pieces, sizes, pieces[1:], strict=False)
    assert all(size + _counted(lengths[after[0]]) > most for _, size, after in joined), "none is smaller than necessary"


def _counted(length: int) -> int:
    return length if length <= 50 else 0


def test_bodies_that_are_not_snappy_blocks_take_no_room_in_a_piece() -> None:
    assert list(batches_within([b"", b"\xff" * 9, compress(bytes(9))], 10, Limits())) == [(0, 3)]
    assert list(batches_within([], 10, Limits())) == []
