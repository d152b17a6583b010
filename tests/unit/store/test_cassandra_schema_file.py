"""`conf/schema.cql` has the options that the store relies on, and is part of the package."""

import configparser
import re
from pathlib import Path

import pytest

from strandline.store.cassandra.schema import MIN_VERSION, VERSION, additions, definitions
from strandline.store.sqlite import schema as sqlite_schema
from support import older_stores

pytestmark = pytest.mark.unit

CHECKOUT = Path(__file__).parents[3]
DELETES_NOTHING = ["schema_version", "datasets", "manifest", "segments", "index_buckets", "job_results"]


def test_the_tables_are_made_by_statements_that_may_be_repeated() -> None:
    assert list(definitions()) == [
        "schema_version",
        "datasets",
        "manifest",
        "segments",
        "index_buckets",
        "jobs",
        "job_results",
        "bulk_jobs",
        "bulk_parts",
    ]
    for statement in definitions().values():
        assert statement.startswith("CREATE TABLE IF NOT EXISTS")
        assert "--" not in statement


def test_the_upgrade_guide_names_the_versions_that_an_upgrade_leaves() -> None:
    guide = (CHECKOUT / "docs" / "operations.md").read_text(encoding="utf-8")
    (named,) = re.findall(r"SELECT version,\s+written_version FROM schema_version` gives (\d+) and (\d+)", guide)
    assert tuple(map(int, named)) == (MIN_VERSION, VERSION)
    assert (sqlite_schema.MIN_VERSION, sqlite_schema.VERSION) == (MIN_VERSION, VERSION)


def columns(definition: str) -> dict[str, str]:
    """The kind of each column that a statement defines, keys included."""
    end = definition.rfind("PRIMARY KEY (")
    inside = definition[definition.index("(") + 1 : end if end >= 0 else definition.index(") WITH")]
    depth, start, parts = 0, 0, []
    for position, sign in enumerate(inside + ","):
        depth += {"<": 1, ">": -1, "(": 1, ")": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            parts.append(inside[start:position].split(maxsplit=1))
            start = position + 1
    return {part[0]: part[1].strip() for part in parts if part}


@pytest.mark.parametrize("version", older_stores.VERSIONS)
def test_older_tables_with_what_is_added_have_the_columns_of_new_ones(version: int) -> None:
    """Upgraded tables are the same as those that the file creates."""
    older = {statement.split()[5]: columns(statement) for statement in older_stores.tables(version)}
    assert [*older, "bulk_jobs", "bulk_parts"] == list(definitions())
    for addition in additions():
        added_by = 4 if addition.column == "closed_early" else 3
        assert (addition.column in older[addition.table]) == (version >= added_by), addition.column
        older[addition.table][addition.column] = addition.kind
    made = {table: columns(definition) for table, definition in definitions().items()}
    assert older == {table: made[table] for table in older}


def test_the_file_contains_only_tables() -> None:
    text = (CHECKOUT / "conf/schema.cql").read_text(encoding="utf-8")
    code = "\n".join(line.split("--")[0] for line in text.splitlines())
    assert code.count(";") == len(definitions()) + len(additions())


def test_no_table_lets_an_owner_expire() -> None:
    assert [table for table, made in definitions().items() if "default_time_to_live" in made] == []


def test_only_jobs_and_parts_keep_their_tombstones_for_days() -> None:
    short = [table for table, made in definitions().items() if "gc_grace_seconds = 10800" in made]
    removed_from = ("jobs", "bulk_jobs", "bulk_parts")
    assert short == [table for table in definitions() if table not in removed_from] == DELETES_NOTHING


def test_large_values_expire_by_complete_files() -> None:
    for table in ("segments", "index_buckets", "job_results"):
        assert "TimeWindowCompactionStrategy" in definitions()[table]
        assert "read_repair = 'NONE'" in definitions()[table]
        assert "compression = {'enabled': false}" in definitions()[table]


def test_an_installed_package_has_the_file() -> None:
    packaging = configparser.ConfigParser()
    packaging.read(CHECKOUT / "setup.cfg")
    assert packaging["options.package_data"]["strandline.store.cassandra"].split() == ["schema.cql"]
    link = CHECKOUT / "store/cassandra/schema.cql"
    assert link.resolve() == CHECKOUT / "conf/schema.cql"
