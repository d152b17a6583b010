"""The socket of the lookup server: who may connect, when it answers, and what ends a connection."""

import fcntl
import socket
import stat
import struct
import termios
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from strandline.errors import StrandlineError
from strandline.index.lookup_server import LookupServer
from strandline.index.part_columns import LIVE, PartColumns
from strandline.index.part_key_index import PartKeyIndex
from strandline.node.query.shard_requests import LABEL_NAMES, LABEL_VALUES, SERIES
from support.lookup_keys import add_keys, key_rows, live_columns
from support.packed_lookups import HEAD, MAGIC, PREFIX, Found, PackedLookup, answer_to, connected, framed

pytestmark = pytest.mark.unit

MOST_CONNECTIONS = 64
LONGEST = 32 << 10
KEYS = 50
LOOKUP = PackedLookup(LABEL_VALUES, [[("n", "7")]], "twice").frame()
ANSWER = Found(["14"], [1])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lookups"


@pytest.fixture
def filled(index: PartKeyIndex) -> PartKeyIndex:
    add_keys(index, {part_id: {"n": str(part_id), "twice": str(2 * part_id)} for part_id in range(KEYS)})
    return index


@pytest.fixture
def columns() -> PartColumns:
    return live_columns(range(KEYS))


@pytest.fixture
def server(path: Path, filled: PartKeyIndex, columns: PartColumns) -> Iterator[LookupServer]:
    """An open server."""
    opened = LookupServer(path)
    opened.open(filled, columns)
    yield opened
    opened.close()


@pytest.fixture
def client(server: LookupServer) -> Iterator[socket.socket]:
    with connected(server._path) as connection:
        yield connection


def await_read(connection: socket.socket) -> None:
    """Wait until the server has read everything that was sent."""
    while struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4))) != (0,):
        pass


def assert_disconnected(connection: socket.socket) -> None:
    with pytest.raises(ConnectionError):
        answer_to(connection, b"")


def test_a_shut_server_declines_and_an_opened_one_answers(
    server: LookupServer, filled: PartKeyIndex, columns: PartColumns, client: socket.socket
) -> None:
    assert answer_to(client, LOOKUP) == ANSWER
    for _ in range(3):
        server.shut()
        server.shut()
        assert answer_to(client, LOOKUP) is None
        server.open(filled, columns)
        assert answer_to(client, LOOKUP) == ANSWER


def test_a_newly_opened_index_answers_in_place_of_the_previous_one(
    server: LookupServer, columns: PartColumns, client: socket.socket, tmp_path: Path
) -> None:
    with PartKeyIndex.open(tmp_path / "other") as other:
        add_keys(other, {3: {"n": "7", "twice": "fourteen"}})
        server.open(other, columns)
        assert answer_to(client, LOOKUP) == Found(["fourteen"], [1])


def test_keys_of_a_later_refresh_are_answered(
    server: LookupServer, filled: PartKeyIndex, columns: PartColumns, client: socket.socket
) -> None:
    lookup = PackedLookup(SERIES, [[("n", "new")]]).frame()
    columns.append(key_rows({KEYS: (0, LIVE)}))
    server.open(filled, columns)
    assert answer_to(client, lookup) == Found([])
    add_keys(filled, {KEYS: {"n": "new"}})
    assert answer_to(client, lookup) == Found([{"n": "new"}])


@pytest.mark.usefixtures("server")
def test_an_index_that_was_closed_is_declined(filled: PartKeyIndex, client: socket.socket) -> None:
    assert answer_to(client, LOOKUP) == ANSWER
    filled.close()
    for _ in range(3):
        assert answer_to(client, LOOKUP) is None


@pytest.mark.usefixtures("server")
def test_only_the_same_user_can_access_the_socket(path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_ISSOCK(path.stat().st_mode)


def test_a_lookup_that_arrives_in_two_pieces_is_answered(client: socket.socket) -> None:
    for cut in range(1, len(LOOKUP)):
        client.sendall(LOOKUP[:cut])
        await_read(client)
        assert answer_to(client, LOOKUP[cut:]) == ANSWER


def test_a_lookup_that_arrives_byte_by_byte_is_answered(client: socket.socket) -> None:
    for byte in LOOKUP[:-1]:
        client.sendall(bytes([byte]))
        await_read(client)
    assert answer_to(client, LOOKUP[-1:]) == ANSWER


def by_value(value: str) -> bytes:
    return PackedLookup(SERIES, [[("n", value)]]).frame()


def test_a_lookup_may_be_as_long_as_a_frame_and_no_longer(path: Path, client: socket.socket) -> None:
    # The frame itself is padded, and its length field is longer for a longer frame.
    room = max(size for size in range(LONGEST - 500, LONGEST) if len(by_value("v" * size)) <= LONGEST)
    longest = by_value("v" * room)
    assert len(longest) == LONGEST
    assert answer_to(client, longest) == Found([])
    with connected(path) as other, pytest.raises(ConnectionError):
        answer_to(other, by_value("v" * (room + 1)))
    assert answer_to(client, LOOKUP) == ANSWER


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"SLP1" + LOOKUP[4:], id="another magic"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="http"),
        pytest.param(PREFIX.pack(MAGIC, LONGEST, 24), id="too long a header"),
        pytest.param(PREFIX.pack(MAGIC, 2**32 - 1, 24), id="a header longer than all"),
        pytest.param(PREFIX.pack(MAGIC, 0, LONGEST - PREFIX.size + 1), id="too long"),
        pytest.param(PREFIX.pack(MAGIC, 0, 2**63 - 1), id="far too long"),
        pytest.param(PREFIX.pack(MAGIC, 0, 2**64 - 1), id="longer than all"),
        pytest.param(PREFIX.pack(MAGIC, 0, 0), id="nothing"),
        pytest.param(PREFIX.pack(MAGIC, 0, 16) + bytes(16), id="too short"),
        pytest.param(LOOKUP + b"\0", id="a byte behind it"),
        pytest.param(LOOKUP + LOOKUP, id="two at once"),
    ],
)
def test_an_invalid_lookup_ends_its_connection_and_no_other(path: Path, client: socket.socket, frame: bytes) -> None:
    with connected(path) as wrong:
        assert answer_to(wrong, LOOKUP) == ANSWER
        with pytest.raises(ConnectionError):
            answer_to(wrong, frame)
    assert answer_to(client, LOOKUP) == ANSWER
    with connected(path) as other:
        assert answer_to(other, LOOKUP) == ANSWER


@pytest.mark.parametrize("header", [b"", b"{}      ", b" " * 800, bytes(8), b"\xff" * 64])
def test_the_header_of_a_frame_is_ignored(client: socket.socket, header: bytes) -> None:
    _, length, size = PREFIX.unpack_from(LOOKUP)
    body = LOOKUP[PREFIX.size + length :]
    assert answer_to(client, PREFIX.pack(MAGIC, len(header), size) + header + body) == ANSWER


def test_a_lookup_that_ends_before_its_selectors_is_declined(client: socket.socket) -> None:
    assert answer_to(client, framed(HEAD.pack(0, 1, 0, 10, 0))) is None
    assert answer_to(client, LOOKUP) == ANSWER


def test_a_client_that_disconnects_within_a_lookup_does_not_affect_others(path: Path, client: socket.socket) -> None:
    for end in range(len(LOOKUP)):
        with connected(path) as leaving:
            leaving.sendall(LOOKUP[:end])
            await_read(leaving)
    assert answer_to(client, LOOKUP) == ANSWER


def test_a_client_that_sends_lookups_without_reading_answers_is_disconnected(path: Path, client: socket.socket) -> None:
    def sends_lookups(reads_no_answers: socket.socket) -> None:
        while True:
            reads_no_answers.sendall(LOOKUP)
            await_read(reads_no_answers)

    with connected(path) as reads_no_answers, pytest.raises(ConnectionError):
        sends_lookups(reads_no_answers)
    assert answer_to(client, LOOKUP) == ANSWER


def test_a_connection_that_has_ended_leaves_no_file_open(path: Path, client: socket.socket) -> None:
    assert answer_to(client, LOOKUP) == ANSWER
    before = open_files()
    for _ in range(20):
        with connected(path) as leaving:
            assert answer_to(leaving, LOOKUP) == ANSWER
            assert open_files() > before
        # It takes the server a moment to notice.
        while open_files() > before:
            pass


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_connections_do_not_wait_for_each_other(path: Path, client: socket.socket) -> None:
    with connected(path) as other:
        client.sendall(LOOKUP[:20])
        other.sendall(LOOKUP[:30])
        await_read(client)
        await_read(other)
        with connected(path) as third:
            assert answer_to(third, LOOKUP) == ANSWER
        assert answer_to(other, LOOKUP[30:]) == ANSWER
        assert answer_to(client, LOOKUP[20:]) == ANSWER


@pytest.mark.usefixtures("server")
def test_each_of_many_concurrent_clients_gets_its_own_answers(path: Path) -> None:
    def send_lookups(first: int) -> None:
        with connected(path) as connection:
            for number in range(first, first + 300):
                n = number % KEYS
                lookup = PackedLookup(LABEL_VALUES, [[("n", str(n))]], "twice")
                assert answer_to(connection, lookup.frame()) == Found([str(2 * n)], [1])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send_lookups, range(8)))


@pytest.mark.usefixtures("server")
def test_a_connection_above_the_limit_is_closed_until_another_one_ends(path: Path) -> None:
    with ExitStack() as stack:
        all_of_them = []
        for _ in range(MOST_CONNECTIONS):
            all_of_them.append(stack.enter_context(connected(path)))
            assert answer_to(all_of_them[-1], LOOKUP) == ANSWER
        for _ in range(3):
            with connected(path) as one_more:
                assert_disconnected(one_more)
        assert [answer_to(connection, LOOKUP) for connection in all_of_them] == [ANSWER] * MOST_CONNECTIONS
        all_of_them[7].close()
        # It takes the server a moment to notice.
        while not is_answered(path):
            pass
        assert answer_to(all_of_them[8], LOOKUP) == ANSWER


def is_answered(path: Path) -> bool:
    with connected(path) as connection:
        try:
            return answer_to(connection, LOOKUP) == ANSWER
        except ConnectionError:
            return False


def test_closing_removes_the_socket_and_ends_connections(
    server: LookupServer, path: Path, client: socket.socket
) -> None:
    with connected(path) as waiting:
        assert answer_to(client, LOOKUP) == answer_to(waiting, LOOKUP) == ANSWER
        waiting.sendall(LOOKUP[:20])
        await_read(waiting)
        server.close()
        assert not path.exists()
        assert_disconnected(waiting)
        assert_disconnected(client)
    server.close()
    server.shut()


def test_a_server_that_was_never_opened_has_no_socket(path: Path) -> None:
    server = LookupServer(path)
    server.shut()
    assert not path.exists()
    server.close()


def test_a_socket_that_an_earlier_process_left_is_replaced(
    path: Path, filled: PartKeyIndex, columns: PartColumns
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stale:
        stale.bind(str(path))
    server = LookupServer(path)
    assert not path.exists()
    server.open(filled, columns)
    assert is_answered(path)
    server.close()


def test_a_server_may_follow_another_one_at_its_path(path: Path, filled: PartKeyIndex, columns: PartColumns) -> None:
    for _ in range(3):
        server = LookupServer(path)
        server.open(filled, columns)
        assert is_answered(path)
        server.close()


def test_a_path_that_can_not_have_a_socket_is_reported(
    filled: PartKeyIndex, columns: PartColumns, tmp_path: Path
) -> None:
    for path in (tmp_path / "missing" / "lookups", tmp_path / ("l" * 120)):
        server = LookupServer(path)
        with pytest.raises(StrandlineError):
            server.open(filled, columns)
        server.shut()
        server.close()


def test_names_of_labels_and_series_are_answered_as_well(client: socket.socket) -> None:
    selectors = [[("n", "7")], [("twice", "4")]]
    assert answer_to(client, PackedLookup(LABEL_NAMES, selectors).frame()) == Found(["n", "twice"], [2, 2])
    both = Found([{"n": "2", "twice": "4"}, {"n": "7", "twice": "14"}])
    assert answer_to(client, PackedLookup(SERIES, selectors).frame()) == both
