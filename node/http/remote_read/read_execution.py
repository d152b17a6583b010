"""What is asked of the node for a read request, and which answers may be passed on.

A request is answered as a whole or not at all: all of its queries are asked before the first byte goes out, and they
share the limits on series and samples that a single query has.
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
    """The answers to a request's queries in their order, and what they may lack."""

    columns: tuple[AnswerColumns, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Limits:
    """What a request may still read."""

    series: int
    samples: int

    def without(self, answer: SamplesAnswer) -> "_Limits":
        return _Limits(self.series - len(answer.keys), self.samples - len(answer.time))


async def execute(
    read_request: ReadRequest, queries: NodeQueries, settings: QuerySettings, scope: QueryScope
) -> ReadAnswer:
    """Ask each of the queries. Raises what `NodeQueries` raises."""
    limits = _Limits(settings.max_series, settings.max_samples)
    columns: list[AnswerColumns] = []
    # A shard that is away is so for each query: one warning is enough.
    warnings: dict[str, None] = {}
    for place, query in enumerate(read_request.queries):
        try:
            answer = await _answer(query, queries, limits, scope)
        except QueryTooLarge as error:
            if place == 0:
                raise
            before = f"query {place + 1} of {len(read_request.queries)}, with what those before it left of the limits"
            raise QueryTooLarge(f"{before}: {error.message}", remedy=error.remedy) from error
        limits = limits.without(answer)
        columns.append(AnswerColumns.of(answer))
        warnings.update(dict.fromkeys(answer.warnings))
    return ReadAnswer(tuple(columns), tuple(warnings))


def require_complete(answer: ReadAnswer, unserved: tuple[str, ...], *, of_dataset: bool) -> None:
    """Raises `PartialAnswer` for an answer with a warning. `unserved` is the one about other nodes' partitions, which
    is left out of account for a client that does not ask for the whole dataset. Samples that would be later than
    `shard.late_by` are no reason: reads of old times would be refused for as long as Kafka is away.
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
        remedy = "Try again when the node is ready, or ask for what there is with ?partial=allow"
    raise PartialAnswer(f"the answer may be partial: {'; '.join(lacking)}", remedy=remedy)


async def _answer(query: ReadQuery, queries: NodeQueries, limits: _Limits, scope: QueryScope) -> SamplesAnswer:
    if query.within.first > query.within.last:
        return _series_alone(KeyBytes(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8)))
    if not query.labels_only:
        execute = SamplesRequest(query.matchers, query.within, limits.series, limits.samples)
        return await queries.samples(execute, scope)
    found = await queries.series(SeriesRequest((query.matchers,), query.within, limits.series), scope)
    if found.more:
        count = await queries.count_series((query.matchers,), query.within, scope)
        raise QueryTooLarge(
            f"exceeded series limit ({limits.series}): the selector matches "
            f"{'' if count.is_exact else 'about '}{count.series:,} series",
            remedy="Ask for less: a narrower selector or time range; or raise query.max_series",
        )
    return _series_alone(found.keys, found.warnings)


def _series_alone(keys: KeyBytes, warnings: tuple[str, ...] = ()) -> SamplesAnswer:
    first_sample = np.zeros(len(keys) + 1, dtype=np.int64)
    return SamplesAnswer(keys, first_sample, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64), warnings)
