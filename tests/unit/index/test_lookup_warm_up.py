"""The warm-up of the lookup server: its lookups are valid and find keys, and it does not disturb other lookups.

It connects to the path of its server. A test that puts its own socket there receives all lookups of the warm-up, and
controls its speed.
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
from support.packed_lookups import (
    ALWAYS,
    KINDS,
    Found,
    PackedLookup,
    answer_frame,
    answer_to,
    connected,
    read_answer,
)

pytestmark = pytest.mark.unit

KEYS = 1000
"""The smallest number of keys with a warm-up."""
LABELS = [{"n": str(part_id), "tenth": str(part_id % 100), "é": f"{part_id // 4}\n"} for part_id in range(KEYS)]
# The labels of a selector: the one that distinguishes the key from all others, or all of the key.
RAREST, ALL = ("n",), ("n", "tenth", "é")
DECLINED = encode_joined(Message("declined", {}))
_WAIT_S = 60.0


@dataclass
class WarmUpServer:
    """A server whose warm-up connects to `listener` instead, and a connection to the server itself."""

    server: LookupServer
    index: PartKeyIndex
    columns: PartColumns
    listener: socket.socket
    client: socket.socket

    def begin(self) -> socket.socket:
        """Start the warm-up, and return its connection."""
        add_keys(self.index, {KEYS - 1: LABELS[-1]})
        self.server.open(self.index, self.columns)
        warm_up, _ = self.listener.accept()
        warm_up.settimeout(_WAIT_S)
        return warm_up


@pytest.fixture
def warming(tmp_path: Path, index: PartKeyIndex) -> Iterator[WarmUpServer]:
    path = tmp_path / "lookups"
    server = LookupServer(path)
    columns = live_columns(range(KEYS))
    add_keys(index, dict(enumerate(LABELS[:-1])))
    # With one key fewer there is no warm-up.
    server.open(index, columns)
    with connected(path) as client, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        path.unlink()
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(_WAIT_S)
        assert answer_to(client, series_of(3)) == series_answer(3)
        server.shut()
        yield WarmUpServer(server, index, columns, listener, client)
    server.close()


def series_of(part_id: int) -> bytes:
    return PackedLookup(SERIES, [[("n", str(part_id))]]).frame()


def series_answer(part_id: int) -> Found:
    return Found([LABELS[part_id]])


def lookups(warm_up: socket.socket) -> Iterator[PackedLookup]:
    """The lookups of the warm-up, until it ends. The next one comes only after an answer."""
    while frame := warm_up.recv(1 << 16):
        yield PackedLookup.of(frame)


def test_all_lookups_of_the_warm_up_find_keys_until_it_ends_by_itself(warming: WarmUpServer) -> None:
    seen = []
    with warming.begin() as warm_up:
        for lookup in lookups(warm_up):
            assert lookup.within == ALWAYS
            (selector,) = lookup.selectors
            answer = answer_frame(warming.client, lookup.frame())
            found = read_answer(answer)
            assert found is not None
            assert found.results
            assert found.counts in (None, [1] * len(found.results)), "one key"
            seen.append((lookup.kind, tuple(name for name, _ in selector)))
            warm_up.sendall(answer)
    # The kinds alternate, both by one label and by all.
    assert all({kind for kind, _ in seen[number : number + 3]} == set(KINDS) for number in range(len(seen) - 2))
    assert set(seen) == set(product(KINDS, (RAREST, ALL)))


def test_answers_are_correct_during_and_after_the_warm_up(warming: WarmUpServer) -> None:
    with warming.begin() as warm_up:
        for number, _ in zip(range(300), lookups(warm_up), strict=False):
            assert answer_to(warming.client, series_of(number)) == series_answer(number)
            warm_up.sendall(DECLINED)
    names = PackedLookup(LABEL_NAMES, [[("é", "7\n")]]).frame()
    assert answer_to(warming.client, names) == Found(sorted(LABELS[0]), [4] * 3)
    for part_id in range(KEYS):
        assert answer_to(warming.client, series_of(part_id)) == series_answer(part_id)


def test_the_warm_up_ends_when_the_server_is_shut_and_does_not_start_again(warming: WarmUpServer) -> None:
    with warming.begin() as warm_up:
        remaining = lookups(warm_up)
        for _, _ in zip(range(30), remaining, strict=False):
            warm_up.sendall(DECLINED)
        next(remaining)
        warming.server.shut()
        warm_up.sendall(DECLINED)
        assert list(remaining) == []
    warming.server.open(warming.index, warming.columns)
    with connected(Path(warming.listener.getsockname())) as accepted:
        other, _ = warming.listener.accept()
        accepted.sendall(b"mine")
        assert other.recv(4) == b"mine"
        other.close()
    assert answer_to(warming.client, series_of(5)) == series_answer(5)


def test_answers_are_correct_with_a_warm_up_at_the_servers_own_socket(tmp_path: Path, index: PartKeyIndex) -> None:
    add_keys(index, dict(enumerate(LABELS)))
    server = LookupServer(tmp_path / "lookups")
    server.open(index, live_columns(range(KEYS)))
    with connected(tmp_path / "lookups") as client:
        for part_id in range(KEYS):
            values = PackedLookup(LABEL_VALUES, [[("n", str(part_id))]], "é").frame()
            assert answer_to(client, values) == Found([LABELS[part_id]["é"]], [1])
    server.close()
