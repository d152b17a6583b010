"""All answers to writes are counted, which shows the progress of a storing thread."""

from collections.abc import Callable
from typing import Any

import pytest
from cassandra import OperationTimedOut
from cassandra.cluster import NoHostAvailable

from strandline.clock import ManualClock
from strandline.store.cassandra.failures import Unanswered
from strandline.store.cassandra.requests import Requests
from strandline.store.cassandra.retries import Retries

pytestmark = pytest.mark.unit


class Session:
    """Keeps the callbacks of each write; compare-and-sets time out."""

    def __init__(self) -> None:
        self.callbacks: list[tuple[Callable[[Any], None], Callable[[Exception], None]]] = []

    def execute_async(self, _statement: object) -> "Session":
        return self

    def add_callbacks(self, done: Callable[[Any], None], failed: Callable[[Exception], None]) -> None:
        self.callbacks.append((done, failed))

    def execute(self, _statement: object) -> None:
        raise OperationTimedOut


def test_each_answer_to_a_write_is_counted_once_and_a_hanging_one_is_not() -> None:
    session = Session()
    requests = Requests(session, "k", "hosts", Retries(ManualClock()))
    done: list[object] = []
    failed: list[Exception] = []
    for _ in range(3):
        requests.write("write", object(), done.append, failed.append)
    assert requests.writes_answered == 0
    session.callbacks[0][0](None)
    session.callbacks[1][1](NoHostAvailable("no", {}))
    assert requests.writes_answered == 2
    assert (len(done), [type(error) for error in failed]) == (1, [Unanswered])
    with pytest.raises(Unanswered):
        requests._execute_conditional("commit", object())
    assert requests.writes_answered == 3
