"""The tables: made from `schema.cql` where they are missing, brought up to its version where they are older, and used
only if this Strandline can read them.

Any number of nodes may do this at once, beside running nodes of this version and the one before. Two servers of
Cassandra that make a table at the same moment make two, under one name and with two ids, and what was written to one of
them is lost later. So all nodes ask the same server, the one with the lowest address, which does one after the other.
The version is written last: where it stands, the tables are all there.

Two numbers are stored. `written_version` is what the tables have. `version` is the least version that can work with
them, and the only one that nodes of version 2 know, which take none but their own. It stays while all that is added are
columns and tables that they need not know: so they can restart while an upgrade goes on.
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
"""Of `schema.cql`. It rises with each change there."""
LEAST_VERSION: Final = 2
"""The least version that can work with tables of `VERSION`, and that can be brought up to it."""

_PRODUCT: Final = "strandline"
_COMMENT: Final = re.compile(r"--.*")
_TABLE: Final = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+)")
_ADDITION: Final = re.compile(r"ALTER TABLE (\w+) ADD IF NOT EXISTS (\w+) (.+)")
# A server names what another node is having made a moment before it takes statements about it.
_NOT_THERE_YET: Final = ("does not exist", "Undefined column name", "Unknown identifier")


@dataclass(frozen=True, slots=True)
class Addition:
    """A column that tables of an older version lack."""

    table: str
    column: str
    kind: str


def definitions() -> Mapping[str, str]:
    """The statement that makes each table, by the table's name, in the order of `schema.cql`."""
    return {match[1]: statement for statement in _file() if (match := _TABLE.match(statement))}


def additions() -> Sequence[Addition]:
    """The columns that are added to older tables, in the order of `schema.cql`."""
    return [Addition(*match.groups()) for statement in _file() if (match := _ADDITION.match(statement))]


def _file() -> Sequence[str]:
    text = (files("strandline.store.cassandra") / "schema.cql").read_text(encoding="utf-8")
    return [" ".join(part.split()) for part in _COMMENT.sub("", text).split(";")]


def create_keyspace(
    session: Session, keyspace: str, hosts: str, retries: Retries, *, copies: Mapping[str, int]
) -> None:
    """Make the keyspace unless it is there, with so many copies of all in each of some data centres.

    Production wants three in each: then one server may be down, and quorums still come together.
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
    """Make the tables that are missing, add the columns that older ones lack, and prepare every statement. The keyspace
    must be there.

    Raises `StoreRefused` for tables that this Strandline can't work with, and changes nothing then.
    """
    there = _columns(session, keyspace, hosts, requests.retries)
    if "schema_version" in there:
        _prepare(requests, statements.LEAST_VERSION)
        _check(_versions(requests, statements.LEAST_VERSION), keyspace, hosts)
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
    """The tables that are there, each with its columns. Asked for, since the driver does not hear at once of what other
    nodes make.
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
    """Add a column, unless another node was faster. Cassandra 4.0 knows no IF NOT EXISTS here."""
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
    """Write down what the tables have by now; a higher version stays."""
    found = _versions(requests, statements.VERSIONS)
    what = f"write the version of the tables in {keyspace}"
    if found is None:
        written = (_PRODUCT, LEAST_VERSION, VERSION)
        answer = requests.compare_and_set(what, statements.CREATE_VERSION, written)
    elif found.written_version is None or found.written_version < VERSION:
        raised = (VERSION, _PRODUCT, found.written_version)
        answer = requests.compare_and_set(what, statements.RAISE_VERSION, raised)
    else:
        return
    if not answer.applied:
        raise Unanswered("another node has written the version of the tables meanwhile", remedy="Try again")


def _check(found: Any, keyspace: str, hosts: str) -> None:
    """Whether this Strandline can work with tables whose least version is in the row that was found."""
    if found is None or LEAST_VERSION <= found.version <= VERSION:
        return
    at = f"the tables in keyspace {keyspace} of Cassandra at {hosts}"
    if found.version > VERSION:
        raise StoreRefused(
            f"{at} need at least schema version {found.version}, and this Strandline has version {VERSION}",
            remedy="Use the Strandline that migrated them, or a newer one",
        )
    raise StoreRefused(
        f"{at} have schema version {found.version}, which no released Strandline has made",
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
                f"the servers of Cassandra at {hosts} did not agree on the tables, asked to {what}",
                remedy="Check with `nodetool describecluster` that all have one schema version",
            )

    retries.run(attempt)


def _lowest(servers: Sequence[Host]) -> Host | None:
    """The server that all nodes choose: of those that are up, the one with the lowest address."""
    running = [server for server in servers if server.is_up]
    return min(running, key=lambda server: (server.address, server.endpoint.port), default=None)
