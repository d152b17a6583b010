"""No statement contains what must never be sent to Cassandra."""

import re

import pytest

from strandline.store.cassandra.schema import definitions
from strandline.store.cassandra.statements import ALL, SERVER_TIME, Kind, Statement

pytestmark = pytest.mark.unit

COMPARED = {"schema_version", "datasets", "manifest", "jobs", "bulk_jobs", "bulk_parts"}
"""The tables that compare-and-sets write."""
STATICS = {"epoch", "owner", "seen_at", "beats", "topic_id", "next_part_id"}


OF_TABLES = [statement for statement in ALL if statement != SERVER_TIME]


def table_of(statement: Statement) -> str:
    return re.findall(r"IN\.(\w+)", statement.cql)[0]


def writes(statement: Statement) -> bool:
    return statement.cql.startswith(("INSERT", "UPDATE", "DELETE"))


def by_text(statement: Statement) -> str:
    return statement.cql[:50]


def test_every_table_is_written_and_read() -> None:
    assert {table_of(statement) for statement in ALL if writes(statement)} == set(definitions())
    assert {table_of(statement) for statement in OF_TABLES if not writes(statement)} == set(definitions())


@pytest.mark.parametrize("statement", OF_TABLES, ids=by_text)
def test_rows_of_compare_and_sets_are_only_written_by_those_and_read_serially(statement: Statement) -> None:
    """A plain write carries a clock's time, and could hide a later compare-and-set: the lease of a job, say."""
    kinds = {Kind.PLAIN_READ, Kind.PLAIN_WRITE}
    assert (statement.kind in kinds) == (table_of(statement) not in COMPARED)
    assert (statement.kind is Kind.CONDITIONAL) == (" IF " in statement.cql)
    assert (statement.kind in {Kind.PLAIN_READ, Kind.SERIAL_READ}) == statement.cql.startswith("SELECT")


@pytest.mark.parametrize("statement", [statement for statement in OF_TABLES if writes(statement)], ids=by_text)
def test_no_statement_sets_a_ttl_on_the_ownership_columns(statement: Statement) -> None:
    columns = set(re.findall(r"\w+", statement.cql.split(" WHERE ")[0].split(" VALUES ")[0]))
    if table_of(statement) == "manifest":
        assert not ("TTL" in statement.cql and columns & STATICS)
    assert "TIMESTAMP" not in statement.cql


@pytest.mark.parametrize(
    "statement", [statement for statement in ALL if statement.cql.startswith("INSERT")], ids=by_text
)
def test_an_insert_has_a_value_for_each_column(statement: Statement) -> None:
    columns, values = re.findall(r"\(([^)]*)\)", statement.cql)
    assert len(columns.split(",")) == len(values.split(","))


@pytest.mark.parametrize("table", ["segments", "index_buckets", "job_results"])
def test_rows_of_an_attempt_are_never_deleted_and_always_have_a_ttl(table: str) -> None:
    found = [statement for statement in OF_TABLES if table_of(statement) == table and writes(statement)]
    assert [statement.cql.split()[0] for statement in found] == ["INSERT"]
    assert all(statement.cql.endswith("USING TTL ?") for statement in found)
