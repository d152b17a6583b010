"""The tables: created from `schema.cql` if missing, upgraded if older, and used only if this version of Strandline
supports them.

Any number of nodes may do this concurrently, next to running nodes of this version and the previous one. If two
Cassandra servers create a table at the same moment, there are two tables with the same name and different ids, and what
was written to one of them is lost later. So all nodes send these statements to the same server, the one with the lowest
address, which executes them in sequence. The version is written last: if it is there, all tables exist.

Two numbers are stored. `written_version` is the version of the tables. `version` is the lowest version that can use
them. It is the only number that nodes of version 2 know, and they accept only their own version. It does not change as
long as new versions only add columns and tables, so that older nodes can restart during an upgrade.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from cassandra import Unauthorized
from cassandra.cluster import Host, Session

from strandline.store.cassandra import statements
from strandline.store.cassandra.failures import DRIVER_ERRORS, Unanswered, store_error
from strandline.store.cassandra.requests import Requests
from strandline.store.cassandra.retries import Retries
from strandline.store.protocol import StoreRefused

VERSION: Final = 4
"""The version of `schema.cql`. It rises with each change of that file."""
MIN_VERSION: Final = 2
"""The lowest version that can use tables of `VERSION`, and that can be upgraded to it."""

_PRODUCT: Final = "strandline"
_COMMENT: Final = re.compile(r"--.*")
_TABLE: Final = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+)")
_ADDITION: Final = re.compile(r"ALTER TABLE (\w+) ADD IF NOT EXISTS (\w+) (.+)")
# A server's errors if a statement refers to what another node is creating at the moment.
_NOT_THERE_YET: Final = ("does not exist", "Undefined column name", "Unknown identifier")


@dataclass(frozen=True, slots=True)
class Addition:
    """A column that tables of an older version lack."""

    table: str
    column: str
    kind: str


def definitions() -> Mapping[str, str]:
    """Return the CREATE statement of each table, by the table's name, in the order of `schema.cql`."""
    return {match[1]: statement for statement in _file() if (match := _TABLE.match(statement))}


def additions() -> Sequence[Addition]:
    """Return the columns that are added to older tables, in the order of `schema.cql`."""
    return [Addition(*match.groups()) for statement in _file() if (match := _ADDITION.match(statement))]


def _file() -> Sequence[str]:
    text = (files("strandline.store.cassandra") / "schema.cql").read_text(encoding="utf-8")
    return [" ".join(part.split()) for part in _COMMENT.sub("", text).split(";")]


def create_keyspace(
    session: Session, keyspace: str, hosts: str, retries: Retries, *, copies: Mapping[str, int]
) -> None:
    """Create the keyspace if it does not exist, with `copies` replicas in each data centre.

    Production needs three per data centre: then one server may be down without losing the quorum.
    """
    replication = {"class": "NetworkTopologyStrategy", **copies}
    _define(
        session,
        f'CREATE KEYSPACE IF NOT EXISTS "{keyspace}" WITH replication = {replication}',
        f"make the keyspace {keyspace}",
        hosts,
        retries,
    )


def ensure_schema(session: Session, keyspace: str, hosts: str, requests: Requests) -> None:
    """Create missing tables, add the columns that older ones lack, and prepare every statement. The keyspace must
    exist.

    Raises `StoreRefused` if this version can't use the tables, without changing anything.
    """
    there = _columns(session, keyspace, hosts, requests.retries)
    if "schema_version" in there:
        _prepare(requests, statements.MIN_VERSION)
        _check(_versions(requests, statements.MIN_VERSION), keyspace, hosts)
    for table, definition in definitions().items():
        if table not in there:
            qualified = definition.replace(f" {table} ", f' "{keyspace}".{table} ', 1)
            _define(session, qualified, f"make the table {keyspace}.{table}", hosts, requests.retries)
    for one in additions():
        if one.column not in there.get(one.table, {one.column}):
            _add(session, one, keyspace, hosts, requests.retries)
    _prepare(requests, *statements.ALL)
    requests.retries.run(lambda: _record(requests, keyspace))
    _check(_versions(requests, statements.VERSIONS), keyspace, hosts)


def _columns(session: Session, keyspace: str, hosts: str, retries: Retries) -> Mapping[str, set[str]]:
    """Return the existing tables, each with its columns. Read from the server, because the driver learns of other
    nodes' changes with a delay.
    """

    def attempt() -> Mapping[str, set[str]]:
        try:
            rows = session.execute(
                "SELECT table_name, column_name FROM system_schema.columns WHERE keyspace_name = %s",
                (keyspace,),
                host=_lowest(session.cluster.metadata.all_hosts()),
            )
            found: dict[str, set[str]] = {}
            for row in rows:
                found.setdefault(row.table_name, set()).add(row.column_name)
        except DRIVER_ERRORS as error:
            raise store_error(error, f"read which tables are in {keyspace}", hosts) from error
        return found

    return retries.run(attempt)


def _add(session: Session, one: Addition, keyspace: str, hosts: str, retries: Retries) -> None:
    """Add a column, unless another node did so concurrently. Cassandra 4.0 has no IF NOT EXISTS here."""
    what = f"add the column {one.column} to {keyspace}.{one.table}"
    try:
        _define(session, f'ALTER TABLE "{keyspace}".{one.table} ADD {one.column} {one.kind}', what, hosts, retries)
    except StoreRefused:
        if one.column not in _columns(session, keyspace, hosts, retries).get(one.table, ()):
            raise


def _prepare(requests: Requests, *wanted: statements.Statement) -> None:
    def attempt() -> None:
        try:
            requests.prepare(*wanted)
        except StoreRefused as error:
            if any(text in error.message for text in _NOT_THERE_YET):
                raise Unanswered(error.message, remedy=error.remedy) from error
            raise

    requests.retries.run(attempt)


def _versions(requests: Requests, statement: statements.Statement) -> Any:
    rows = requests.read("read the version of the tables", statement, (_PRODUCT,))
    return rows[0] if rows else None


def _record(requests: Requests, keyspace: str) -> None:
    """Store the version of the tables; a higher one stays."""
    found = _versions(requests, statements.VERSIONS)
    what = f"write the version of the tables in {keyspace}"
    if found is None:
        written = (_PRODUCT, MIN_VERSION, VERSION)
        answer = requests.compare_and_set(what, statements.CREATE_VERSION, written)
    elif found.written_version is None or found.written_version < VERSION:
        raised = (VERSION, _PRODUCT, found.written_version)
        answer = requests.compare_and_set(what, statements.RAISE_VERSION, raised)
    else:
        return
    if not answer.applied:
        raise Unanswered("another node has written the version of the tables concurrently", remedy="Try again")


def _check(found: Any, keyspace: str, hosts: str) -> None:
    """Raise `StoreRefused` if this version can't use tables with the lowest version in the row that was found."""
    if found is None or MIN_VERSION <= found.version <= VERSION:
        return
    at = f"the tables in keyspace {keyspace} of Cassandra at {hosts}"
    if found.version > VERSION:
        raise StoreRefused(
            f"{at} need at least schema version {found.version}, and this Strandline has version {VERSION}",
            remedy="Use the Strandline that migrated them, or a newer one",
        )
    raise StoreRefused(
        f"{at} have schema version {found.version}, which no released Strandline has written",
        remedy="Use another keyspace",
    )


def _define(session: Session, statement: str, what: str, hosts: str, retries: Retries) -> None:
    def attempt() -> None:
        try:
            future = session.execute_async(statement, host=_lowest(session.cluster.metadata.all_hosts()))
            future.result()
        except Unauthorized as error:
            raise StoreRefused(
                store_error(error, what, hosts).message,
                remedy="Execute conf/schema.cql with a user that may create and alter tables",
            ) from error
        except DRIVER_ERRORS as error:
            raise store_error(error, what, hosts) from error
        if not future.is_schema_agreed:
            raise Unanswered(
                f"the servers of Cassandra at {hosts} did not agree on the schema after a request to {what}",
                remedy="Check with `nodetool describecluster` that all have one schema version",
            )

    retries.run(attempt)


def _lowest(servers: Sequence[Host]) -> Host | None:
    """Return the server that all nodes use: of those that are up, the one with the lowest address."""
    running = [server for server in servers if server.is_up]
    return min(running, key=lambda server: (server.address, server.endpoint.port), default=None)
