"""Stores that were written by nodes of older schema versions, from tests/data."""

import gzip
from pathlib import Path

from cassandra.cluster import Session

_DATA = Path(__file__).parents[1] / "data"

VERSIONS = (2, 3)
"""The versions with a store in tests/data."""


def write_sqlite_file(path: Path, version: int) -> None:
    """Write the SQLite file of a version to this path."""
    path.write_bytes(gzip.decompress((_DATA / f"store-version-{version}.sqlite.gz").read_bytes()))


def load_cassandra(session: Session, keyspace: str, version: int) -> None:
    """Create a keyspace with the tables and rows of a version."""
    replication = {"class": "SimpleStrategy", "replication_factor": 1}
    session.execute(f"CREATE KEYSPACE {keyspace} WITH replication = {replication}")
    session.set_keyspace(keyspace)
    for kind in ("tables", "rows"):
        for statement in _statements(version, kind):
            session.execute(statement)


def statements(version: int) -> list[str]:
    """The statements that a node of a version prepares at its start, for a session in its keyspace."""
    return _statements(version, "statements")


def tables(version: int) -> list[str]:
    """The statements that create the tables."""
    made = [" ".join(statement.split()) for statement in _statements(version, "tables")]
    return [statement for statement in made if statement.startswith("CREATE TABLE")]


def _statements(version: int, kind: str) -> list[str]:
    lines = (_DATA / f"store-version-{version}-{kind}.cql").read_text(encoding="utf-8").splitlines()
    code = "\n".join(line.split("--")[0] for line in lines)
    return [statement.strip() for statement in code.split(";") if statement.strip()]
