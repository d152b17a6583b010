"""`NodeQueries` over all shards of a node: sends requests to all of them, and merges the answers."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

from strandline.errors import StrandlineError
from strandline.node.query.answer_memory import MemoryLease
from strandline.node.query.answer_merging import (
    merge_buckets,
    merge_samples_answers,
    merge_series,
    merge_terms,
)
from strandline.node.query.answer_messages import QueryFailed
from strandline.node.query.answers import (
    Answer,
    BucketsAnswer,
    CardinalityAnswer,
    EvaluateAnswer,
    FragmentResult,
    KeyPageAnswer,
    SamplesAnswer,
    SeriesAnswer,
    SeriesCount,
    SeriesHashesAnswer,
    TermsAnswer,
)
from strandline.node.query.cardinality_merging import merge_cardinality
from strandline.node.query.coverage import unserved, unserved_in_words
from strandline.node.query.fragment_merging import merge_evaluated, samples_result
from strandline.node.query.frames import encode_joined
from strandline.node.query.index_version import IndexVersion, joined_version
from strandline.node.query.key_pages import merge_key_pages
from strandline.node.query.link_socket import SMALL_MESSAGE
from strandline.node.query.lookup_frames import lookup_frame
from strandline.node.query.queries import (
    EvaluationLimits,
    QueryScope,
    QueryUnavailable,
    TooManySamples,
    TooManySeries,
    timed_out,
)
from strandline.node.query.request_messages import request_message
from strandline.node.query.sampling_limits import check_samples, check_series
from strandline.node.query.series_hashes import DistinctSeries, distinct_series
from strandline.node.query.shard_requests import (
    BucketsRequest,
    CardinalityRequest,
    EvaluateRequest,
    KeyPageRequest,
    LabelNamesRequest,
    LabelValuesRequest,
    SamplesRequest,
    Selector,
    SeriesHashesRequest,
    SeriesRequest,
    ShardRequest,
)
from strandline.node.query.unresponsive_store import first_unresponsive_store_error
from strandline.node.status.processes import NodeShards, ProcessState, ShardProcessStatus
from strandline.node.workers import Workers
from strandline.promql.plan.fragments import AnyFragment, SamplesFragment
from strandline.time_range import TimeRange

# The same request to every shard, or one for each shard's number.
RequestPerShard = ShardRequest | Callable[[int], ShardRequest]
AnswerKind = TypeVar("AnswerKind", bound=Answer)
Result = TypeVar("Result")
# A top over labels whose values are not listed is merged from longer tops of each shard. A value that is in no shard's
# top is missed.
_TOPS_FACTOR = 10
# To count a series or value of several shards once, shards send together at most the hashes of this many series, and
# this many bytes of values, and at most 1/8 of the memory for answers. Above these limits, figures are estimates.
_MAX_HASHED_SERIES = 4 << 20
_MAX_LISTED_BYTES = 64 << 20
_MEMORY_PART = 8
_HASH_BYTES = 20
# Requests for a fragment. A second one is needed for misplaced series, and more only while such series are being
# written.
_MAX_ROUNDS = 4


class ShardClient(Protocol):
    """Sends requests to one shard: `ShardLink`."""

    async def look_up(self, frame: bytes, memory: MemoryLease) -> Answer | None: ...

    async def request(self, frame: bytes, memory: MemoryLease) -> Answer: ...

    def index_version(self) -> IndexVersion | None: ...


class ShardQueries:
    """`NodeQueries` over the links to the shards' processes."""

    def __init__(
        self,
        clients: Callable[[], Mapping[int, ShardClient]],
        shards: NodeShards,
        workers: Workers,
        *,
        concurrency: int,
    ) -> None:
        """`clients` returns the current links, by the shards' numbers; a shard without a link can't answer. At most
        `concurrency` queries run at a time. `workers` merge long answers.
        """
        self._clients, self._shards, self._workers = clients, shards, workers
        self._semaphore = asyncio.Semaphore(concurrency)
        self._current = _ShardSet({}, (), None)

    def reload(self, *, concurrency: int) -> None:
        """Apply a new limit to queries from now on. Running queries are not counted."""
        self._semaphore = asyncio.Semaphore(concurrency)

    async def series(self, request: SeriesRequest, scope: QueryScope) -> SeriesAnswer:
        return await self._merged(request, SeriesAnswer, scope, lambda answers: merge_series(answers, request.limit))

    async def label_names(self, request: LabelNamesRequest, scope: QueryScope) -> TermsAnswer:
        return await self._merged(request, TermsAnswer, scope, lambda answers: merge_terms(answers, request.limit))

    async def label_values(self, request: LabelValuesRequest, scope: QueryScope) -> TermsAnswer:
        return await self._merged(request, TermsAnswer, scope, lambda answers: merge_terms(answers, request.limit))

    async def samples(self, request: SamplesRequest, scope: QueryScope) -> SamplesAnswer:
        try:
            merged = await self._merged(request, SamplesAnswer, scope, merge_samples_answers)
        except TooManySeries as error:
            # The error has the number of series of one shard.
            raise await self._refusal(error, request, scope) from None
        except TooManySamples as error:
            at_least = len(self._shard_set().available) > 1
            raise (TooManySamples(error.found, request.max_samples, at_least=True) if at_least else error) from None
        check_series(len(merged.keys), request.max_series)
        check_samples(len(merged.time), request.max_samples)
        return merged

    async def evaluate(self, fragment: AnyFragment, limits: EvaluationLimits, scope: QueryScope) -> FragmentResult:
        bounds = (limits.max_series, limits.max_samples)
        within = TimeRange(fragment.first, fragment.last)
        if isinstance(fragment, SamplesFragment):
            return samples_result(await self.samples(SamplesRequest(fragment.matchers, within, *bounds), scope))
        shard_set = self._shard_set()
        partitions = shard_set.partitions or max(shard_set.clients, default=0) + 1
        left_out = b""
        for _ in range(_MAX_ROUNDS):
            request = EvaluateRequest(fragment, partitions, *bounds, left_out)
            elsewhere = None
            if left_out:
                samples = SamplesRequest(fragment.matchers, within, *bounds, left_out)
                elsewhere = await self.samples(samples, scope)
            combine = partial(merge_evaluated, fragment, known=left_out, elsewhere=elsewhere)
            result, warnings = await self._combined(request, EvaluateAnswer, scope, combine)
            if isinstance(result, FragmentResult):
                return replace(result, warnings=result.warnings + warnings)
            left_out = result
        raise QueryUnavailable(
            "series moved to other partitions while the query was evaluated", remedy="Repeat the query"
        )

    async def count_series(
        self, selectors: tuple[Selector, ...], within: TimeRange | None, scope: QueryScope
    ) -> SeriesCount:
        return (await self._distinct(selectors, within, scope)).count

    async def key_page(self, request: KeyPageRequest, scope: QueryScope) -> KeyPageAnswer:
        shard_set = self._shard_set()
        page = await self._merged(
            request, KeyPageAnswer, scope, lambda answers: merge_key_pages(answers, request.limit)
        )
        # If the unserved partitions have changed meanwhile, the warning stays.
        warnings = tuple(warning for warning in page.warnings if warning not in shard_set.unserved)
        return replace(page, warnings=warnings, unserved=shard_set.missing)

    async def cardinality(self, request: CardinalityRequest, scope: QueryScope) -> CardinalityAnswer:
        shards = len(self._shard_set().available)
        if shards < 2:
            return await self._merged(
                request, CardinalityAnswer, scope, lambda found: merge_cardinality(found, request.limit)
            )
        distinct = await self._distinct(request.selectors, request.within, scope)
        listed = min(_MAX_LISTED_BYTES, scope.memory.limit // _MEMORY_PART) // shards
        each = replace(request, limit=_TOPS_FACTOR * request.limit, listed_bytes=listed)
        count = None if distinct.count.is_exact else distinct.count

        def of_shard(shard: int) -> CardinalityRequest:
            return replace(each, without=distinct.repeated.get(shard, b""))

        def merge(answers: Mapping[int, CardinalityAnswer]) -> CardinalityAnswer:
            return merge_cardinality(list(answers.values()), request.limit, label=request.label, series=count)

        merged, warnings = await self._combined(of_shard, CardinalityAnswer, scope, merge)
        return replace(merged, warnings=merged.warnings + warnings)

    async def buckets(self, request: BucketsRequest, scope: QueryScope) -> BucketsAnswer:
        return await self._merged(request, BucketsAnswer, scope, lambda answers: merge_buckets(answers, request.limit))

    def index_version(self) -> IndexVersion | None:
        shard_set = self._shard_set()
        if shard_set.unavailable or not shard_set.available:
            return None
        # Every link is called, so that each unmaps the page of a process that has ended.
        versions = [client.index_version() for _, client in shard_set.available]
        known = [version for version in versions if version is not None]
        if len(known) < len(versions):
            return None
        version = joined_version(known)
        # The warning of a cached list names the unserved partitions.
        return (
            replace(version, numbers=(*version.numbers, shard_set.partitions or 0)) if shard_set.unserved else version
        )

    def unserved(self) -> tuple[str, ...]:
        return self._shard_set().unserved

    def answered_from_cache(self, request: LabelNamesRequest | LabelValuesRequest) -> None:
        """Not counted here."""

    def _shard_set(self) -> "_ShardSet":
        """The shards that are available now. Cached, because it changes rarely."""
        clients, statuses, partitions = self._clients(), self._shards.shards(), self._shards.partitions()
        current = self._current
        if current.clients is not clients or current.statuses is not statuses or current.partitions != partitions:
            self._current = current = _ShardSet(clients, statuses, partitions)
        return current

    async def _distinct(
        self, selectors: tuple[Selector, ...], within: TimeRange | None, scope: QueryScope
    ) -> DistinctSeries:
        """How many distinct series the shards have."""
        memory, shards = scope.memory, max(1, len(self._shard_set().available))
        before = memory.held
        max_hashes = min(_MAX_HASHED_SERIES, memory.limit // _MEMORY_PART // _HASH_BYTES)
        # The count of a single shard needs no hashes.
        request = SeriesHashesRequest(selectors, within, max_hashes // shards if shards > 1 else 0)
        distinct, _ = await self._combined(request, SeriesHashesAnswer, scope, distinct_series)
        memory.shrink(memory.held - before)
        return distinct

    async def _refusal(self, error: TooManySeries, request: SamplesRequest, scope: QueryScope) -> TooManySeries:
        """The error with the number of series of all shards."""
        if len(self._shard_set().available) < 2:
            return error
        try:
            count = await self.count_series((request.selector,), request.within, scope)
        except StrandlineError:
            return TooManySeries(error.found, request.max_series, about="at least")
        return TooManySeries(
            max(count.series, error.found), request.max_series, about="" if count.is_exact else "about"
        )

    async def _merged(
        self,
        request: ShardRequest,
        kind: type[AnswerKind],
        scope: QueryScope,
        merge: Callable[[Sequence[AnswerKind]], AnswerKind],
    ) -> AnswerKind:
        merged, warnings = await self._combined(request, kind, scope, lambda found: merge(list(found.values())))
        return replace(merged, warnings=merged.warnings + warnings) if warnings else merged

    async def _combined(
        self,
        request: RequestPerShard,
        kind: type[AnswerKind],
        scope: QueryScope,
        combine: Callable[[Mapping[int, AnswerKind]], Result],
    ) -> tuple[Result, tuple[str, ...]]:
        """The combined answers of the available shards, and warnings about the others."""
        memory = scope.memory
        before = memory.held
        try:
            async with asyncio.timeout(scope.seconds_left(asyncio.get_running_loop().time())):
                answers, warnings = await self._answers(request, kind, scope)
                size = memory.held - before
                if len(answers) == 1 or size <= SMALL_MESSAGE:
                    return combine(answers), warnings
                # While merging, both the answers and the result are in memory.
                memory.grow(size)
                combined = await self._workers.run(lambda: combine(answers))
                memory.shrink(size)
                return combined, warnings
        except TimeoutError:
            store_error = first_unresponsive_store_error(self._shards.shards(), scope.timeout_s)
            raise store_error or timed_out(scope.timeout_s) from None

    async def _answers(
        self, request: RequestPerShard, kind: type[AnswerKind], scope: QueryScope
    ) -> tuple[dict[int, AnswerKind], tuple[str, ...]]:
        """The answers of the available shards, at least one, and warnings about the others."""
        shard_set, memory = self._shard_set(), scope.memory
        available, found = shard_set.available, dict[int, Answer | str]()
        lookup = None if callable(request) else lookup_frame(request)
        if lookup is not None:
            # A lookup is so fast that it does not need the semaphore.
            looked_up = await _of_each(available, lambda _, client: client.look_up(lookup, memory))
            found = {shard: answer for shard, answer in looked_up.items() if answer is not None}
            available = [one for one in available if one[0] not in found]
        if available:
            async with self._semaphore:
                seconds = scope.seconds_left(asyncio.get_running_loop().time())
                frames = _frames(request, available, seconds)
                requested = await _of_each(
                    available, lambda one, client: _answer_or_error(client.request(frames[one], memory))
                )
            for shard, one in requested.items():
                found[shard] = _reason(one, shard) if isinstance(one, StrandlineError) else one
        unavailable, answers = dict(shard_set.unavailable), dict[int, AnswerKind]()
        for shard, answer in sorted(found.items()):
            if isinstance(answer, str):
                unavailable[shard] = answer
            elif isinstance(answer, kind):
                answers[shard] = answer
            else:
                unavailable[shard] = f"shard {shard} sent an answer of the wrong kind"
        if answers and not unavailable:
            return answers, shard_set.unserved
        reasons = [unavailable[shard] for shard in sorted(unavailable)]
        if not answers:
            raise QueryUnavailable(
                "; ".join(reasons) or "this node has no shards",
                remedy="Try again later; the status page shows the state of the shards",
            )
        return answers, (*(f"{reason}: the answer lacks its series" for reason in reasons), *shard_set.unserved)


class _ShardSet:
    """The shards of a node at one moment, in the order of their numbers: those that are available, and the reasons of
    the others. `missing` has the partitions that the node does not serve, and `unserved` the warning about them.
    """

    def __init__(
        self, clients: Mapping[int, ShardClient], statuses: Sequence[ShardProcessStatus], partitions: int | None
    ) -> None:
        self.clients, self.statuses, self.partitions = clients, statuses, partitions
        self.available: list[tuple[int, ShardClient]] = []
        self.unavailable: dict[int, str] = {}
        by_shard = {one.shard: one for one in statuses}
        for shard in sorted({*clients, *by_shard}):
            reason = _unavailable_reason(shard, clients, by_shard)
            if reason is None:
                self.available.append((shard, clients[shard]))
            else:
                self.unavailable[shard] = reason
        self.missing = unserved(partitions, {*clients, *by_shard})
        warning = f"{unserved_in_words(self.missing, partitions)}: the answer lacks the series there"
        self.unserved: tuple[str, ...] = (warning,) if self.missing else ()


async def _of_each(
    available: Sequence[tuple[int, ShardClient]], call: Callable[[int, ShardClient], Coroutine[object, object, Result]]
) -> dict[int, Result]:
    """Call each shard concurrently. The first error is raised at once, and cancels the other calls."""
    if len(available) == 1:
        ((shard, client),) = available
        return {shard: await call(shard, client)}
    try:
        async with asyncio.TaskGroup() as group:
            tasks = {shard: group.create_task(call(shard, client)) for shard, client in available}
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return {shard: task.result() for shard, task in tasks.items()}


def _frames(request: RequestPerShard, available: Sequence[tuple[int, ShardClient]], seconds: float) -> dict[int, bytes]:
    """The frame for each shard."""
    if callable(request):
        return {shard: encode_joined(request_message(request(shard), seconds)) for shard, _ in available}
    return dict.fromkeys((shard for shard, _ in available), encode_joined(request_message(request, seconds)))


async def _answer_or_error(requested: Coroutine[object, object, Answer]) -> Answer | StrandlineError:
    """The answer, or the error of a shard that can't answer. Errors of the request itself are raised."""
    try:
        return await requested
    except (QueryUnavailable, QueryFailed) as error:
        return error


def _unavailable_reason(
    shard: int, clients: Mapping[int, ShardClient], statuses: Mapping[int, ShardProcessStatus]
) -> str | None:
    """Why a shard can't answer; None if it may be able to."""
    status = statuses.get(shard)
    if status is not None and status.state not in (ProcessState.STARTING, ProcessState.RUNNING):
        why = f" ({status.reason})" if status.reason else ""
        if status.state is ProcessState.WAITING:
            pause = f" in {status.starts_in_s:.0f} s" if status.starts_in_s is not None else ""
            return f"shard {shard} has ended{why} and will be restarted{pause}"
        return f"shard {shard} is {status.state.value}{why}"
    return None if shard in clients else f"shard {shard} has not started yet"


def _reason(error: StrandlineError, shard: int) -> str:
    return error.message if f"shard {shard}" in error.message else f"shard {shard}: {error.message}"
