"""What a server of lookups answers: which keys are meant, and what is told of them."""

import socket
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.documents import encode_part_key
from strandline.index.key_bytes import KeyBytes
from strandline.index.lookup_server import LookupServer
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.vm import start_vm
from strandline.node.query.answer_messages import answer_message, answer_of
from strandline.node.query.answers import Answer, SeriesAnswer, TermsAnswer
from strandline.node.query.frames import Message, decode_frame, encode_joined
from strandline.node.query.shard_requests import LABEL_NAMES, LABEL_VALUES, SERIES
from support.lookup_keys import add_keys, live_columns
from support.packed_lookups import (
    HEAD,
    KINDS,
    PREFIX,
    Found,
    PackedLookup,
    answer_frame,
    answer_to,
    connected,
    framed,
)

pytestmark = pytest.mark.unit

MAX_LISTED_KEYS = 20
LONGEST = 32 << 10
# Every character of ASCII, and such that take two, three and four bytes.
ODD = [chr(code) for code in range(1, 128)] + ["é", "\u2028", "\U0001f600", 'é"\n', '\\\U0001f600"', "\uffffé\t"]
GROUPED = [{"group": f"g{number % 7}", "n": str(number), "odd" + "x" * (number % 3): "v"} for number in range(40)]
KEYS: list[dict[str, str]] = [{"id": str(place), "odd": text} for place, text in enumerate(ODD)]
# Odd names come alone, all of them, and a handful together.
KEYS += [{"id": f"name {place}", "part": f"p{place // MAX_LISTED_KEYS}", text: "v"} for place, text in enumerate(ODD)]
KEYS += [{"all names": "x", text: "v"} for text in ODD] + GROUPED


def joined(texts: Sequence[bytes]) -> KeyBytes:
    return KeyBytes(np.cumsum([0, *map(len, texts)]), np.frombuffer(b"".join(texts), dtype=np.uint8))


def as_answer(found: Found) -> Answer:
    """What the shard's process says."""
    if found.counts is None:
        return SeriesAnswer(joined([encode_part_key(labels) for labels in found.results]), more=False)
    terms = joined([text.encode() for text in found.results])
    return TermsAnswer(terms.offsets, terms.data, np.array(found.counts, dtype=np.int64), more=False)


def frame_of(found: Found) -> bytes:
    """As Python sends it over the link."""
    return encode_joined(answer_message(as_answer(found)))


def longest_value() -> int:
    """The length of a value that is alone in an answer as long as may be."""
    return max(
        length for length in range(LONGEST - 500, LONGEST) if len(frame_of(Found(["t" * length], [1]))) <= LONGEST
    )


LONGEST_VALUE = longest_value()
KEYS += [{"long": str(more), "text": "t" * (LONGEST_VALUE + more)} for more in (-1, 0, 1, 150)]
U32 = struct.Struct("<I")


@pytest.fixture(scope="module")
def asker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[socket.socket]:
    start_vm()
    folder = tmp_path_factory.mktemp("answers")
    server = LookupServer(folder / "look")
    with PartKeyIndex.open(folder / "index") as index:
        # Several segments.
        for first in range(0, len(KEYS), 100):
            add_keys(index, dict(enumerate(KEYS[first : first + 100], first)))
        server.open(index, live_columns(range(len(KEYS))))
        with connected(folder / "look") as connection:
            yield connection
        server.close()


def in_bytes(labels: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in labels.items()]


def answered(found: Sequence[Mapping[str, str]], kind: str, label: str = "") -> Found:
    """What is to be said of some keys."""
    if kind == SERIES:
        ordered = [dict(sorted(one.items(), key=lambda pair: pair[0].encode())) for one in found]
        return Found(sorted(ordered, key=in_bytes))
    texts = (
        [name for one in found for name in one]
        if kind == LABEL_NAMES
        else [one[label] for one in found if label in one]
    )
    counts = Counter(texts)
    return Found(sorted(counts, key=str.encode), [counts[text] for text in sorted(counts, key=str.encode)])


def packed(head: bytes, selectors: bytes) -> bytes:
    return framed(head + U32.pack(len(selectors)) + selectors)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("label", ["odd", "id", "none"])
def test_odd_values_come_as_they_are(asker: socket.socket, kind: str, label: str) -> None:
    for place in range(len(ODD)):
        lookup = PackedLookup(kind, [[("id", str(place))]], label)
        assert answer_to(asker, lookup.frame()) == answered([KEYS[place]], kind, label)


@pytest.mark.parametrize("kind", KINDS)
def test_odd_names_come_as_they_are(asker: socket.socket, kind: str) -> None:
    for place, text in enumerate(ODD):
        one = [{"id": f"name {place}", "part": f"p{place // MAX_LISTED_KEYS}", text: "v"}]
        assert answer_to(asker, PackedLookup(kind, [[("id", f"name {place}")]], text).frame()) == answered(
            one, kind, text
        )
        assert answer_to(asker, PackedLookup(kind, [[("id", f"name {place}"), (text, "v")]]).frame()) == answered(
            one, kind
        )
    for part in {one["part"] for one in KEYS if "part" in one}:
        some = [one for one in KEYS if one.get("part") == part]
        assert answer_to(asker, PackedLookup(kind, [[("part", part)]], '"').frame()) == answered(some, kind, '"')


@pytest.mark.parametrize("kind", KINDS)
def test_more_keys_than_a_handful_are_declined(asker: socket.socket, kind: str) -> None:
    assert answer_to(asker, PackedLookup(kind, [[("all names", "x")]]).frame()) is None
    handful = [[("n", str(number))] for number in range(MAX_LISTED_KEYS)]
    assert answer_to(asker, PackedLookup(kind, handful, "n").frame()) == answered(GROUPED[:MAX_LISTED_KEYS], kind, "n")
    assert answer_to(asker, PackedLookup(kind, [*handful, [("n", str(MAX_LISTED_KEYS))]], "n").frame()) is None


@given(
    st.sampled_from(KINDS),
    st.sampled_from(["n", "group", "oddx", "none"]),
    st.lists(st.integers(0, 8), min_size=1, max_size=5),
    st.integers(0, 60),
)
def test_several_keys_come_each_once_and_in_order(
    asker: socket.socket, kind: str, label: str, groups: list[int], limit: int
) -> None:
    meant = [labels for labels in GROUPED if labels["group"] in {f"g{group}" for group in groups}]
    expected = answered(meant, kind, label)
    lookup = PackedLookup(kind, [[("group", f"g{group}")] for group in groups], label, limit=limit)
    is_too_much = len(meant) > MAX_LISTED_KEYS or len(expected.results) > limit
    assert answer_to(asker, lookup.frame()) == (None if is_too_much else expected)


MATCHERS = st.tuples(st.sampled_from(["group", "n", "oddx", "none"]), st.sampled_from(["g1", "g2", "1", "2", "9", "v"]))


@given(st.sampled_from(KINDS), st.lists(st.lists(MATCHERS, min_size=1, max_size=3), min_size=1, max_size=3))
def test_a_key_is_meant_that_has_all_labels_of_any_selector(
    asker: socket.socket, kind: str, selectors: list[list[tuple[str, str]]]
) -> None:
    meant = [one for one in KEYS if any(all(one.get(k) == v for k, v in selector) for selector in selectors)]
    expected = answered(meant, kind, "n") if len(meant) <= MAX_LISTED_KEYS else None
    assert answer_to(asker, PackedLookup(kind, selectors, "n").frame()) == expected


def test_what_no_key_has_is_answered_with_nothing(asker: socket.socket) -> None:
    for kind in KINDS:
        found = answer_to(asker, PackedLookup(kind, [[("id", "none")]], "id", limit=0).frame())
        assert found == answered([], kind)


def test_as_many_results_as_are_wanted_are_answered_and_one_more_is_declined(asker: socket.socket) -> None:
    three = [[("n", "1"), ("group", "g1")], [("n", "2")], [("n", "3")]]
    results = {SERIES: 3, LABEL_NAMES: 5, LABEL_VALUES: 3}
    for kind, count in results.items():
        assert answer_to(asker, PackedLookup(kind, three, "n", limit=count).frame()) == answered(
            GROUPED[1:4], kind, "n"
        )
        assert answer_to(asker, PackedLookup(kind, three, "n", limit=count - 1).frame()) is None


@pytest.mark.parametrize("limit", [2**31 - 1, 2**31, 2**32 - 1])
def test_a_limit_may_be_as_high_as_there_is_room_for(asker: socket.socket, limit: int) -> None:
    lookup = PackedLookup(SERIES, [[("id", "1")]], limit=limit)
    assert answer_to(asker, lookup.frame()) == answered([KEYS[1]], SERIES)


@pytest.mark.parametrize("kind", [3, 127, 128, 255])
def test_a_question_of_a_kind_that_is_not_known_is_declined(asker: socket.socket, kind: int) -> None:
    frame = bytearray(PackedLookup(SERIES, [[("id", "1")]]).frame())
    frame[PREFIX.size + PREFIX.unpack_from(frame)[1]] = kind
    assert answer_to(asker, bytes(frame)) is None


def test_an_answer_as_long_as_may_be_comes_and_a_longer_one_is_declined(asker: socket.socket) -> None:
    for more in (-1, 0):
        frame = answer_frame(asker, PackedLookup(LABEL_VALUES, [[("long", str(more))]], "text").frame())
        assert frame == frame_of(Found(["t" * (LONGEST_VALUE + more)], [1]))
        assert LONGEST - 8 <= len(frame) <= LONGEST
    assert answer_to(asker, PackedLookup(LABEL_VALUES, [[("long", "1")]], "text").frame()) is None
    assert answer_to(asker, PackedLookup(SERIES, [[("long", "150")]]).frame()) is None
    assert answer_to(asker, PackedLookup(LABEL_NAMES, [[("long", "1")]]).frame()) == Found(["long", "text"], [1, 1])


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_the_frame_that_python_would_send_and_reads(asker: socket.socket, kind: str) -> None:
    for numbers in ([], [3], [3, 12], list(range(MAX_LISTED_KEYS))):
        selectors = [[("n", str(number))] for number in numbers] or [[("n", "none")]]
        frame = answer_frame(asker, PackedLookup(kind, selectors, "group").frame())
        expected = answered([GROUPED[number] for number in numbers], kind, "group")
        assert frame == frame_of(expected)
        assert Found.of(answer_of(decode_frame(bytearray(frame)))) == expected


def test_a_refusal_is_the_frame_that_python_would_send(asker: socket.socket) -> None:
    frame = answer_frame(asker, PackedLookup(SERIES, [[("all names", "x")]]).frame())
    assert frame == encode_joined(Message("declined", {}))


def test_a_label_of_which_one_of_several_values_is_wanted_is_answered(asker: socket.socket) -> None:
    lookup = PackedLookup(SERIES, [[("n", ("3", "12", "none"))]])
    assert answer_to(asker, lookup.frame()) == answered([GROUPED[3], GROUPED[12]], SERIES)


def test_selectors_that_are_none_are_declined_and_the_connection_goes_on(asker: socket.socket) -> None:
    head = HEAD.pack(KINDS.index(SERIES), 1, 0, 10, 0)
    selector = b"\1\0" + b"\1\0n" + b"\1\0" + b"\1\x003"
    for end in range(len(selector)):
        assert answer_to(asker, packed(head, selector[:end])) is None
        if end:
            assert answer_to(asker, packed(head, selector + selector[:end])) is None
    assert answer_to(asker, packed(head, selector + b"\0\0")) is None
    assert answer_to(asker, packed(head, b"\1\0" + b"\1\0n" + b"\0\0")) is None
    assert answer_to(asker, packed(head, selector)) == answered([GROUPED[3]], SERIES)


def test_a_label_with_a_length_that_is_wrong_is_declined(asker: socket.socket) -> None:
    frame = bytearray(PackedLookup(LABEL_VALUES, [[("n", "3")]], "group").frame())
    place = PREFIX.size + PREFIX.unpack_from(frame)[1] + HEAD.size - 2
    for length in [*range(40), 0xFFFF]:
        struct.pack_into("<H", frame, place, length)
        expected = answered([GROUPED[3]], LABEL_VALUES, "group") if length == len("group") else None
        assert answer_to(asker, bytes(frame)) == expected


def test_selectors_with_a_length_that_is_wrong_are_declined(asker: socket.socket) -> None:
    frame = bytearray(PackedLookup(SERIES, [[("n", "3")]]).frame())
    place = PREFIX.size + PREFIX.unpack_from(frame)[1] + HEAD.size
    (sound,) = struct.unpack_from("<I", frame, place)
    for length in [*range(40), 2**31 - 1, 2**31, 2**32 - 1]:
        struct.pack_into("<I", frame, place, length)
        expected = answered([GROUPED[3]], SERIES) if length == sound else None
        assert answer_to(asker, bytes(frame)) == expected


@given(st.binary(max_size=60), st.integers(0, 3), st.integers(0, 20))
def test_no_bytes_behind_a_head_do_harm(asker: socket.socket, rest: bytes, kind: int, length: int) -> None:
    answer_to(asker, framed(HEAD.pack(kind, 1, 0, 10, length) + rest))
    assert answer_to(asker, PackedLookup(SERIES, [[("n", "3")]]).frame()) == answered([GROUPED[3]], SERIES)
