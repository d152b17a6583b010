"""Stores that a node of schema version 2 wrote, from tests/data."""

import gzip
from pathlib import Path

from cassandra.cluster import Session

_DATA = Path(__file__).parents[1] / "data"


def write_sqlite_file(path: Path) -> None:
    """Put the SQLite file of version 2 there."""
    path.write_bytes(gzip.decompress((_DATA / "store-version-2.sqlite.gz").read_bytes()))


def load_cassandra(session: Session, keyspace: str) -> None:
    """Make a keyspace with the tables of version 2 and their rows."""
    replication = {"class": "SimpleStrategy", "replication_factor": 1}
    session.execute(f"CREATE KEYSPACE {keyspace} WITH replication = {replication}")
    session.set_keyspace(keyspace)
    for name in ("store-version-2-tables.cql", "store-version-2-rows.cql"):
        for statement in _statements(name):
            session.execute(statement)


def statements() -> list[str]:
    """What a node of version 2 prepares at a start, for a session in its keyspace."""
    return _statements("store-version-2-statements.cql")


def tables() -> list[str]:
    """The statements that make the tables."""
    return [" ".join(one.split()) for one in _statements("store-version-2-tables.cql")]


def _statements(name: str) -> list[str]:
    lines = (_DATA / name).read_text(encoding="utf-8").splitlines()
    code = "\n".join(line.split("--")[0] for line in lines)
    return [one.strip() for one in code.split(";") if one.strip()]
