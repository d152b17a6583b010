"""What a server of look-ups answers: which keys are meant, and what Python's own writer of JSON makes of them."""

import socket
import struct
from collections.abc import Iterator, Mapping, Sequence

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.lookup_server import LookupServer
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.vm import start_vm
from strandline.node.query.asks import LABEL_NAMES, LABEL_VALUES, SERIES
from strandline.node.query.frames import PLAIN_MAGIC, PREFIX
from strandline.node.query.plain_lookups import KINDS, FewJson
from support.lookup_keys import add_keys, live_columns
from support.lookup_questions import LookupQuestion, asked, connected

pytestmark = pytest.mark.unit

A_HANDFUL = 20
LONGEST = 32 << 10
# Every character of ASCII, and such that take two, three and four bytes; beside an escape before and behind them.
ODD = [chr(code) for code in range(1, 128)] + ["é", "\u2028", "\U0001f600", 'é"\n', '\\\U0001f600"', "\uffffé\t"]
GROUPED = [{"group": f"g{number % 7}", "n": str(number), "odd" + "x" * (number % 3): "v"} for number in range(40)]
KEYS: list[dict[str, str]] = [{"id": str(place), "odd": text} for place, text in enumerate(ODD)]
# Odd names come alone, all of them, and a handful together.
KEYS += [{"id": f"name {place}", "part": f"p{place // A_HANDFUL}", text: "v"} for place, text in enumerate(ODD)]
KEYS += [{"all names": "x", text: "v"} for text in ODD] + GROUPED
# What comes before the text of a value that is alone in its answer, and what behind it.
AROUND = PREFIX.size + 4 + len('["') + len('"]')
KEYS += [{"long": str(more), "text": "t" * (LONGEST - AROUND + more)} for more in (-1, 0, 1)]
HEAD = struct.Struct("<BqqIH")


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


def answered(found: Sequence[Mapping[str, str]], kind: str, label: str = "") -> FewJson:
    """What Python makes of some keys."""
    if kind == SERIES:
        series = sorted((dict(sorted(one.items())) for one in found), key=lambda one: list(one.items()))
        return FewJson(len(found), orjson.dumps(series))
    texts = {name for one in found for name in one} if kind == LABEL_NAMES else {one.get(label) for one in found}
    return FewJson(len(found), orjson.dumps(sorted(text for text in texts if text is not None)))


def framed(body: bytes) -> bytes:
    return PREFIX.pack(PLAIN_MAGIC, 0, len(body)) + body


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("label", ["odd", "id", "none"])
def test_odd_values_are_written_as_python_writes_them(asker: socket.socket, kind: str, label: str) -> None:
    for place in range(len(ODD)):
        question = LookupQuestion(kind, [[("id", str(place))]], label)
        assert asked(asker, question.frame()) == answered([KEYS[place]], kind, label)


@pytest.mark.parametrize("kind", KINDS)
def test_odd_names_are_written_as_python_writes_them(asker: socket.socket, kind: str) -> None:
    for place, text in enumerate(ODD):
        one = [{"id": f"name {place}", "part": f"p{place // A_HANDFUL}", text: "v"}]
        assert asked(asker, LookupQuestion(kind, [[("id", f"name {place}")]], text).frame()) == answered(
            one, kind, text
        )
        assert asked(asker, LookupQuestion(kind, [[("id", f"name {place}"), (text, "v")]]).frame()) == answered(
            one, kind
        )
    for part in {one["part"] for one in KEYS if "part" in one}:
        some = [one for one in KEYS if one.get("part") == part]
        assert asked(asker, LookupQuestion(kind, [[("part", part)]], '"').frame()) == answered(some, kind, '"')


@pytest.mark.parametrize("kind", KINDS)
def test_more_keys_than_a_handful_are_declined(asker: socket.socket, kind: str) -> None:
    assert asked(asker, LookupQuestion(kind, [[("all names", "x")]]).frame()) is None
    handful = [[("n", str(number))] for number in range(A_HANDFUL)]
    assert asked(asker, LookupQuestion(kind, handful, "n").frame()) == answered(GROUPED[:A_HANDFUL], kind, "n")
    assert asked(asker, LookupQuestion(kind, [*handful, [("n", str(A_HANDFUL))]], "n").frame()) is None


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
    question = LookupQuestion(kind, [[("group", f"g{group}")] for group in groups], label, limit=limit)
    is_too_much = len(meant) > A_HANDFUL or len(orjson.loads(expected.text)) > limit
    assert asked(asker, question.frame()) == (None if is_too_much else expected)


MATCHERS = st.tuples(st.sampled_from(["group", "n", "oddx", "none"]), st.sampled_from(["g1", "g2", "1", "2", "9", "v"]))


@given(st.sampled_from(KINDS), st.lists(st.lists(MATCHERS, min_size=1, max_size=3), min_size=1, max_size=3))
def test_a_key_is_meant_that_has_all_labels_of_any_selector(
    asker: socket.socket, kind: str, selectors: list[list[tuple[str, str]]]
) -> None:
    meant = [one for one in KEYS if any(all(one.get(k) == v for k, v in selector) for selector in selectors)]
    expected = answered(meant, kind, "n") if len(meant) <= A_HANDFUL else None
    assert asked(asker, LookupQuestion(kind, selectors, "n").frame()) == expected


def test_what_no_key_has_is_answered_with_nothing(asker: socket.socket) -> None:
    for kind in KINDS:
        assert asked(asker, LookupQuestion(kind, [[("id", "none")]], "id", limit=0).frame()) == FewJson(0, b"[]")


def test_as_many_results_as_are_wanted_are_answered_and_one_more_is_declined(asker: socket.socket) -> None:
    three = [[("n", "1"), ("group", "g1")], [("n", "2")], [("n", "3")]]
    results = {SERIES: 3, LABEL_NAMES: 5, LABEL_VALUES: 3}
    for kind, count in results.items():
        assert asked(asker, LookupQuestion(kind, three, "n", limit=count).frame()) == answered(GROUPED[1:4], kind, "n")
        assert asked(asker, LookupQuestion(kind, three, "n", limit=count - 1).frame()) is None


@pytest.mark.parametrize("limit", [2**31 - 1, 2**31, 2**32 - 1])
def test_a_limit_may_be_as_high_as_there_is_room_for(asker: socket.socket, limit: int) -> None:
    question = LookupQuestion(SERIES, [[("id", "1")]], limit=limit)
    assert asked(asker, question.frame()) == answered([KEYS[1]], SERIES)


@pytest.mark.parametrize("kind", [3, 127, 128, 255])
def test_a_question_of_a_kind_that_is_not_known_is_declined(asker: socket.socket, kind: int) -> None:
    frame = bytearray(LookupQuestion(SERIES, [[("id", "1")]]).frame())
    frame[PREFIX.size] = kind
    assert asked(asker, bytes(frame)) is None


def test_an_answer_as_long_as_may_be_comes_and_a_longer_one_is_declined(asker: socket.socket) -> None:
    for more in (-1, 0):
        found = asked(asker, LookupQuestion(LABEL_VALUES, [[("long", str(more))]], "text").frame())
        assert found is not None
        assert len(found.text) + PREFIX.size + 4 == LONGEST + more
        assert orjson.loads(found.text) == ["t" * (LONGEST - AROUND + more)]
    assert asked(asker, LookupQuestion(LABEL_VALUES, [[("long", "1")]], "text").frame()) is None
    assert asked(asker, LookupQuestion(SERIES, [[("long", "-1")]]).frame()) is None
    assert asked(asker, LookupQuestion(LABEL_NAMES, [[("long", "1")]]).frame()) == FewJson(1, b'["long","text"]')


def test_a_label_of_which_one_of_several_values_is_wanted_is_answered(asker: socket.socket) -> None:
    packed = b"\1\0" + b"\1\0n" + b"\3\0" + b"\1\x003" + b"\2\x0012" + b"\4\0none"
    question = framed(HEAD.pack(KINDS.index(SERIES), 1, 0, 10, 0) + packed)
    assert asked(asker, question) == answered([GROUPED[3], GROUPED[12]], SERIES)


def test_selectors_that_are_none_are_declined_and_the_connection_goes_on(asker: socket.socket) -> None:
    head = HEAD.pack(KINDS.index(SERIES), 1, 0, 10, 0)
    selector = b"\1\0" + b"\1\0n" + b"\1\0" + b"\1\x003"
    for end in range(len(selector)):
        assert asked(asker, framed(head + selector[:end])) is None
        if end:
            assert asked(asker, framed(head + selector + selector[:end])) is None
    assert asked(asker, framed(head + selector + b"\0\0")) is None
    assert asked(asker, framed(head + b"\1\0" + b"\1\0n" + b"\0\0")) is None
    assert asked(asker, framed(head + selector)) == answered([GROUPED[3]], SERIES)


def test_a_label_with_a_length_that_is_wrong_is_declined(asker: socket.socket) -> None:
    sound = LookupQuestion(LABEL_VALUES, [[("n", "3")]], "group").frame()
    body = bytearray(sound[PREFIX.size :])
    for length in [*range(40), 0xFFFF]:
        struct.pack_into("<H", body, HEAD.size - 2, length)
        expected = answered([GROUPED[3]], LABEL_VALUES, "group") if length == len("group") else None
        assert asked(asker, framed(bytes(body))) == expected


@given(st.binary(max_size=60), st.integers(0, 3), st.integers(0, 20))
def test_no_bytes_behind_a_head_do_harm(asker: socket.socket, rest: bytes, kind: int, length: int) -> None:
    asked(asker, framed(HEAD.pack(kind, 1, 0, 10, length) + rest))
    assert asked(asker, LookupQuestion(SERIES, [[("n", "3")]]).frame()) == answered([GROUPED[3]], SERIES)
