"""The border to the driver: statements go out as their kind allows, and the driver's errors come back as a store's."""

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

# The driver's usual policy sends a request again whose connection broke. A compare-and-set could so stand against
# itself, and be called refused though it was applied.
_SEND_ONCE: Final = FallthroughRetryPolicy()

Values = Sequence[object]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a compare-and-set came to; if it was not applied, what stood against it (nothing, where there is no row)."""

    applied: bool
    found: Mapping[str, Any]


class Requests:
    """Sends statements. `what` is always what is being done, as an error would say it: "read the jobs of shard a/0"."""

    def __init__(self, session: Session, keyspace: str, hosts: str, retries: Retries) -> None:
        self.retries: Final = retries
        self._session = session
        self._keyspace = keyspace
        self._hosts = hosts
        self._prepared: dict[Statement, PreparedStatement] = {}
        self._closed = False
        self.writes_answered = 0
        """Rises with each answer to a write, time-outs included: whoever watches knows by it that writing gets on."""

    def close(self) -> None:
        """Close the session and its connections. Closing twice does nothing."""
        self._closed = True
        self._session.cluster.shutdown()

    def prepare(self, *statements: Statement) -> None:
        """Make statements ready to be sent. They must be, before they are."""
        for statement in statements:
            self._prepared[statement] = self.retries.run(partial(self._prepare, statement))

    def bind(self, statement: Statement, values: Values) -> BoundStatement:
        """A statement with its values. Raises `StoreRefused` for one that its column can't hold."""
        try:
            return self._prepared[statement].bind(values)
        except (TypeError, ValueError, OverflowError, struct.error) as error:
            raise StoreRefused(
                f"a value can't be stored in Cassandra: {error}",
                remedy="Numbers have 32 or 64 bits, as conf/schema.cql says, and texts are Unicode",
            ) from error

    def compare_and_set(self, what: str, statement: Statement, values: Values) -> Answer:
        """Send a compare-and-set once. Raises `Unanswered` if nobody can say what came of it."""
        return self._execute_conditional(what, self.bind(statement, values))

    def compare_and_set_all(
        self, what: str, condition: tuple[Statement, Values], batched: Sequence[BoundStatement]
    ) -> Answer:
        """The same, with writes batched it that are done together with it or not at all."""
        batch = BatchStatement(retry_policy=_SEND_ONCE)
        batch.add(self.bind(*condition))
        for statement in batched:
            batch.add(statement)
        return self._execute_conditional(what, batch)

    def read(self, what: str, statement: Statement, values: Values) -> list[Any]:
        """All rows of a read."""
        return [row for page in self.pages(what, statement, values) for row in page]

    def read_once(self, what: str, statement: Statement, values: Values) -> list[Any]:
        """The rows of a read that fit into one page, without trying again: raises `Unanswered`."""
        with self._store_errors(what):
            return list(self._session.execute(self.bind(statement, values)).current_rows)

    def pages(self, what: str, statement: Statement, values: Values) -> Iterator[list[Any]]:
        """The rows of a read in pages. The next page is on its way while the caller works on one."""
        bound = self.bind(statement, values)
        # Sent now, not when the first row is asked for.
        return self._pages(what, bound, self._requested(what, bound, None))

    def write(
        self,
        what: str,
        statement: BoundStatement,
        done: Callable[[object], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Send a plain write. Of `done` and `failed`, one is called in a thread of the driver's, and must not wait.

        `failed` is given an error of a store's.
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
        """A page that is asked for, or none if that failed: it is asked for again when its turn comes."""
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
