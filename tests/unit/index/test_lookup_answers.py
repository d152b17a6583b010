"""The answers of the lookup server: which keys a lookup selects, and what is returned of them."""

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
# Every character of ASCII, and characters of two, three and four bytes.
ODD = [chr(code) for code in range(1, 128)] + ["é", "\u2028", "\U0001f600", 'é"\n', '\\\U0001f600"', "\uffffé\t"]
GROUPED = [{"group": f"g{number % 7}", "n": str(number), "odd" + "x" * (number % 3): "v"} for number in range(40)]
KEYS: list[dict[str, str]] = [{"id": str(position), "odd": text} for position, text in enumerate(ODD)]
# Odd names: one at a time, all of them, and a few together.
KEYS += [
    {"id": f"name {position}", "part": f"p{position // MAX_LISTED_KEYS}", text: "v"}
    for position, text in enumerate(ODD)
]
KEYS += [{"all names": "x", text: "v"} for text in ODD] + GROUPED


def joined(texts: Sequence[bytes]) -> KeyBytes:
    return KeyBytes(np.cumsum([0, *map(len, texts)]), np.frombuffer(b"".join(texts), dtype=np.uint8))


def as_answer(found: Found) -> Answer:
    """The answer of the shard's process."""
    if found.counts is None:
        return SeriesAnswer(joined([encode_part_key(labels) for labels in found.results]), more=False)
    terms = joined([text.encode() for text in found.results])
    return TermsAnswer(terms.offsets, terms.data, np.array(found.counts, dtype=np.int64), more=False)


def frame_of(found: Found) -> bytes:
    """As Python sends it over the link."""
    return encode_joined(answer_message(as_answer(found)))


def longest_value() -> int:
    """The length of a value that alone fills an answer of the maximum length."""
    return max(
        length for length in range(LONGEST - 500, LONGEST) if len(frame_of(Found(["t" * length], [1]))) <= LONGEST
    )


LONGEST_VALUE = longest_value()
KEYS += [{"long": str(more), "text": "t" * (LONGEST_VALUE + more)} for more in (-1, 0, 1, 150)]
U32 = struct.Struct("<I")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[socket.socket]:
    start_vm()
    folder = tmp_path_factory.mktemp("answers")
    server = LookupServer(folder / "lookups")
    with PartKeyIndex.open(folder / "index") as index:
        # Several segments.
        for first in range(0, len(KEYS), 100):
            add_keys(index, dict(enumerate(KEYS[first : first + 100], first)))
        server.open(index, live_columns(range(len(KEYS))))
        with connected(folder / "lookups") as connection:
            yield connection
        server.close()


def in_bytes(labels: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in labels.items()]


def expected_answer(found: Sequence[Mapping[str, str]], kind: str, label: str = "") -> Found:
    """The expected answer for some keys."""
    if kind == SERIES:
        ordered = [dict(sorted(key.items(), key=lambda pair: pair[0].encode())) for key in found]
        return Found(sorted(ordered, key=in_bytes))
    texts = (
        [name for key in found for name in key]
        if kind == LABEL_NAMES
        else [key[label] for key in found if label in key]
    )
    counts = Counter(texts)
    return Found(sorted(counts, key=str.encode), [counts[text] for text in sorted(counts, key=str.encode)])


def packed(head: bytes, selectors: bytes) -> bytes:
    return framed(head + U32.pack(len(selectors)) + selectors)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("label", ["odd", "id", "none"])
def test_odd_values_are_returned_unchanged(client: socket.socket, kind: str, label: str) -> None:
    for position in range(len(ODD)):
        lookup = PackedLookup(kind, [[("id", str(position))]], label)
        assert answer_to(client, lookup.frame()) == expected_answer([KEYS[position]], kind, label)


@pytest.mark.parametrize("kind", KINDS)
def test_odd_names_are_returned_unchanged(client: socket.socket, kind: str) -> None:
    for position, text in enumerate(ODD):
        key = [{"id": f"name {position}", "part": f"p{position // MAX_LISTED_KEYS}", text: "v"}]
        assert answer_to(client, PackedLookup(kind, [[("id", f"name {position}")]], text).frame()) == expected_answer(
            key, kind, text
        )
        assert answer_to(
            client, PackedLookup(kind, [[("id", f"name {position}"), (text, "v")]]).frame()
        ) == expected_answer(key, kind)
    for part in {key["part"] for key in KEYS if "part" in key}:
        some = [key for key in KEYS if key.get("part") == part]
        assert answer_to(client, PackedLookup(kind, [[("part", part)]], '"').frame()) == expected_answer(
            some, kind, '"'
        )


@pytest.mark.parametrize("kind", KINDS)
def test_more_keys_than_a_handful_are_declined(client: socket.socket, kind: str) -> None:
    assert answer_to(client, PackedLookup(kind, [[("all names", "x")]]).frame()) is None
    at_limit = [[("n", str(number))] for number in range(MAX_LISTED_KEYS)]
    assert answer_to(client, PackedLookup(kind, at_limit, "n").frame()) == expected_answer(
        GROUPED[:MAX_LISTED_KEYS], kind, "n"
    )
    assert answer_to(client, PackedLookup(kind, [*at_limit, [("n", str(MAX_LISTED_KEYS))]], "n").frame()) is None


@given(
    st.sampled_from(KINDS),
    st.sampled_from(["n", "group", "oddx", "none"]),
    st.lists(st.integers(0, 8), min_size=1, max_size=5),
    st.integers(0, 60),
)
def test_several_keys_are_returned_once_each_and_in_order(
    client: socket.socket, kind: str, label: str, groups: list[int], limit: int
) -> None:
    selected = [labels for labels in GROUPED if labels["group"] in {f"g{group}" for group in groups}]
    expected = expected_answer(selected, kind, label)
    lookup = PackedLookup(kind, [[("group", f"g{group}")] for group in groups], label, limit=limit)
    is_too_much = len(selected) > MAX_LISTED_KEYS or len(expected.results) > limit
    assert answer_to(client, lookup.frame()) == (None if is_too_much else expected)


MATCHERS = st.tuples(st.sampled_from(["group", "n", "oddx", "none"]), st.sampled_from(["g1", "g2", "1", "2", "9", "v"]))


@given(st.sampled_from(KINDS), st.lists(st.lists(MATCHERS, min_size=1, max_size=3), min_size=1, max_size=3))
def test_keys_that_have_all_labels_of_any_selector_are_selected(
    client: socket.socket, kind: str, selectors: list[list[tuple[str, str]]]
) -> None:
    selected = [key for key in KEYS if any(all(key.get(k) == v for k, v in selector) for selector in selectors)]
    expected = expected_answer(selected, kind, "n") if len(selected) <= MAX_LISTED_KEYS else None
    assert answer_to(client, PackedLookup(kind, selectors, "n").frame()) == expected


def test_a_lookup_that_matches_no_key_has_an_empty_answer(client: socket.socket) -> None:
    for kind in KINDS:
        found = answer_to(client, PackedLookup(kind, [[("id", "none")]], "id", limit=0).frame())
        assert found == expected_answer([], kind)


def test_results_up_to_the_limit_are_answered_and_one_more_is_declined(client: socket.socket) -> None:
    three = [[("n", "1"), ("group", "g1")], [("n", "2")], [("n", "3")]]
    results = {SERIES: 3, LABEL_NAMES: 5, LABEL_VALUES: 3}
    for kind, count in results.items():
        assert answer_to(client, PackedLookup(kind, three, "n", limit=count).frame()) == expected_answer(
            GROUPED[1:4], kind, "n"
        )
        assert answer_to(client, PackedLookup(kind, three, "n", limit=count - 1).frame()) is None


@pytest.mark.parametrize("limit", [2**31 - 1, 2**31, 2**32 - 1])
def test_a_limit_may_be_as_high_as_its_field_permits(client: socket.socket, limit: int) -> None:
    lookup = PackedLookup(SERIES, [[("id", "1")]], limit=limit)
    assert answer_to(client, lookup.frame()) == expected_answer([KEYS[1]], SERIES)


@pytest.mark.parametrize("kind", [3, 127, 128, 255])
def test_a_lookup_of_an_unknown_kind_is_declined(client: socket.socket, kind: int) -> None:
    frame = bytearray(PackedLookup(SERIES, [[("id", "1")]]).frame())
    frame[PREFIX.size + PREFIX.unpack_from(frame)[1]] = kind
    assert answer_to(client, bytes(frame)) is None


def test_an_answer_of_the_maximum_length_is_sent_and_a_longer_one_is_declined(client: socket.socket) -> None:
    for more in (-1, 0):
        frame = answer_frame(client, PackedLookup(LABEL_VALUES, [[("long", str(more))]], "text").frame())
        assert frame == frame_of(Found(["t" * (LONGEST_VALUE + more)], [1]))
        assert LONGEST - 8 <= len(frame) <= LONGEST
    assert answer_to(client, PackedLookup(LABEL_VALUES, [[("long", "1")]], "text").frame()) is None
    assert answer_to(client, PackedLookup(SERIES, [[("long", "150")]]).frame()) is None
    assert answer_to(client, PackedLookup(LABEL_NAMES, [[("long", "1")]]).frame()) == Found(["long", "text"], [1, 1])


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_the_frame_that_python_would_send_and_reads(client: socket.socket, kind: str) -> None:
    for numbers in ([], [3], [3, 12], list(range(MAX_LISTED_KEYS))):
        selectors = [[("n", str(number))] for number in numbers] or [[("n", "none")]]
        frame = answer_frame(client, PackedLookup(kind, selectors, "group").frame())
        expected = expected_answer([GROUPED[number] for number in numbers], kind, "group")
        assert frame == frame_of(expected)
        assert Found.of(answer_of(decode_frame(bytearray(frame)))) == expected


def test_a_refusal_is_the_frame_that_python_would_send(client: socket.socket) -> None:
    frame = answer_frame(client, PackedLookup(SERIES, [[("all names", "x")]]).frame())
    assert frame == encode_joined(Message("declined", {}))


def test_a_lookup_for_any_of_several_values_of_a_label_is_answered(client: socket.socket) -> None:
    lookup = PackedLookup(SERIES, [[("n", ("3", "12", "none"))]])
    assert answer_to(client, lookup.frame()) == expected_answer([GROUPED[3], GROUPED[12]], SERIES)


def test_malformed_selectors_are_declined_and_the_connection_stays_open(client: socket.socket) -> None:
    head = HEAD.pack(KINDS.index(SERIES), 1, 0, 10, 0)
    selector = b"\1\0" + b"\1\0n" + b"\1\0" + b"\1\x003"
    for end in range(len(selector)):
        assert answer_to(client, packed(head, selector[:end])) is None
        if end:
            assert answer_to(client, packed(head, selector + selector[:end])) is None
    assert answer_to(client, packed(head, selector + b"\0\0")) is None
    assert answer_to(client, packed(head, b"\1\0" + b"\1\0n" + b"\0\0")) is None
    assert answer_to(client, packed(head, selector)) == expected_answer([GROUPED[3]], SERIES)


def test_a_label_with_a_wrong_length_is_declined(client: socket.socket) -> None:
    frame = bytearray(PackedLookup(LABEL_VALUES, [[("n", "3")]], "group").frame())
    offset = PREFIX.size + PREFIX.unpack_from(frame)[1] + HEAD.size - 2
    for length in [*range(40), 0xFFFF]:
        struct.pack_into("<H", frame, offset, length)
        expected = expected_answer([GROUPED[3]], LABEL_VALUES, "group") if length == len("group") else None
        assert answer_to(client, bytes(frame)) == expected


def test_selectors_with_a_wrong_length_are_declined(client: socket.socket) -> None:
    frame = bytearray(PackedLookup(SERIES, [[("n", "3")]]).frame())
    offset = PREFIX.size + PREFIX.unpack_from(frame)[1] + HEAD.size
    (sound,) = struct.unpack_from("<I", frame, offset)
    for length in [*range(40), 2**31 - 1, 2**31, 2**32 - 1]:
        struct.pack_into("<I", frame, offset, length)
        expected = expected_answer([GROUPED[3]], SERIES) if length == sound else None
        assert answer_to(client, bytes(frame)) == expected


@given(st.binary(max_size=60), st.integers(0, 3), st.integers(0, 20))
def test_any_bytes_after_a_head_are_handled_safely(client: socket.socket, rest: bytes, kind: int, length: int) -> None:
    answer_to(client, framed(HEAD.pack(kind, 1, 0, 10, length) + rest))
    assert answer_to(client, PackedLookup(SERIES, [[("n", "3")]]).frame()) == expected_answer([GROUPED[3]], SERIES)
