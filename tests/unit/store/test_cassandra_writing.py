"""Many writes are sent concurrently, within limits, and resent after a missing answer."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from strandline.clock import ManualClock
from strandline.store.cassandra.failures import Unanswered
from strandline.store.cassandra.retries import Retries, RetryPolicy
from strandline.store.cassandra.writing import InFlightLimit, RowWrite, write_all
from strandline.store.protocol import StoreRefused, StoreUnavailable

pytestmark = pytest.mark.unit

Answer = Exception | None


class Servers:
    """Replaces `Requests`: delays writes until `at_once` of them wait, then answers them in a thread."""

    def __init__(self, at_once: int = 1, answer: Callable[[str], Answer] = lambda _: None) -> None:
        self.retries = Retries(ManualClock(), RetryPolicy(deadline=10.0))
        self.sent: list[str] = []
        self.most_waiting = 0
        self._at_once = at_once
        self._answer = answer
        self._waiting: list[tuple[str, Callable[[object], None], Callable[[Exception], None]]] = []
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1)

    def write(
        self, _what: str, statement: str, done: Callable[[object], None], failed: Callable[[Exception], None]
    ) -> None:
        with self._lock:
            self.sent.append(statement)
            self._waiting.append((statement, done, failed))
            self.most_waiting = max(self.most_waiting, len(self._waiting))
            if len(self._waiting) < self._at_once:
                return
            answered, self._waiting = self._waiting, []
        self._thread.submit(self._reply, answered)

    def _reply(self, answered: Sequence[tuple[str, Callable[[object], None], Callable[[Exception], None]]]) -> None:
        for statement, done, failed in answered:
            error = self._answer(statement)
            if error is None:
                done(None)
            else:
                failed(error)


def written(servers: Servers, rows: Iterator[RowWrite], room: InFlightLimit | None = None) -> int:
    return write_all(servers, room or InFlightLimit(), "write x", rows)  # type: ignore[arg-type]  # stands in for `Requests`


def rows(*sizes: int) -> Iterator[RowWrite]:
    return (RowWrite(f"row {number}", size) for number, size in enumerate(sizes))


def failing_at_first(times: int, error: Exception) -> Callable[[str], Answer]:
    """Each row fails this many times before it is written."""
    seen: Counter[str] = Counter()

    def answer(statement: str) -> Answer:
        seen[statement] += 1
        return error if seen[statement] <= times else None

    return answer


def test_every_row_is_written_once() -> None:
    servers = Servers()
    assert written(servers, rows(*[100] * 50)) == 50
    assert servers.sent == [f"row {number}" for number in range(50)]
    assert written(Servers(), rows()) == 0


def test_as_many_writes_are_in_flight_as_the_number_allows() -> None:
    servers = Servers(at_once=8)
    assert written(servers, rows(*[1] * 64), InFlightLimit(max_bytes=1_000_000, max_writes=8)) == 64
    assert servers.most_waiting == 8


def test_as_many_writes_are_in_flight_as_the_bytes_allow() -> None:
    servers = Servers(at_once=3)
    assert written(servers, rows(*[100] * 30), InFlightLimit(max_bytes=350, max_writes=64)) == 30
    assert servers.most_waiting == 3


def test_a_row_larger_than_the_bounds_is_sent_alone() -> None:
    servers = Servers(at_once=1)
    assert written(servers, rows(10, 10_000, 10, 10_000, 10_000), InFlightLimit(max_bytes=100)) == 5


def test_the_limits_apply_to_all_writers_together() -> None:
    servers, room = Servers(at_once=4), InFlightLimit(max_bytes=1_000_000, max_writes=4)
    with ThreadPoolExecutor(4) as threads:
        counts = list(threads.map(lambda _: written(servers, rows(*[1] * 20), room), range(4)))
    assert counts == [20] * 4
    assert servers.most_waiting == 4


def test_rows_that_were_not_answered_are_sent_again() -> None:
    servers = Servers(answer=failing_at_first(3, Unanswered("no answer")))
    assert written(servers, rows(*[100] * 10)) == 10
    assert Counter(servers.sent) == {f"row {number}": 4 for number in range(10)}


def test_attempts_are_separated_by_delays() -> None:
    servers = Servers(answer=failing_at_first(2, Unanswered("no answer")))
    written(servers, rows(100))
    assert servers.retries.clock.monotonic() >= 0.5 * (0.05 + 0.1)


def test_rows_that_are_never_answered_end_the_write_past_the_deadline() -> None:
    servers = Servers(answer=lambda statement: Unanswered("no answer") if statement == "row 3" else None)
    with pytest.raises(StoreUnavailable, match=r"no answer \(tried"):
        written(servers, rows(*[100] * 10))
    assert servers.sent.count("row 2") == 1


def test_a_refusal_ends_the_write_at_once() -> None:
    servers = Servers(
        at_once=5, answer=lambda statement: StoreRefused("never") if statement == "row 3" else Unanswered("no answer")
    )
    with pytest.raises(StoreRefused, match="never"):
        written(servers, rows(*[100] * 5))
    assert len(servers.sent) == 5


def test_no_further_rows_are_consumed_while_rows_can_not_be_written() -> None:
    taken = []

    def endless() -> Iterator[RowWrite]:
        while True:
            taken.append(1)
            yield RowWrite("row", 100)

    servers = Servers(at_once=4, answer=lambda _: Unanswered("no answer"))
    with pytest.raises(StoreUnavailable):
        written(servers, endless(), InFlightLimit(max_writes=4))
    assert len(taken) <= 9


def test_an_error_while_rows_are_encoded_releases_the_in_flight_budget() -> None:
    room = InFlightLimit(max_bytes=200)

    def broken() -> Iterator[RowWrite]:
        yield RowWrite("row", 100)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        written(Servers(), broken(), room)
    assert written(Servers(), rows(200, 200), room) == 2
