"""Any damage to a stored segment is either rejected with the segment's name, or leaves it valid."""

import random
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from strandline.digest import digest
from strandline.store import segment_codec
from strandline.store.segment_codec import (
    MAX_SAMPLES,
    VERSION,
    SegmentDamaged,
    decode_directory,
    decode_segment,
    encode_run,
    select,
)
from strandline.store.selecting import WantedSeries
from strandline.store.series_run import SeriesKey, SeriesRun
from strandline.time_range import ALL_TIMES
from support.series_runs import STALE, are_same, bits_of, model_of, run_of

pytestmark = pytest.mark.simulation

NAME = "metrics/3, bucket 480000, group 7, row 12"
KEYS = [(1, 1, 1), (1, 1, 2), (1, 2, 0), (5, 0, 0), (5, 0, 9)]
HEADER = struct.Struct("<3sBIIIIIqq")
HEADER_FROM, LENGTHS_FROM = 8, 8 + HEADER.size

Read = Callable[[bytes], object]


@cache
def sound_run() -> SeriesRun:
    """Series of every kind: counter with a staleness marker, rounded, constant, doubles, times shared and not."""
    rng = np.random.default_rng(1)
    shared = (1_790_000_000_000 + 15_000 * np.arange(40) + rng.integers(-2, 3, 40)).tolist()
    own = (1_790_000_000_003 + 15_000 * np.arange(20)).tolist()
    counter = [bits_of(float(value)) for value in np.cumsum(rng.poisson(300, 40))]
    counter[-1] = STALE
    rounded = [bits_of(value / 100) for value in rng.integers(-50, 50, 40).tolist()]
    random_values = rng.random(20).view(np.uint64).tolist()
    return run_of(
        {
            KEYS[0]: dict(zip(shared, counter, strict=True)),
            KEYS[1]: dict(zip(shared, rounded, strict=True)),
            KEYS[2]: dict.fromkeys(shared, bits_of(1.0)),
            KEYS[3]: dict(zip(own, random_values, strict=True)),
            KEYS[4]: {own[0]: bits_of(7.0)},
        }
    )


@cache
def sound() -> bytes:
    (segment,) = encode_run(sound_run())
    return segment.data


def read_some(data: bytes) -> SeriesRun:
    keys = WantedSeries.of([SeriesKey(*KEYS[1]), SeriesKey(*KEYS[3])])
    return select(data, keys, ALL_TIMES, named=NAME)


READERS: list[Read] = [
    lambda data: decode_segment(data, named=NAME),
    lambda data: decode_directory(data, named=NAME),
    read_some,
]
READING = pytest.mark.parametrize("read", READERS, ids=["whole", "directory", "selected"])


def seal(body: bytes) -> bytes:
    """Bytes with a valid checksum, as a faulty program would store them."""
    return (digest(body) & (2**64 - 1)).to_bytes(8, "little") + body


def assert_refused(read: Read, data: bytes, reason: str = "") -> None:
    with pytest.raises(SegmentDamaged) as raised:
        read(data)
    assert raised.value.message.startswith(f"segment {NAME} is ")
    assert reason in raised.value.message
    assert raised.value.remedy


def with_header(**changes: int | bytes) -> bytes:
    names = ("magic", "version", "series", "samples", "metrics", "timetables", "odd", "least", "greatest")
    fields = dict(zip(names, HEADER.unpack_from(sound(), HEADER_FROM), strict=True)) | changes
    return seal(HEADER.pack(*fields.values()) + sound()[LENGTHS_FROM:])


def with_sections(**changes: bytes) -> bytes:
    """The valid segment with some of its sections changed."""
    directory = ("metrics", "metric_counts", "key_high", "key_low", "same_as", "counts")
    times = ("begin", "slope", "way", "level", *(f"rests_{level}" for level in range(1, 9)))
    values = ("digits", "odd_at", "odd_bits", "raw", *(f"value_{name}" for name in times))
    names = (*directory, *times, *values)
    lengths = segment_codec._LENGTHS.unpack_from(sound(), LENGTHS_FROM)
    assert len(lengths) == len(names)
    at, sections = LENGTHS_FROM + segment_codec._LENGTHS.size, []
    for length in lengths:
        sections.append(sound()[at : at + length])
        at += length
    for name, section in changes.items():
        sections[names.index(name)] = section
    packed = segment_codec._LENGTHS.pack(*map(len, sections))
    return seal(sound()[HEADER_FROM:LENGTHS_FROM] + packed + b"".join(sections))


def test_the_sound_segment_is_read_by_every_reader() -> None:
    assert are_same(decode_segment(sound(), named=NAME), sound_run())
    assert decode_directory(sound(), named=NAME).counts.tolist() == [40, 40, 40, 20, 1]
    model = model_of(sound_run())
    assert model_of(read_some(sound())) == {KEYS[1]: model[KEYS[1]], KEYS[3]: model[KEYS[3]]}
    assert with_header() == with_sections() == sound()


@READING
def test_every_flipped_bit_is_noticed(read: Read) -> None:
    for position in range(len(sound())):
        for bit in range(8):
            damaged = bytearray(sound())
            damaged[position] ^= 1 << bit
            assert_refused(read, bytes(damaged), "its checksum is wrong")


@READING
def test_every_truncation_is_noticed(read: Read) -> None:
    for length in range(len(sound())):
        assert_refused(read, sound()[:length])
        assert_refused(read, sound()[len(sound()) - length :])


@READING
def test_every_extension_is_noticed(read: Read) -> None:
    rng = random.Random(1)  # noqa: S311 # repeatable on purpose
    for length in range(1, 300):
        assert_refused(read, sound() + bytes(length))
        assert_refused(read, sound() + rng.randbytes(length))
        assert_refused(read, rng.randbytes(length) + sound())
    assert_refused(read, sound() + sound())


@READING
def test_lost_duplicated_swapped_or_overwritten_pieces_are_noticed(read: Read) -> None:
    rng = random.Random(2)  # noqa: S311 # repeatable on purpose
    for _ in range(3_000):
        start, end = sorted(rng.sample(range(len(sound()) + 1), 2))
        before, piece, behind = sound()[:start], sound()[start:end], sound()[end:]
        for damaged in (
            before + behind,
            before + piece + piece + behind,
            before + bytes(end - start) + behind,
            before + rng.randbytes(end - start) + behind,
            piece + before + behind,
        ):
            if damaged != sound():
                assert_refused(read, damaged)


@READING
def test_bytes_that_were_never_a_segment_are_refused(read: Read) -> None:
    rng = random.Random(3)  # noqa: S311 # repeatable on purpose
    for length in (0, 1, 8, 48, 200, 1_000, 10_000):
        for body in (bytes(length), rng.randbytes(length)):
            assert_refused(read, body)
            assert_refused(read, seal(body))


@pytest.mark.parametrize("seed", range(10))
def test_random_bytes_with_a_valid_checksum_are_refused_or_a_valid_run(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 # repeatable on purpose
    refused = 0
    for _ in range(2_000):
        body = bytearray(sound()[8:])
        for _ in range(rng.randrange(1, 5)):
            body[rng.randrange(len(body))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        data = seal(bytes(body))
        try:
            run = decode_segment(data, named=NAME)
        except SegmentDamaged:
            refused += 1
        else:
            assert sum(map(len, model_of(run).values())) == HEADER.unpack_from(data, HEADER_FROM)[3]
    assert 200 < refused < 2_000


@READING
def test_another_kind_or_version_is_named_and_the_remedy_is_another_program(read: Read) -> None:
    for data in (with_header(version=VERSION + 1), with_header(magic=b"ABC")):
        assert_refused(read, data, "this program reads")
        with pytest.raises(SegmentDamaged, match="Use the version of Strandline that wrote it"):
            read(data)


@READING
@pytest.mark.parametrize(
    "changes",
    [
        {"metrics": 0},
        {"metrics": 6},
        {"series": 0},
        {"series": 202},
        {"samples": 4},
        {"samples": MAX_SAMPLES + 1},
        {"samples": 2**32 - 1},
        {"timetables": 6},
        {"odd": 142},
        {"odd": 2**32 - 1},
    ],
    ids=str,
)
def test_impossible_counts_are_refused_before_memory_is_allocated(read: Read, changes: dict) -> None:
    assert_refused(read, with_header(**changes), "its header has invalid counts")


@READING
def test_counts_that_differ_from_the_content_are_refused(read: Read) -> None:
    assert_refused(read, with_header(series=6), "its numbers of hashes and series differ")
    assert_refused(read, with_header(metrics=3), "its numbers of hashes and series differ")
    assert_refused(read, with_header(samples=142), "the samples of its series don't add up")
    assert_refused(read, with_header(timetables=2), "a section has other than 2 numbers")
    assert_refused(read, with_header(timetables=4), "a section has other than 4 numbers")


def test_missing_odd_values_are_refused() -> None:
    assert_refused(READERS[0], with_header(odd=2), "a section has other than 2 numbers")
    assert_refused(READERS[0], with_header(odd=0), "a section that must be empty is not")


def test_bounds_of_time_that_differ_from_the_times_are_refused() -> None:
    run = sound_run()
    least, greatest = int(run.time.min()), int(run.time.max())
    for bounds in ({"least": least + 1}, {"least": least - 1}, {"greatest": greatest + 1}, {"greatest": greatest - 1}):
        assert_refused(READERS[0], with_header(**bounds), "its times are from")
    for bounds in ({"least": greatest}, {"greatest": least}):
        assert_refused(read_some, with_header(**bounds), "its times are from")


def _encode_numbers(numbers: list[int]) -> bytes:
    return segment_codec.pack(np.array(numbers, dtype=np.uint32))


@READING
def test_a_directory_that_contradicts_itself_is_refused(read: Read) -> None:
    words = struct.Struct("<5Q")
    for sections, reason in (
        ({"metric_counts": _encode_numbers([3, 1])}, "the series of its metrics don't add up"),
        ({"metric_counts": _encode_numbers([5, 0])}, "the series of its metrics don't add up"),
        ({"metric_counts": _encode_numbers([3, 2, 0])}, "a section has other than 2 numbers"),
        ({"metrics": struct.pack("<2Q", 5, 1)}, "its series are not in order"),
        ({"key_high": words.pack(1, 1, 0, 0, 0)}, "its series are not in order"),
        ({"key_low": words.pack(1, 1, 0, 0, 9)}, "its series are not in order"),
        ({"key_low": words.pack(1, 2, 0, 9, 0)}, "its series are not in order"),
        ({"key_low": words.pack(1, 2, 0, 0, 9)[:-8]}, "its numbers of hashes and series differ"),
        ({"same_as": _encode_numbers([0, 2, 1, 0, 0])}, "its series and its timetables don't match"),
        ({"same_as": _encode_numbers([0, 1, 1, 1, 0])}, "its series and its timetables don't match"),
        ({"same_as": _encode_numbers([0, 1, 1, 0, 2**32 - 1])}, "its series and its timetables don't match"),
        ({"same_as": _encode_numbers([0, 1, 0, 0, 0])}, "its series and its timetables don't match"),
        ({"same_as": b"not pcodec"}, "pcodec can't read a section"),
        ({"same_as": segment_codec.pack(np.zeros(5))}, "pcodec can't read a section"),
        ({"same_as": b""}, "pcodec can't read a section"),
        ({"counts": _encode_numbers([40, 21, 0])}, "a series has no samples"),
        ({"counts": _encode_numbers([40, 20, 2])}, "the samples of its series don't add up"),
        ({"counts": _encode_numbers([40, 20, 2**32 - 1])}, "the samples of its series don't add up"),
    ):
        assert_refused(read, with_sections(**sections), reason)


def test_times_and_values_of_unknown_kinds_are_refused() -> None:
    def short(*numbers: int) -> bytes:
        return segment_codec.pack(np.array(numbers, dtype=np.uint16))

    two = segment_codec.pack(np.zeros(2, dtype=np.int64))
    for sections, reason in (
        ({"way": short(0, 2, 0)}, "it has a trend of an unknown kind"),
        ({"way": short(0, 0)}, "a section has other than 3 numbers"),
        ({"level": short(0, 0, 9)}, "it has a trend of an unknown kind"),
        ({"level": short(0, 0, 2**16 - 1)}, "it has a trend of an unknown kind"),
        ({"begin": two}, "a section has other than 3 numbers"),
        ({"rests_8": two}, "a section that must be empty is not"),
        ({"value_rests_8": two}, "a section that must be empty is not"),
        ({"value_way": short(1, 1, 1, 2)}, "it has a trend of an unknown kind"),
        ({"digits": short(0, 2, 0, 15, 10)}, "its values have too many digits"),
        ({"digits": short(0, 2, 0, 15, 16)}, "its values have too many digits"),
        ({"digits": short(0, 2, 0, 15)}, "a section has other than 5 numbers"),
        ({"odd_at": _encode_numbers([141])}, "its odd values are not in order"),
        ({"odd_bits": two}, "pcodec can't read a section"),
        ({"raw": segment_codec.pack(np.zeros(19))}, "a section has other than 20 numbers"),
        ({"raw": segment_codec.pack(np.zeros(21))}, "a section has other than 20 numbers"),
    ):
        assert_refused(READERS[0], with_sections(**sections), reason)


def test_lengths_that_do_not_add_up_are_refused() -> None:
    lengths = list(segment_codec._LENGTHS.unpack_from(sound(), LENGTHS_FROM))
    for place in range(len(lengths)):
        for more in (1, 2**31, -lengths[place] or 5):
            changed = [*lengths[:place], lengths[place] + more, *lengths[place + 1 :]]
            body = sound()[HEADER_FROM:LENGTHS_FROM] + segment_codec._LENGTHS.pack(*changed)
            data = seal(body + sound()[LENGTHS_FROM + segment_codec._LENGTHS.size :])
            assert_refused(READERS[0], data, "its sections end at byte")


def test_an_encoded_run_that_is_out_of_order_is_refused() -> None:
    run = sound_run()
    time = run.time.copy()
    time[[3, 4]] = time[[4, 3]]
    assert_refused(
        READERS[0], segment_codec._encode(replace(run, time=time)), "the times of a series are not ascending"
    )
    time[[3, 4]] = time[3]
    assert_refused(
        READERS[0], segment_codec._encode(replace(run, time=time)), "the times of a series are not ascending"
    )
    key_low = run.key_low[::-1].copy()
    assert_refused(READERS[0], segment_codec._encode(replace(run, key_low=key_low)), "its series are not in order")


def test_every_truncation_of_a_large_segment_is_noticed() -> None:
    rng = np.random.default_rng(1)
    samples = 30_000
    run = run_of({(1, 1, 1): dict(enumerate(rng.integers(0, 2**64, samples, dtype=np.uint64).tolist()))})
    for segment in encode_run(run):
        positions = rng.integers(0, len(segment.data), 500).tolist()
        for position in positions:
            damaged = bytearray(segment.data)
            damaged[position] ^= 1 + position % 255
            assert_refused(READERS[0], bytes(damaged))
            assert_refused(READERS[0], segment.data[:position])
