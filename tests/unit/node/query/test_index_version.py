"""The page on which a shard publishes the version of its lists."""

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from strandline.index.part_columns import Span
from strandline.node.query.index_version import (
    IndexVersion,
    IndexVersionPage,
    IndexVersionReader,
    joined_version,
    version_path,
)
from strandline.time_range import TimeRange

pytestmark = pytest.mark.unit

SPAN = Span(2, 100, 200)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "page"


@pytest.fixture
def page(file: Path) -> Iterator[IndexVersionPage]:
    with closing(IndexVersionPage(file)) as created:
        yield created


@pytest.fixture
def reader(page: IndexVersionPage, file: Path) -> Iterator[IndexVersionReader]:
    with closing(IndexVersionReader(file)) as created:
        yield created
    page.close()


def test_another_number_is_another_version(page: IndexVersionPage, reader: IndexVersionReader) -> None:
    numbers = []
    for lists in ("a", "a", "b", "a"):
        page.publish(lists, SPAN)
        version = reader.read()
        assert version is not None
        numbers.append(version.numbers)
    assert numbers[0] == numbers[1]
    assert len({numbers[0], numbers[2], numbers[3]}) == 3, "a version never returns"


def test_another_span_may_be_published_for_the_same_version(page: IndexVersionPage, reader: IndexVersionReader) -> None:
    page.publish("a", SPAN)
    before = reader.read()
    page.publish("a", Span(3, 150, 180))
    assert before is not None
    assert reader.read() == IndexVersion(before.numbers, 150, 180)


def test_before_the_first_publication_and_after_a_withdrawal_the_version_is_unknown(
    page: IndexVersionPage, reader: IndexVersionReader
) -> None:
    assert reader.read() is None
    page.publish(None, SPAN)
    assert reader.read() is None
    page.publish("a", SPAN)
    page.publish(None, SPAN)
    assert reader.read() is None
    page.publish("a", SPAN)
    assert reader.read() is not None


def test_a_partly_written_version_is_ignored(page: IndexVersionPage, reader: IndexVersionReader, file: Path) -> None:
    page.publish("a", SPAN)
    first = file.read_bytes()[:32]
    page.publish("b", Span(2, 300, 400))
    second = file.read_bytes()[:32]
    with file.open("r+b", buffering=0) as page_file:
        for length in (8, 16, 24):
            os.pwrite(page_file.fileno(), second[:length] + first[length:], 0)
            assert reader.read() is None
        os.pwrite(page_file.fileno(), second, 0)
    assert reader.read() is not None


def test_closing_a_page_withdraws_its_version(page: IndexVersionPage, reader: IndexVersionReader) -> None:
    page.publish("a", SPAN)
    page.close()
    assert reader.read() is None
    page.close()
    page.publish("b", SPAN)
    assert reader.read() is None


def test_a_new_process_has_a_new_page_and_the_old_one_is_unchanged(
    page: IndexVersionPage, reader: IndexVersionReader, file: Path
) -> None:
    page.publish("a", SPAN)
    before = reader.read()
    with closing(IndexVersionPage(file)) as new_page, closing(IndexVersionReader(file)) as new_reader:
        assert new_reader.read() is None
        new_page.publish("a", SPAN)
        after = new_reader.read()
        assert before is not None
        assert after is not None
        assert after.numbers != before.numbers, "versions of two processes differ, whatever their numbers"
        assert reader.read() == before


@pytest.mark.usefixtures("page")
def test_only_the_same_user_may_read_a_page(file: Path) -> None:
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_without_a_page_publishing_does_nothing(tmp_path: Path) -> None:
    for path in (None, tmp_path / "missing" / "page"):
        with closing(IndexVersionPage(path)) as page:
            page.publish("a", SPAN)
    with pytest.raises(OSError, match="missing"):
        IndexVersionReader(tmp_path / "missing" / "page")


def test_on_a_full_disk_publishing_does_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with closing(IndexVersionPage(file)) as page:
        page.publish("a", SPAN)
    with pytest.raises(ValueError, match="mmap"):
        IndexVersionReader(file)


def test_the_page_has_its_own_path_next_to_the_socket() -> None:
    paths = [version_path(Path(f"/run/strandline/{shard}.sock")) for shard in range(20)]
    assert {path.parent for path in paths} == {Path("/run/strandline")}
    assert len(set(paths)) == len(paths)
    assert version_path(Path("/run/socket")) == Path("/run/socket.version")


@pytest.mark.parametrize(
    ("first", "last", "holds"),
    [(0, 100, True), (0, 99, False), (200, 300, True), (201, 300, False), (150, 160, True), (100, 100, True)],
)
def test_a_version_is_valid_for_ranges_in_which_all_series_exist(first: int, last: int, holds: bool) -> None:
    version = IndexVersion((1,), SPAN.last_start, SPAN.first_end)
    assert version.holds_for(TimeRange(first, last)) is holds
    assert SPAN.lies_in(first, last) is holds
    assert version.holds_for(None)


def test_a_joined_version_is_valid_where_each_of_its_versions_is() -> None:
    joined = joined_version([IndexVersion((1,), 100, 200), IndexVersion((7,), 50, 150)])
    assert joined == IndexVersion((1, 7), 100, 150)
