"""Wraps the driver: sends each kind of statement as it requires, and translates the driver's errors."""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from cassandra import ConsistencyLevel
from cassandra.cluster import ResponseFuture, ResultSet, Session
from cassandra.policies import FallthroughRetryPolicy
from cassandra.query import BatchStatement, BoundStatement, PreparedStatement

from strandline.store.cassandra.failures import DRIVER_ERRORS, Unanswered, store_error
from strandline.store.cassandra.retries import Retries
from strandline.store.cassandra.statements import Kind, Statement
from strandline.store.protocol import StoreRefused

# The driver's default policy resends a request if its connection breaks. A compare-and-set could then fail because of
# its own first request, and be reported as rejected although it was applied.
_SEND_ONCE: Final = FallthroughRetryPolicy()

Values = Sequence[object]


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a compare-and-set; if it was not applied, the values found (empty if there is no row)."""

    applied: bool
    found: Mapping[str, Any]


class Requests:
    """Sends statements. `what` is always what is being done, as in an error: "read the jobs of shard a/0"."""

    def __init__(self, session: Session, keyspace: str, hosts: str, retries: Retries) -> None:
        self.retries: Final = retries
        self._session = session
        self._keyspace = keyspace
        self._hosts = hosts
        self._prepared: dict[Statement, PreparedStatement] = {}
        self._closed = False
        self.writes_answered = 0
        """Rises with each answer to a write, including timeouts: watchers use it to detect progress."""

    def close(self) -> None:
        """Close the session and its connections. Closing twice has no effect."""
        self._closed = True
        self._session.cluster.shutdown()

    def prepare(self, *statements: Statement) -> None:
        """Prepare statements, which is required before they are sent."""
        for statement in statements:
            self._prepared[statement] = self.retries.run(partial(self._prepare, statement))

    def bind(self, statement: Statement, values: Values) -> BoundStatement:
        """Bind values to a statement. Raises `StoreRefused` if a column can't hold its value."""
        try:
            return self._prepared[statement].bind(values)
        except (TypeError, ValueError, OverflowError, struct.error) as error:
            raise StoreRefused(
                f"a value can't be stored in Cassandra: {error}",
                remedy="Numbers must fit into 32 or 64 bits, as in conf/schema.cql, and texts must be valid Unicode",
            ) from error

    def compare_and_set(self, what: str, statement: Statement, values: Values) -> Answer:
        """Send a compare-and-set once. Raises `Unanswered` if its result is unknown."""
        return self._execute_conditional(what, self.bind(statement, values))

    def compare_and_set_all(
        self, what: str, condition: tuple[Statement, Values], batched: Sequence[BoundStatement]
    ) -> Answer:
        """The same, with writes in the same batch that are applied with it or not at all."""
        batch = BatchStatement(retry_policy=_SEND_ONCE)
        batch.add(self.bind(*condition))
        for statement in batched:
            batch.add(statement)
        return self._execute_conditional(what, batch)

    def read(self, what: str, statement: Statement, values: Values) -> list[Any]:
        """Return all rows of a read."""
        return [row for page in self.pages(what, statement, values) for row in page]

    def read_once(self, what: str, statement: Statement, values: Values) -> list[Any]:
        """Return the rows of a read that fit into one page, without retries: raises `Unanswered`."""
        with self._store_errors(what):
            return list(self._session.execute(self.bind(statement, values)).current_rows)

    def pages(self, what: str, statement: Statement, values: Values) -> Iterator[list[Any]]:
        """Yield the pages of a read. The next page is requested while the caller processes one."""
        bound = self.bind(statement, values)
        # Sent now, not when the first row is taken.
        return self._pages(what, bound, self._requested(what, bound, None))

    def write(
        self,
        what: str,
        statement: BoundStatement,
        done: Callable[[object], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Send a plain write. One of `done` and `failed` is called in a thread of the driver, and must not block.

        `failed` gets an error of the store.
        """

        def answered(result: object) -> None:
            self.writes_answered += 1
            done(result)

        def explain(error: Exception) -> None:
            self.writes_answered += 1
            failure = store_error(error, what, self._hosts)
            failure.__cause__ = error
            failed(failure)

        with self._store_errors(what):
            self._session.execute_async(statement).add_callbacks(answered, explain)

    def _prepare(self, statement: Statement) -> PreparedStatement:
        cql = statement.cql.replace("IN.", f'"{self._keyspace}".')
        with self._store_errors("prepare a statement"):
            prepared = self._session.prepare(cql)
        if statement.kind is Kind.CONDITIONAL:
            prepared.retry_policy = _SEND_ONCE
        if statement.in_all_data_centres:
            prepared.serial_consistency_level = ConsistencyLevel.SERIAL
        if statement.kind is Kind.SERIAL_READ:
            prepared.consistency_level = ConsistencyLevel.LOCAL_SERIAL
        prepared.is_idempotent = statement.kind in (Kind.PLAIN_WRITE, Kind.PLAIN_READ, Kind.SERIAL_READ)
        prepared.fetch_size = statement.page
        return prepared

    def _execute_conditional(self, what: str, statement: BoundStatement | BatchStatement) -> Answer:
        try:
            with self._store_errors(what):
                row = self._session.execute(statement).one()
        finally:
            self.writes_answered += 1
        return Answer(applied=row[0], found=row._asdict())

    def _pages(self, what: str, statement: BoundStatement, requested: ResponseFuture | None) -> Iterator[list[Any]]:
        paging_state: bytes | None = None
        while True:
            result = self._result(what, statement, paging_state, requested)
            paging_state = result.paging_state
            if paging_state is None:
                yield result.current_rows
                return
            requested = self._requested(what, statement, paging_state)
            yield result.current_rows

    def _requested(self, what: str, statement: BoundStatement, paging_state: bytes | None) -> ResponseFuture | None:
        """Request a page. Return None if that failed: the page is requested again when it is needed."""
        try:
            return self._send_read(what, statement, paging_state)
        except Unanswered:
            return None

    def _result(
        self, what: str, statement: BoundStatement, paging_state: bytes | None, requested: ResponseFuture | None
    ) -> ResultSet:
        waiting = [requested] if requested is not None else []

        def wait() -> ResultSet:
            future = waiting.pop() if waiting else self._send_read(what, statement, paging_state)
            with self._store_errors(what):
                return future.result()

        return self.retries.run(wait)

    def _send_read(self, what: str, statement: BoundStatement, paging_state: bytes | None) -> ResponseFuture:
        with self._store_errors(what):
            return self._session.execute_async(statement, paging_state=paging_state)

    @contextmanager
    def _store_errors(self, what: str) -> Iterator[None]:
        if self._closed:
            raise StoreRefused(f"the store in Cassandra at {self._hosts} is closed", remedy="Open it again")
        try:
            yield
        except DRIVER_ERRORS as error:
            raise store_error(error, what, self._hosts) from error
