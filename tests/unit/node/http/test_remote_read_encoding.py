"""Responses of the kernels, decoded by the official protobuf implementation and by an independent chunk decoder."""

import struct
from itertools import islice

import cramjam
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from strandline.kernels.crc32c import crc32c
from strandline.node.http.remote_read import sampled
from strandline.node.http.remote_read.columns import AnswerColumns
from strandline.node.http.remote_read.kernels.xor_chunks import CHUNK_BYTES, put_chunk
from strandline.node.http.remote_read.sampled import sampled_parts
from strandline.node.http.remote_read.streamed import FRAME_BYTES, streamed_parts
from strandline.node.query.queries import QueryTooLarge
from support.remote_read import Labels, Samples, answer_of, bits_of, frames_of, labels_of, read_sampled, read_streamed
from support.xor_chunks import read_chunk

pytestmark = pytest.mark.unit

STALE = 0x7FF0000000000002
VALUES = st.one_of(
    st.integers(0, 2**64 - 1),  # Any bits, including any NaN.
    st.floats(width=64).map(bits_of),
    st.integers(-5, 5).map(lambda number: bits_of(float(number))),
    st.just(STALE),
)
LEAST, GREATEST = -(2**63), 2**63 - 1
STEPS = st.one_of(
    st.just(15_000),
    st.integers(14_990, 15_010),
    st.integers(1, 2**21),
    # Around the bounds of each bit width, for the change of a step as well as for the step.
    st.builds(lambda power, near: max(1, (1 << power) + near), st.integers(0, 62), st.integers(-2, 2)),
)


def _times(start: int, steps: list[int]) -> list[int]:
    times = [start]
    for step in steps:
        if times[-1] + step > GREATEST:
            break
        times.append(times[-1] + step)
    return times


TIMES = st.builds(
    _times,
    st.one_of(st.integers(LEAST, GREATEST), st.just(LEAST), st.just(-1), st.just(1_700_000_000_000)),
    st.lists(STEPS, max_size=300),
)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
LABELS = st.dictionaries(st.one_of(TEXT, st.just("n" * 200)), st.one_of(TEXT, st.just("v" * 300)), max_size=4)


@st.composite
def samples(draw: st.DrawFn) -> Samples:
    times = draw(TIMES)
    values = draw(st.lists(VALUES, min_size=1, max_size=20))
    # Most series consist of runs of equal values.
    repeated = draw(st.integers(1, 4))
    return [(time, values[place // repeated % len(values)]) for place, time in enumerate(times)]


@st.composite
def answers(draw: st.DrawFn) -> dict[Labels, Samples]:
    label_sets = draw(
        st.lists(LABELS, max_size=4).map(
            lambda found: {tuple(sorted(labels_of_one.items())) for labels_of_one in found}
        )
    )
    return {labels: draw(samples()) for labels in sorted(label_sets)}


def encoded(run: Samples) -> bytes:
    time = np.array([time for time, _ in run], dtype=np.int64)
    value = np.array([value for _, value in run], dtype=np.uint64)
    out = np.full(CHUNK_BYTES, 0xAA, dtype=np.uint8)
    end = put_chunk(out.ctypes.data, time.ctypes.data, value.ctypes.data, len(run))
    assert end - out.ctypes.data <= CHUNK_BYTES - 8
    return out[: end - out.ctypes.data].tobytes()


@given(samples())
def test_a_chunk_decodes_to_its_samples(run: Samples) -> None:
    assert read_chunk(encoded(run[:120])) == run[:120]


@pytest.mark.parametrize(
    ("width", "prefix", "next_prefix"), [(14, "10", "110"), (17, "110", "1110"), (20, "1110", "1111")]
)
def test_a_change_of_step_takes_the_minimum_of_bits(width: int, prefix: str, next_prefix: str) -> None:
    """A width of n bits holds -(2^(n-1) - 1) to 2^(n-1); values beyond that take the next width."""
    middle, step = 1 << (width - 1), 2**21
    for change, expected in ((1 - middle, prefix), (middle, prefix), (-middle, next_prefix), (middle + 1, next_prefix)):
        run = [(0, 0), (step, 0), (2 * step + change, 0)]
        chunk = encoded(run)
        assert read_chunk(chunk) == run
        # After the count, a time, a value and a step of four bytes: one bit for the equal value, then the change.
        stream = "".join(f"{byte:08b}" for byte in chunk[2 + 1 + 8 + 4 :])
        assert stream.startswith("0" + expected)


def test_a_chunk_has_the_bytes_of_its_specification() -> None:
    """Built by hand: count, zigzag of 1, the bits of 1.0; then a step of 10 and the same value; then a change of step
    of 1 and the value 2.0, whose XOR has eleven significant bits after one leading zero.
    """
    one, two = bits_of(1.0), bits_of(2.0)
    different = f"{one ^ two:064b}"
    leading, window = different.index("1"), different.rindex("1") - different.index("1") + 1
    assert (leading, window) == (1, 11)
    bits = "0" + "10" + f"{1:014b}" + "11" + f"{leading:05b}" + f"{window:06b}" + "1" * 11
    tail = int(bits.ljust(-(-len(bits) // 8) * 8, "0"), 2).to_bytes(-(-len(bits) // 8), "big")
    expected = b"\x00\x03" + b"\x02" + struct.pack(">d", 1.0) + b"\x0a" + tail
    assert encoded([(1, one), (11, one), (22, two)]) == expected


def test_a_steady_counter_takes_few_bits() -> None:
    run = [(1_700_000_000_000 + 15_000 * place, bits_of(7.0)) for place in range(120)]
    # Count, time, value, step; then two bits per sample, and one bit for the second sample.
    assert len(encoded(run)) == 2 + 6 + 8 + 2 + (1 + 2 * 118 + 7) // 8


def test_the_longest_samples_fit_into_a_chunks_buffer() -> None:
    """Each step changes by more than 20 bits, and each value differs in the first and the last bit."""
    times, time = [], LEAST
    for place in range(120):
        time += 2**54 if place % 2 else 2**40
        times.append(time)
    ends = 0x8000000000000001
    inner = 0x4000000000000002
    values, value = [], 0
    for place in range(120):
        # Each difference opens a new window, because the previous one was narrower.
        value ^= ends if place % 2 else inner
        values.append(value)
    run = list(zip(times, values, strict=True))
    assert read_chunk(encoded(run)) == run


@pytest.mark.parametrize(
    ("data", "checksum"),
    [
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
        (b"", 0),
    ],
)
def test_the_checksum_is_that_of_the_standard(data: bytes, checksum: int) -> None:
    """The test vectors of RFC 3720, and the usual check value."""
    array = np.frombuffer(data, dtype=np.uint8)
    assert crc32c(array.ctypes.data, len(data)) == checksum


@given(st.lists(answers(), max_size=3), st.integers(1, 3000))
@example([{(("a", "b" * 20_000), ("b" * 20_000, "c")): [(0, 0)]}, {}], 1)
@example([{(("a", "b"),): [(0, 0)]}, {}, {(("a", "b"),): [(-1, bits_of(-0.0)), (0, STALE)]}], 1)
def test_a_sampled_response_decodes_to_the_answer(results: list[dict[Labels, Samples]], part_bytes: int) -> None:
    columns = [AnswerColumns.of(answer_of(result)) for result in results]
    read = read_sampled(b"".join(sampled_parts(columns, part_bytes=part_bytes)))
    assert read == results
    assert [list(result) for result in read] == [list(result) for result in results]  # The order is the same, too.


@given(st.lists(answers(), max_size=3), st.integers(1, 3000), st.integers(1, 3000))
@example([{}, {(("a", "b" * 20_000),): [(0, 0)]}], 1, 1)
def test_a_streamed_response_decodes_to_the_answer(
    results: list[dict[Labels, Samples]], part_bytes: int, frame_bytes: int
) -> None:
    columns = [AnswerColumns.of(answer_of(result)) for result in results]
    read = read_streamed(
        b"".join(streamed_parts(columns, part_bytes=part_bytes, frame_bytes=frame_bytes)), len(results)
    )
    assert read == results
    assert [list(result) for result in read] == [list(result) for result in results]


def test_series_without_samples_are_answered_with_their_labels() -> None:
    series: dict[Labels, Samples] = {(("a", "1"),): [], (("a", "2"),): []}
    columns = [AnswerColumns.of(answer_of(series))]
    assert read_sampled(b"".join(sampled_parts(columns))) == [series]
    assert read_streamed(b"".join(streamed_parts(columns)), 1) == [series]


def test_strided_and_read_only_columns_are_encoded() -> None:
    """Strided slices, and read-only arrays."""
    answer = answer_of({(("a", "1"),): [(1, 2), (3, 4)], (("a", "2"),): [(5, 6)]})
    gapped = np.repeat(answer.time, 2)[::2]
    answer.value.flags.writeable = False
    columns = AnswerColumns.of(type(answer)(answer.keys, answer.first_sample, gapped, answer.value))
    expected = {(("a", "1"),): [(1, 2), (3, 4)], (("a", "2"),): [(5, 6)]}
    assert read_sampled(b"".join(sampled_parts([columns]))) == [expected]


def test_labels_that_are_longer_in_a_message_than_in_a_key_fit() -> None:
    """Many short labels take a third more."""
    series: dict[Labels, Samples] = {tuple((chr(letter), "x") for letter in range(48, 112)): [(1, 2)]}
    columns = [AnswerColumns.of(answer_of(series))]
    parts = islice(sampled_parts(columns, part_bytes=1), 10)
    assert read_sampled(b"".join(parts)) == [series]
    assert read_streamed(b"".join(streamed_parts(columns, part_bytes=1)), 1) == [series]


def test_an_answer_that_is_too_large_for_a_block_is_refused_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [AnswerColumns.of(answer_of({(("a", "b"),): [(1, 2)]}))]
    size = len(cramjam.snappy.decompress_raw(b"".join(sampled_parts(columns))))
    monkeypatch.setattr(sampled, "MAX_MESSAGE", size)
    sampled_parts(columns)
    monkeypatch.setattr(sampled, "MAX_MESSAGE", size - 1)
    with pytest.raises(QueryTooLarge, match="STREAMED_XOR_CHUNKS"):
        sampled_parts(columns)


def large(series: int, length: int) -> dict[Labels, Samples]:
    rng = np.random.default_rng(3)
    values = rng.integers(0, 2**64, size=(series, length), dtype=np.uint64).tolist()
    return {
        (("__name__", "noise"), ("number", f"{number:06d}")): [
            (15_000 * place, values[number][place]) for place in range(length)
        ]
        for number in range(series)
    }


def test_no_part_of_a_large_answer_is_large() -> None:
    """Only one part exists in memory at a time; the complete answer is fifty times as large."""
    columns = [AnswerColumns.of(answer_of(large(100, 500)))]
    for parts, max_bytes in (
        (list(sampled_parts(columns, part_bytes=16_384)), 16_384 + 64),
        (list(streamed_parts(columns, part_bytes=4096)), 4096 + 6000),
    ):
        assert sum(map(len, parts)) > 400_000
        assert max(map(len, parts)) <= max_bytes


def test_a_frame_has_one_complete_series() -> None:
    """Prometheus' client reads only the first series of a frame, and takes each frame for a separate series."""
    series = large(3, 100_000)
    frames = list(frames_of(b"".join(streamed_parts([AnswerColumns.of(answer_of(series))])), checked=False))
    assert [[labels_of(series_of_frame) for series_of_frame in frame.chunked_series] for frame in frames] == [
        [labels] for labels in series
    ]


def test_a_series_that_is_too_long_for_a_frame_continues_in_the_next() -> None:
    series = large(1, 3000)
    columns = [AnswerColumns.of(answer_of(series))]
    body = b"".join(streamed_parts(columns, frame_bytes=10_000))
    frames = list(frames_of(body))
    assert len(frames) > 2
    assert all(frame.ByteSize() <= 10_000 + 100 for frame in frames)
    assert read_streamed(body, 1) == [series]
    assert FRAME_BYTES <= 50_000_000  # The default limit of Prometheus' client.
