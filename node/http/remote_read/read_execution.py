"""Executes the queries of a read request, and checks whether the answers are complete.

All queries are executed before the first byte of the answer is sent. Together they are subject to the limits on series
and samples of a single query.
"""

from dataclasses import dataclass

import numpy as np

from strandline.index.key_bytes import KeyBytes
from strandline.node.http.remote_read.columns import AnswerColumns
from strandline.node.http.remote_read.requests import ReadQuery, ReadRequest
from strandline.node.query.answers import LACKS_LATER_ONLY, SamplesAnswer
from strandline.node.query.queries import NodeQueries, PartialAnswer, QueryScope, QueryTooLarge
from strandline.node.query.shard_requests import SamplesRequest, SeriesRequest
from strandline.node.settings.http_sections import QuerySettings


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """The answers to the queries of a request, in their order, and the warnings."""

    columns: tuple[AnswerColumns, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Limits:
    """What remains of the limits of a request."""

    series: int
    samples: int

    def without(self, answer: SamplesAnswer) -> "_Limits":
        return _Limits(self.series - len(answer.keys), self.samples - len(answer.time))


async def execute(
    read_request: ReadRequest, queries: NodeQueries, settings: QuerySettings, scope: QueryScope
) -> ReadAnswer:
    """Execute the queries one after the other. Raises what `NodeQueries` raises."""
    limits = _Limits(settings.max_series, settings.max_samples)
    columns: list[AnswerColumns] = []
    # An unavailable shard causes the same warning for each query.
    warnings: dict[str, None] = {}
    for index, query in enumerate(read_request.queries):
        try:
            answer = await _answer(query, queries, limits, scope)
        except QueryTooLarge as error:
            if index == 0:
                raise
            which = f"query {index + 1} of {len(read_request.queries)}, with what the earlier ones left of the limits"
            raise QueryTooLarge(f"{which}: {error.message}", remedy=error.remedy) from error
        limits = limits.without(answer)
        columns.append(AnswerColumns.of(answer))
        warnings.update(dict.fromkeys(answer.warnings))
    return ReadAnswer(tuple(columns), tuple(warnings))


def require_complete(answer: ReadAnswer, unserved: tuple[str, ...], *, of_dataset: bool) -> None:
    """Raises `PartialAnswer` for an answer with a warning. `unserved` is the warning about partitions of other nodes,
    which is ignored for a client that does not require the whole dataset. Warnings about samples later than
    `shard.late_by` are ignored: otherwise, reads of old times would be refused for as long as Kafka is unavailable.
    """
    lacking = [
        warning
        for warning in answer.warnings
        if not warning.endswith(LACKS_LATER_ONLY) and (of_dataset or warning not in unserved)
    ]
    if not lacking:
        return
    if all(warning in unserved for warning in lacking):
        remedy = "Read from every node of the dataset, each with ?partial=node"
    else:
        remedy = "Try again when the node is ready, or accept a partial answer with ?partial=allow"
    raise PartialAnswer(f"the answer may be partial: {'; '.join(lacking)}", remedy=remedy)


async def _answer(query: ReadQuery, queries: NodeQueries, limits: _Limits, scope: QueryScope) -> SamplesAnswer:
    if query.within.first > query.within.last:
        return _without_samples(KeyBytes(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8)))
    if not query.labels_only:
        request = SamplesRequest(query.matchers, query.within, limits.series, limits.samples)
        return await queries.samples(request, scope)
    found = await queries.series(SeriesRequest((query.matchers,), query.within, limits.series), scope)
    if found.more:
        count = await queries.count_series((query.matchers,), query.within, scope)
        raise QueryTooLarge(
            f"exceeded series limit ({limits.series}): the selector matches "
            f"{'' if count.is_exact else 'about '}{count.series:,} series",
            remedy="Narrow the selector or the time range, or raise query.max_series",
        )
    return _without_samples(found.keys, found.warnings)


def _without_samples(keys: KeyBytes, warnings: tuple[str, ...] = ()) -> SamplesAnswer:
    first_sample = np.zeros(len(keys) + 1, dtype=np.int64)
    return SamplesAnswer(keys, first_sample, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64), warnings)
