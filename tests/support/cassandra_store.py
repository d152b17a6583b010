"""A real Cassandra for tests of the store, with a session that can lose answers."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cassandra import OperationTimedOut
from cassandra.cluster import Session
from cassandra.query import BatchStatement

from strandline.clock import Clock, SystemClock
from strandline.node.stack import Stack
from strandline.store.cassandra.retries import RetryPolicy
from strandline.store.cassandra.store import CassandraStore, open_cassandra_store, store_over
from strandline.store.connection import CassandraConnection, connect
from support.own_cassandra import Servers
from support.store_contract import OpenedStore

T = TypeVar("T")

COPIES = {"datacenter1": 1}


def connection_to(stack: Stack | Servers, keyspace: str, *, request_timeout: float = 20.0) -> CassandraConnection:
    """How to connect to a stack's Cassandra."""
    return CassandraConnection(
        contact_points=((stack.cassandra_host, stack.cassandra_port),),
        port=stack.cassandra_port,
        local_datacenter="datacenter1",
        keyspace=keyspace,
        credentials=None,
        tls=None,
        request_timeout=request_timeout,
        connect_timeout=10.0,
    )


def open_stores(connection: CassandraConnection) -> Iterator[OpenedStore]:
    """Stores of one keyspace, for a fixture. Rows expire by the servers' clock, so tests must use the real clock."""
    clock = SystemClock()
    with ExitStack() as opened:

        def open_another() -> CassandraStore:
            return opened.enter_context(closing(open_cassandra_store(connection, clock, copies=COPIES)))

        yield OpenedStore(open_another(), clock, open_another)


def do_nothing() -> None:
    """The default action between two calls."""


@dataclass(frozen=True)
class Lost:
    """A request whose sender gets `error` instead of an answer. The request was `applied` or not, and `then` runs
    before the sender can react.
    """

    applied: bool
    error: Exception = field(default_factory=OperationTimedOut)
    then: Callable[[], None] = do_nothing


class LossySession:
    """A session between a store and the driver that loses the configured answers, and counts requests."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._lost: list[tuple[str, Lost]] = []
        self._meanwhile: list[tuple[str, Callable[[], object]]] = []
        self.sent: list[str] = []

    def __setattr__(self, name: str, value: object) -> None:
        if name == "use_client_timestamp":
            setattr(self._session, name, value)
        else:
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def lose(self, beginning: str, *losses: Lost) -> None:
        """Lose the answers to the next requests that begin with this text. A batch is identified by its first
        statement.
        """
        self._lost += [(beginning, loss) for loss in losses]

    def run_before(self, beginning: str, *actions: Callable[[], object]) -> None:
        """Run an action before each of the next requests that begin with this text, without losing anything."""
        self._meanwhile += [(beginning, action) for action in actions]

    def count(self, beginning: str) -> int:
        """The number of sent requests that begin with this text, including lost ones."""
        return sum(text.startswith(beginning) for text in self.sent)

    def execute(self, statement: Any, *rest: Any, **options: Any) -> Any:
        loss = self._next(statement)
        if loss is None:
            return self._session.execute(statement, *rest, **options)
        if loss.applied:
            self._session.execute(statement, *rest, **options)
        loss.then()
        raise loss.error

    def execute_async(self, statement: Any, *rest: Any, **options: Any) -> Any:
        loss = self._next(statement)
        if loss is None:
            return self._session.execute_async(statement, *rest, **options)
        if loss.applied:
            self._session.execute_async(statement, *rest, **options).result()
        loss.then()
        return _Failed(loss.error)

    def _next(self, statement: Any) -> Lost | None:
        text = self._text(statement)
        with self._lock:
            self.sent.append(text)
            action = _taken(self._meanwhile, text)
            loss = _taken(self._lost, text)
        if action is not None:
            action()
        return loss

    def _text(self, statement: Any) -> str:
        if isinstance(statement, str):
            return statement
        if isinstance(statement, BatchStatement):
            query_id = statement._statements_and_parameters[0][1]
            return str(self._session.cluster._prepared_statements[query_id].query_string)
        return str(getattr(statement, "prepared_statement", statement).query_string)


def _taken(prepared: list[tuple[str, T]], text: str) -> T | None:
    """Remove and return the first prepared item for a request."""
    for place, (beginning, value) in enumerate(prepared):
        if text.startswith(beginning):
            del prepared[place]
            return value
    return None


class _Failed:
    """A request that failed before it was started."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def result(self) -> None:
        raise self._error

    def add_callbacks(self, _: Callable[[Any], None], errback: Callable[[Exception], None]) -> None:
        errback(self._error)


def open_lossy(
    connection: CassandraConnection,
    *,
    clock: Clock | None = None,
    retry_policy: RetryPolicy | None = None,
    losses: Mapping[str, Sequence[Lost]] | None = None,
) -> tuple[CassandraStore, LossySession]:
    """A store with lossy requests, and the session to configure them. Requests can also be lost while the store is
    opened.
    """
    session = LossySession(connect(connection, require_keyspace=False))
    for beginning, lost in (losses or {}).items():
        session.lose(beginning, *lost)
    try:
        store = store_over(session, connection, clock or SystemClock(), copies=COPIES, retry_policy=retry_policy)
    except BaseException:
        session.cluster.shutdown()
        raise
    return store, session
