"""The tables: made from `schema.cql` where they are missing, and used only if their version is known.

Any number of nodes may do this at once. Two servers of Cassandra that make a table at the same moment make two, under
one name and with two ids, and what was written to one of them is lost later. So all nodes ask the same server, the one
with the lowest address, which does one after the other. The version is written last: where it stands, the tables are
all there.
"""

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Final

from cassandra.cluster import Host, Session

from strandline.store.cassandra import statements
from strandline.store.cassandra.failures import DRIVER_ERRORS, Unanswered, explained
from strandline.store.cassandra.requests import Requests
from strandline.store.cassandra.retries import Retries
from strandline.store.protocol import StoreRefused

VERSION: Final = 2
"""Of `schema.cql`. It rises with each change there."""

_PRODUCT: Final = "strandline"
_COMMENT: Final = re.compile(r"--.*")
_TABLE: Final = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+)")


def definitions() -> Mapping[str, str]:
    """The statement that makes each table, by the table's name, in the order of `schema.cql`."""
    text = (files("strandline.store.cassandra") / "schema.cql").read_text(encoding="utf-8")
    found = (" ".join(part.split()) for part in _COMMENT.sub("", text).split(";"))
    return {match[1]: statement for statement in found if (match := _TABLE.match(statement))}


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
    """Make the tables that are missing, and prepare every statement. The keyspace must be there.

    Raises `StoreRefused` for tables of a version that this Strandline does not know, and changes nothing then.
    """
    there = _tables(session, keyspace, hosts, requests.retries)
    if "schema_version" in there:
        _prepare(requests, statements.VERSION)
        _check(_version(requests), keyspace, hosts)
    for table, definition in definitions().items():
        if table not in there:
            qualified = definition.replace(f" {table} ", f' "{keyspace}".{table} ', 1)
            _define(session, qualified, f"make the table {keyspace}.{table}", hosts, requests.retries)
    _prepare(requests, *statements.ALL)
    if _version(requests) is None:
        requests.retries.run(
            lambda: requests.compare_and_set(
                f"write the version of the tables in {keyspace}", statements.CREATE_VERSION, (_PRODUCT, VERSION)
            )
        )
        _check(_version(requests), keyspace, hosts)


def _tables(session: Session, keyspace: str, hosts: str, retries: Retries) -> set[str]:
    """The tables that are there. Asked for, since the driver does not hear at once of what other nodes make."""

    def attempt() -> set[str]:
        try:
            rows = session.execute(
                "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s",
                (keyspace,),
                host=_lowest(session.cluster.metadata.all_hosts()),
            )
        except DRIVER_ERRORS as error:
            raise explained(error, f"read which tables are in {keyspace}", hosts) from error
        return {row.table_name for row in rows}

    return retries.run(attempt)


def _prepare(requests: Requests, *wanted: statements.Statement) -> None:
    def attempt() -> None:
        try:
            requests.prepare(*wanted)
        except StoreRefused as error:
            # A server names a table that another node is having made a moment before it takes statements about it.
            if "does not exist" in error.message:
                raise Unanswered(error.message, remedy=error.remedy) from error
            raise

    requests.retries.run(attempt)


def _version(requests: Requests) -> int | None:
    rows = requests.read("read the version of the tables", statements.VERSION, (_PRODUCT,))
    return rows[0].version if rows else None


def _check(version: int | None, keyspace: str, hosts: str) -> None:
    if version is None or version == VERSION:
        return
    at = f"the tables in keyspace {keyspace} of Cassandra at {hosts} have schema version {version}"
    if version > VERSION:
        raise StoreRefused(
            f"{at}, and this Strandline knows versions up to {VERSION}",
            remedy="Use the Strandline that made them, or a newer one",
        )
    raise StoreRefused(f"{at}, which no released Strandline has made", remedy="Use another keyspace")


def _define(session: Session, statement: str, what: str, hosts: str, retries: Retries) -> None:
    def attempt() -> None:
        try:
            future = session.execute_async(statement, host=_lowest(session.cluster.metadata.all_hosts()))
            future.result()
        except DRIVER_ERRORS as error:
            raise explained(error, what, hosts) from error
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
