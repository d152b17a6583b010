"""The rehearsal of a server of look-ups: what it asks is sound and gets answers, and it disturbs nobody.

It asks at the path of its server. A test that puts a socket of its own there gets all of its questions, and holds it
for as long as it likes.
"""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from strandline.index.lookup_server import LookupServer
from strandline.index.part_columns import PartColumns
from strandline.index.part_key_index import PartKeyIndex
from strandline.node.query.frames import Message, encode_joined
from strandline.node.query.shard_requests import LABEL_NAMES, LABEL_VALUES, SERIES
from support.lookup_keys import add_keys, live_columns
from support.lookup_questions import (
    ALWAYS,
    KINDS,
    Found,
    LookupQuestion,
    asked,
    asked_for_frame,
    connected,
    read_answer,
)

pytestmark = pytest.mark.unit

KEYS = 1000
"""The fewest with which there is one."""
LABELS = [{"n": str(one), "tenth": str(one % 100), "é": f"{one // 4}\n"} for one in range(KEYS)]
# By what a key is asked for: the label that tells it from all others, or all that it has.
RAREST, ALL = ("n",), ("n", "tenth", "é")
DECLINED = encode_joined(Message("declined", {}))
_WAIT_S = 60.0


@dataclass
class Rehearsed:
    """A server whose rehearsal comes to a listener instead, and one connection to the server itself."""

    server: LookupServer
    index: PartKeyIndex
    columns: PartColumns
    listener: socket.socket
    asker: socket.socket

    def begin(self) -> socket.socket:
        """Let it begin: the connection over which it asks."""
        add_keys(self.index, {KEYS - 1: LABELS[-1]})
        self.server.open(self.index, self.columns)
        rehearsal, _ = self.listener.accept()
        rehearsal.settimeout(_WAIT_S)
        return rehearsal


@pytest.fixture
def rehearsed(tmp_path: Path, index: PartKeyIndex) -> Iterator[Rehearsed]:
    path = tmp_path / "look"
    server = LookupServer(path)
    columns = live_columns(range(KEYS))
    add_keys(index, dict(enumerate(LABELS[:-1])))
    # With one key less there is none.
    server.open(index, columns)
    with connected(path) as asker, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        path.unlink()
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(_WAIT_S)
        assert asked(asker, series_of(3)) == series_answer(3)
        server.shut()
        yield Rehearsed(server, index, columns, listener, asker)
    server.close()


def series_of(one: int) -> bytes:
    return LookupQuestion(SERIES, [[("n", str(one))]]).frame()


def series_answer(one: int) -> Found:
    return Found([LABELS[one]])


def questions(rehearsal: socket.socket) -> Iterator[LookupQuestion]:
    """What is asked until the other side hangs up. The next one comes only after an answer."""
    while frame := rehearsal.recv(1 << 16):
        yield LookupQuestion.of(frame)


def test_all_that_is_rehearsed_finds_keys_until_it_ends_by_itself(rehearsed: Rehearsed) -> None:
    seen = []
    with rehearsed.begin() as rehearsal:
        for question in questions(rehearsal):
            assert question.within == ALWAYS
            (selector,) = question.selectors
            answer = asked_for_frame(rehearsed.asker, question.frame())
            found = read_answer(answer)
            assert found is not None
            assert found.results
            assert found.counts in (None, [1] * len(found.results)), "one key"
            seen.append((question.kind, tuple(name for name, _ in selector)))
            rehearsal.sendall(answer)
    # The kinds in turn, by one label as by all.
    assert all({kind for kind, _ in seen[turn : turn + 3]} == set(KINDS) for turn in range(len(seen) - 2))
    assert set(seen) == set(product(KINDS, (RAREST, ALL)))


def test_answers_are_right_while_it_runs_and_when_it_has_gone(rehearsed: Rehearsed) -> None:
    with rehearsed.begin() as rehearsal:
        for turn, _ in zip(range(300), questions(rehearsal), strict=False):
            assert asked(rehearsed.asker, series_of(turn)) == series_answer(turn)
            rehearsal.sendall(DECLINED)
    names = LookupQuestion(LABEL_NAMES, [[("é", "7\n")]]).frame()
    assert asked(rehearsed.asker, names) == Found(sorted(LABELS[0]), [4] * 3)
    for one in range(KEYS):
        assert asked(rehearsed.asker, series_of(one)) == series_answer(one)


def test_it_ends_when_the_server_is_shut_and_is_not_begun_again(rehearsed: Rehearsed) -> None:
    with rehearsed.begin() as rehearsal:
        asking = questions(rehearsal)
        for _, _ in zip(range(30), asking, strict=False):
            rehearsal.sendall(DECLINED)
        next(asking)
        rehearsed.server.shut()
        rehearsal.sendall(DECLINED)
        assert list(asking) == []
    rehearsed.server.open(rehearsed.index, rehearsed.columns)
    with connected(Path(rehearsed.listener.getsockname())) as mine:
        other, _ = rehearsed.listener.accept()
        mine.sendall(b"mine")
        assert other.recv(4) == b"mine"
        other.close()
    assert asked(rehearsed.asker, series_of(5)) == series_answer(5)


def test_a_rehearsal_at_the_servers_own_socket_leaves_answers_right(tmp_path: Path, index: PartKeyIndex) -> None:
    add_keys(index, dict(enumerate(LABELS)))
    server = LookupServer(tmp_path / "look")
    server.open(index, live_columns(range(KEYS)))
    with connected(tmp_path / "look") as asker:
        for one in range(KEYS):
            values = LookupQuestion(LABEL_VALUES, [[("n", str(one))]], "é").frame()
            assert asked(asker, values) == Found([LABELS[one]["é"]], [1])
    server.close()
