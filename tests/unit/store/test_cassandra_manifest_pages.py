"""Which changes between two pages of a manifest cause another read, and which process is the owner."""

from types import SimpleNamespace

import pytest

from strandline.store.cassandra.manifest import _is_changed
from strandline.store.cassandra.manifest_rows import CUT_GROUP
from strandline.store.cassandra.ownership import is_held_by
from strandline.store.rows import Ownership, ShardId

pytestmark = pytest.mark.unit

# Pages are read newest bucket first. The first of them is of revision 7.
FIRST = {"revision": 7, "epoch": 3, "owner": "a", "topic_id": "topic-1", "group": 0, "superseded": False}


def pages(**last: object) -> list[SimpleNamespace]:
    """A row of the first page and one of the last, which is of a later revision."""
    first = SimpleNamespace(**FIRST, row_revision=7)
    return [first, SimpleNamespace(**(FIRST | {"revision": 9, "row_revision": 5} | last))]


def test_pages_of_one_revision_are_of_one_moment() -> None:
    assert not _is_changed(pages(revision=7, superseded=True, row_revision=7))


def test_group_rows_that_were_added_between_two_pages_make_no_hole() -> None:
    assert not _is_changed(pages())
    assert not _is_changed(pages(row_revision=8))


@pytest.mark.parametrize(
    "last",
    [
        {"row_revision": 8, "superseded": True},
        {"row_revision": 8, "group": CUT_GROUP},
        {"epoch": 4},
        {"owner": "b"},
        {"topic_id": "topic-2"},
    ],
    ids=["rewound", "a loss in a cut", "another epoch", "another owner", "another topic"],
)
def test_changed_rows_between_two_pages_cause_another_read(last: dict[str, object]) -> None:
    assert _is_changed(pages(**last))


def test_changes_before_the_first_page_belong_to_the_same_snapshot() -> None:
    assert not _is_changed(pages(row_revision=7, superseded=True))
    assert not _is_changed(pages(row_revision=6, group=CUT_GROUP))


def test_scenario_04_reading_an_epoch_that_another_owner_wrote_is_not_ownership() -> None:
    ownership = Ownership(ShardId("metrics", 0), 5, "a")
    assert is_held_by(ownership, {"epoch": 5, "owner": "a"})
    assert not is_held_by(ownership, {"epoch": 5, "owner": "b"})
    assert not is_held_by(ownership, {"epoch": 6, "owner": "a"})
    assert not is_held_by(ownership, {})
