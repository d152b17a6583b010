from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.index.catalogue import Catalogue
from strandline.index.documents import PartKeyBatch, decode_part_key, encode_part_key
from strandline.index.key_documents import LuceneDocuments
from strandline.index.matchers import MatcherTooCostly, RegexBudget
from strandline.index.part_columns import LIVE
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.policy import BucketPolicy
from strandline.index.selectors import parse_selector
from strandline.index.shard_index import ShardIndex
from strandline.index.vm import start_vm
from strandline.time_range import TimeRange
from strandline.wire.encoding import Series
from support.records import decoded

pytestmark = pytest.mark.unit

HOUR = 3_600_000
POLICY = BucketPolicy(flush_interval=HOUR, retention=10 * HOUR, margin=4 * HOUR, stale_after=HOUR)


class Shard:
    """A shard's index whose samples are given by name and hour."""

    def __init__(self, lucene: PartKeyIndex) -> None:
        self.index = ShardIndex(POLICY, LuceneDocuments(lucene), open_bucket=100, next_part_id=0, series_limit=1000)
        budget = RegexBudget(max_terms=1000, max_ms=10_000)
        self.catalogue = Catalogue(
            lucene, self.index.columns, budget, has_purged_documents=self.index.has_purged_documents
        )
        self.lucene = lucene

    def samples(self, *names: str) -> None:
        time = self.index.open.bucket * HOUR + HOUR // 2
        series = [Series([("__name__", "up"), ("name", name), ("zone", name[0])], [(time, 1.0)]) for name in names]
        self.index.take(decoded(series))
        self.lucene.refresh()

    def cut(self) -> None:
        frozen = self.index.cut()
        self.index.encode(frozen)
        self.index.stored(frozen, POLICY.expected_expiry(frozen.bucket))
        self.lucene.refresh()

    def found(self, selector: str, within: TimeRange | None = None, limit: int = 100) -> list[str]:
        keys = self.catalogue.series(parse_selector(selector), within, limit=limit).keys
        return [decode_part_key(keys.part_key(position))["name"] for position in range(len(keys))]


@pytest.fixture
def shard(tmp_path: Path) -> Iterator[Shard]:
    start_vm()
    with PartKeyIndex.open(tmp_path / "lucene") as lucene:
        yield Shard(lucene)


def hours(first: int, last: int) -> TimeRange:
    return TimeRange(first * HOUR, last * HOUR)


def test_a_key_counts_for_the_hours_from_its_start_to_its_end(shard: Shard) -> None:
    shard.samples("a1", "b1")  # at 100.5
    shard.cut()
    shard.samples("b1", "b2")  # at 101.5
    shard.cut()
    shard.cut()  # by now both have ended
    shard.samples("a3")  # at 103.5, live
    assert shard.found("up", hours(90, 100)) == []
    assert shard.found("up", hours(100, 101)) == ["a1", "b1"]
    assert shard.found("up", hours(101, 102)) == ["b1", "b2"]
    assert shard.found("up", hours(102, 103)) == []
    assert shard.found("up", hours(104, 200)) == ["a3"], "a live key has no end"
    assert shard.found("up") == ["a1", "b1", "b2", "a3"]
    assert shard.found('up{zone="b"}', hours(100, 101)) == ["b1"]
    half = 100 * HOUR + HOUR // 2
    assert shard.found("up", TimeRange(half, half)) == ["a1", "b1"], "both ends of a range belong to it"
    assert shard.found("up", TimeRange(half - 9, half - 1)) == []


def test_series_come_with_their_times(shard: Shard) -> None:
    shard.samples("a1")
    shard.cut()
    shard.samples("a2")
    shard.cut()
    found = shard.catalogue.series(parse_selector("up"), limit=10)
    assert found.start.tolist() == [100 * HOUR + HOUR // 2, 101 * HOUR + HOUR // 2]
    assert found.end.tolist() == [100 * HOUR + HOUR // 2, LIVE]
    assert not found.more


def test_a_limit_truncates_the_result_and_reports_it(shard: Shard) -> None:
    shard.samples("a1", "a2", "a3")
    found = shard.catalogue.series(parse_selector("up"), limit=2)
    assert (len(found.keys), found.more) == (2, True)
    assert not shard.catalogue.series(parse_selector("up"), limit=3).more
    assert len(shard.catalogue.series(parse_selector("down"), limit=3).keys) == 0


def test_a_purged_key_is_not_found_even_before_its_document_is_deleted(shard: Shard) -> None:
    shard.samples("a1")
    for _ in range(12):
        shard.index.cut()  # frozen, and not stored: the document stays
    assert shard.found("up") == []


def test_label_names_and_values_follow_matchers_and_time(shard: Shard) -> None:
    shard.samples("a1", "b1")
    shard.cut()
    shard.cut()
    shard.samples("b2", "c1")
    catalogue = shard.catalogue
    assert catalogue.label_values("zone", limit=10).terms == ["a", "b", "c"]
    assert catalogue.label_values("zone", limit=10).counts.tolist() == [1, 2, 1]
    assert catalogue.label_values("zone", within=hours(100, 101), limit=10).terms == ["a", "b"]
    assert catalogue.label_values("name", parse_selector('up{zone="b"}'), limit=10).terms == ["b1", "b2"]
    assert catalogue.label_values("name", parse_selector('up{zone="b"}'), within=hours(102, 103), limit=10).terms == [
        "b2"
    ]
    assert catalogue.label_values("name", limit=3).terms == ["a1", "b1", "b2"]
    assert catalogue.label_values("name", limit=3).more
    assert catalogue.label_names(limit=10).terms == ["__name__", "name", "zone"]
    assert catalogue.label_names(parse_selector("down"), limit=10).terms == []


def test_a_matcher_that_is_too_costly_is_named(shard: Shard) -> None:
    shard.samples(*(f"a{number}" for number in range(50)))
    costly = Catalogue(shard.lucene, shard.index.columns, RegexBudget(max_terms=10, max_ms=10_000))
    with pytest.raises(MatcherTooCostly, match=r'name=~"\.\*7"'):
        costly.matching(parse_selector('up{name=~".*7"}'))


@pytest.mark.parametrize("within", [None, hours(90, 200)])
def test_purged_keys_are_not_listed_while_their_documents_still_exist(shard: Shard, within: TimeRange | None) -> None:
    shard.samples("a1", "b1")
    shard.cut()
    for _ in range(POLICY.kept_buckets + 1):
        shard.samples("b1")
        # The store is unavailable: no bucket is reported as stored.
        shard.index.cut()
    assert shard.index.has_purged_documents()
    assert shard.found("up") == ["b1"]
    assert shard.catalogue.label_values("name", within=within, limit=9).terms == ["b1"]
    assert shard.catalogue.counted(within=within).cardinality(limit=9).series == 1


@pytest.mark.parametrize("selector", ['{name="a1"}', '{name="b1"}', '{name="a3"}', '{name="none"}', '{zone="b"}'])
def test_few_keys_are_those_that_existed(shard: Shard, selector: str) -> None:
    shard.samples("a1", "b1")  # at 100.5
    shard.cut()
    shard.samples("b1", "b2")  # at 101.5
    shard.cut()
    shard.cut()
    shard.samples("a3")  # at 103.5, live

    def few(within: TimeRange | None) -> list[str]:
        keys = shard.catalogue.keys_up_to((parse_selector(selector),), within)
        assert keys is not None
        assert int(keys.offsets[-1]) == len(keys.keys), "no bytes of other keys are left"
        return sorted(decode_part_key(key)["name"] for key in keys.part_keys())

    moments = [moment * HOUR // 2 for moment in range(199, 212)]
    for within in [None, *(TimeRange(first, last) for first in moments for last in moments if first <= last)]:
        assert few(within) == shard.found(selector, within)
    for _ in range(30):
        shard.cut()
    assert few(None) == shard.found(selector, None), "purged keys are removed"


@pytest.mark.parametrize("part_id", [1, 2**32 - 1])
def test_a_document_without_a_row_is_not_a_key(shard: Shard, part_id: int) -> None:
    shard.samples("a1")
    shard.lucene.add(PartKeyBatch.of([part_id], [(0, 0)], [encode_part_key({"name": "early"})]))
    shard.lucene.refresh()
    for within in (None, hours(0, 200)):
        keys = shard.catalogue.keys_up_to((parse_selector('{name="early"}'),), within)
        assert keys is not None
        assert len(keys) == 0
