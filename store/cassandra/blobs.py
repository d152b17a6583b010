"""Large values under an attempt: segments, index buckets and job results.

Plain writes are sufficient: no other writer uses the same attempt, and nothing is read before a manifest row or a job
references it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from strandline.store.cassandra import statements
from strandline.store.cassandra.expiry import seconds_to_live
from strandline.store.cassandra.requests import Requests
from strandline.store.cassandra.statements import Statement
from strandline.store.cassandra.writing import InFlightLimit, RowWrite, write_all
from strandline.store.jobs import JobResultOf, ResultRow
from strandline.store.rows import IndexBucketOf, Lifetime, Segment, SegmentsOf

Values = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Blobs:
    """The three tables."""

    requests: Requests
    limit: InFlightLimit = field(default_factory=InFlightLimit)

    def write_segments(self, where: SegmentsOf, segments: Sequence[Segment], lifetime: Lifetime) -> None:
        """Write segments. When this returns, all are stored."""
        address = _segments_address(where)
        rows = (((*address, one.first, one.seq), one.data) for one in segments)
        self._write(f"write {_segments_named(where)}", statements.WRITE_SEGMENT, rows, lifetime)

    def segments(self, where: SegmentsOf, *, first: bytes | None, last: bytes | None) -> Iterator[Segment]:
        """Return segments in order, starting with the last one whose first series is below `first`. The query is sent
        immediately, not when the first segment is taken.
        """
        what, address = f"read {_segments_named(where)}", _segments_address(where)
        if first is not None and first == last:
            return self._segments_of_one(what, address, first)
        return self._segments_between(what, address, first, last)

    def _segments_between(
        self, what: str, address: Values, first: bytes | None, last: bytes | None
    ) -> Iterator[Segment]:
        least = b"" if first is None else first
        if last is None:
            pages = self.requests.pages(what, statements.SEGMENTS_FROM, (*address, least))
        else:
            pages = self.requests.pages(what, statements.SEGMENTS_BETWEEN, (*address, least, last))
        if first is None:
            return _segments(pages)
        below = self.requests.pages(what, statements.SEGMENT_BELOW, (*address, first))
        return chain(_segments(below), _segments(pages))

    def _segments_of_one(self, what: str, address: Values, series: bytes) -> Iterator[Segment]:
        """Return the segments that may contain one series: one request, unless a segment begins with this series."""
        found = self.requests.pages(what, statements.SEGMENT_UP_TO, (*address, series))

        def segments() -> Iterator[Segment]:
            for segment in _segments(found):
                if segment.first == series:
                    yield from self._segments_between(what, address, series, series)
                else:
                    yield segment

        return segments()

    def write_index_bucket(self, where: IndexBucketOf, rows: Iterable[bytes], lifetime: Lifetime) -> int:
        """Write the rows of an index bucket in order; return their number."""
        address = _index_address(where)
        numbered = (((*address, seq), data) for seq, data in enumerate(rows))
        return self._write(f"write {_index_named(where)}", statements.WRITE_INDEX_ROW, numbered, lifetime)

    def index_bucket(self, where: IndexBucketOf) -> Iterator[bytes]:
        """Yield the rows of an index bucket, in order."""
        pages = self.requests.pages(f"read {_index_named(where)}", statements.INDEX_ROWS, _index_address(where))
        yield from (row.data for page in pages for row in page)

    def write_result(self, where: JobResultOf, rows: Sequence[ResultRow], lifetime: Lifetime) -> None:
        """Write rows of a job's result. When this returns, all are stored."""
        address = _result_address(where)
        keyed = (((*address, row.kind, row.seq), row.data) for row in rows)
        self._write(f"write {_result_named(where)}", statements.WRITE_RESULT_ROW, keyed, lifetime)

    def result(self, where: JobResultOf, kind: str, seq: int | None) -> Iterator[ResultRow]:
        """Yield the rows of one kind in order, or the one with number `seq`."""
        address: Values = (*_result_address(where), kind)
        statement = statements.RESULT_ROWS
        if seq is not None:
            address, statement = (*address, seq), statements.RESULT_ROW
        pages = self.requests.pages(f"read {_result_named(where)}", statement, address)
        yield from (ResultRow(row.kind, row.seq, row.data) for page in pages for row in page)

    def _write(self, what: str, statement: Statement, rows: Iterable[tuple[Values, bytes]], lifetime: Lifetime) -> int:
        """Write rows, given as (key, value); return their number."""
        seconds = seconds_to_live(lifetime.length)
        writes = (
            RowWrite(self.requests.bind(statement, (*key, lifetime.expires, data, seconds)), len(data))
            for key, data in rows
        )
        return write_all(self.requests, self.limit, what, writes)


def _segments(pages: Iterator[list[Any]]) -> Iterator[Segment]:
    return (Segment(row.first, row.seq, row.data) for page in pages for row in page)


def _segments_address(where: SegmentsOf) -> Values:
    return where.shard.dataset, where.shard.shard, where.bucket, where.group, where.attempt


def _segments_named(where: SegmentsOf) -> str:
    return f"segments of shard {where.shard}, bucket {where.bucket}, group {where.group}, attempt {where.attempt!r}"


def _index_address(where: IndexBucketOf) -> Values:
    return where.shard.dataset, where.shard.shard, where.bucket, where.attempt


def _index_named(where: IndexBucketOf) -> str:
    return f"the index bucket of shard {where.shard}, bucket {where.bucket}, attempt {where.attempt!r}"


def _result_address(where: JobResultOf) -> Values:
    return where.shard.dataset, where.shard.shard, where.bucket, where.attempt


def _result_named(where: JobResultOf) -> str:
    return f"the result of shard {where.shard}, bucket {where.bucket}, attempt {where.attempt!r}"
