"""A minimal model of fencing in Cassandra: a row that only its owner can write.

It is the manifest's rule in small. A static column of the partition has the owner's epoch, every write is a batch that
is conditional on it, and taking the partition raises it. After that, writes of the former owner have no effect.
"""

from dataclasses import dataclass

from cassandra.cluster import Session


@dataclass(frozen=True, slots=True)
class FencingOutcome:
    """The results of the owner's write and of the former owner's write, and the final row."""

    owner_applied: bool
    former_owner_applied: bool
    stored: str


def fence(session: Session) -> FencingOutcome:
    """Take a partition twice, and write once with each of the two epochs."""
    session.execute(
        "CREATE KEYSPACE IF NOT EXISTS strandline_demo "
        "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    session.execute("DROP TABLE IF EXISTS strandline_demo.fenced")
    session.execute(
        "CREATE TABLE strandline_demo.fenced "
        "(shard int, bucket int, epoch int STATIC, content text, PRIMARY KEY (shard, bucket))"
    )
    session.execute("INSERT INTO strandline_demo.fenced (shard, epoch) VALUES (0, 1) IF NOT EXISTS")
    session.execute("UPDATE strandline_demo.fenced SET epoch = 2 WHERE shard = 0 IF epoch = 1")
    owner = _write(session, epoch=2, content="by the owner")
    former_owner = _write(session, epoch=1, content="by the former owner")
    row = session.execute("SELECT content FROM strandline_demo.fenced WHERE shard = 0 AND bucket = 7").one()
    return FencingOutcome(owner, former_owner, row.content)


def _write(session: Session, *, epoch: int, content: str) -> bool:
    return bool(
        session.execute(
            "BEGIN BATCH "
            "UPDATE strandline_demo.fenced SET epoch = %(epoch)s WHERE shard = 0 IF epoch = %(epoch)s; "
            "INSERT INTO strandline_demo.fenced (shard, bucket, content) VALUES (0, 7, %(content)s); "
            "APPLY BATCH",
            {"epoch": epoch, "content": content},
        ).was_applied
    )
