"""Comparing the pinned content of a shard with its content at a later time."""

import pytest

from strandline.node.shard.pinned_content import BufferContent, PinnedContent, StoredRow
from strandline.store.buffer.view import BufferVersion
from strandline.time_range import EARLIEST, TimeRange

pytestmark = pytest.mark.unit

TIMES = TimeRange(100, 200)
LIFE = 1_000
BEHIND = 201


def content(*parts: StoredRow | BufferContent, settled: int = 0) -> PinnedContent:
    rows = frozenset(part for part in parts if isinstance(part, StoredRow))
    buffers = tuple(part for part in parts if isinstance(part, BufferContent))
    return PinnedContent("reader", TIMES, rows, buffers, settled)


def row(bucket: int = 1, group: int = 0, attempt: str = "a", least: int = 150) -> StoredRow:
    return StoredRow(bucket, group, attempt, least, least + 10)


def buffer(number: int = 7, bucket: int = 1, *, is_closed: bool = False) -> BufferContent:
    return BufferContent(bucket, BufferVersion(number, 0, 0), is_closed)


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [
        ((), (), BEHIND),
        ((row(),), (row(),), BEHIND),
        ((), (row(),), 150),
        ((row(),), (), 150),
        ((row(),), (row(attempt="b", least=140),), 140),
        ((), (row(least=201),), BEHIND),
        ((buffer(),), (row(), buffer()), BEHIND),
        ((buffer(),), (row(), buffer(is_closed=True)), BEHIND),
        ((buffer(is_closed=True),), (row(),), BEHIND),
        # The samples that it took until it was closed are unknown.
        ((buffer(),), (row(),), 150),
        ((buffer(),), (row(), buffer(number=8)), 150),
        ((buffer(is_closed=True),), (row(), row(bucket=2, least=180)), 180),
        ((buffer(), buffer(number=8, is_closed=True)), (row(),), 150),
        # A row with another attempt stores something else.
        ((buffer(), row()), (row(attempt="b"), buffer()), 150),
        ((buffer(), row()), (buffer(),), 150),
    ],
)
def test_a_row_is_a_change_unless_its_buffer_is_known_to_have_it(
    before: tuple[StoredRow | BufferContent, ...], now: tuple[StoredRow | BufferContent, ...], change: int
) -> None:
    assert content(*now).first_change(content(*before), LIFE) == change


def test_contents_can_not_be_compared_after_the_time_to_live() -> None:
    before = content(buffer(is_closed=True), settled=50)
    assert content(settled=50 + LIFE - 1).first_change(before, LIFE) == BEHIND
    assert content(settled=50 + LIFE).first_change(before, LIFE) == EARLIEST
