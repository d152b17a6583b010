"""Queries to all shards of a node at once, and their answers as one."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

from strandline.errors import StrandlineError
from strandline.node.query.answer_memory import MemoryLease
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
from strandline.node.query.index_version import IndexVersion, joined
from strandline.node.query.key_pages import merge_key_pages
from strandline.node.query.link_socket import SMALL_MESSAGE
from strandline.node.query.lookup_frames import lookup_frame
from strandline.node.query.merging import (
    merge_buckets,
    merge_samples_answers,
    merge_series,
    merge_terms,
)
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

# The same for every shard, or one for each shard's number.
RequestEach = ShardRequest | Callable[[int], ShardRequest]
OneAnswer = TypeVar("OneAnswer", bound=Answer)
Result = TypeVar("Result")
# A top over labels that are not listed is made of longer tops of each shard: what is in no shard's own is missed.
_LONGER_TOPS = 10
# How much shards send together, so that a series or a value that several have counts once: hashes of so many series,
# and so many bytes of values; and no more than this part of the memory for answers. Beyond it figures are estimates.
_HASHED_SERIES = 4 << 20
_LISTED_BYTES = 64 << 20
_OF_THE_MEMORY = 8
_HASH_BYTES = 20
# Series in the wrong partition are asked for anew; more than once only if such series are just being written.
_MOST_ROUNDS = 4


class ShardClient(Protocol):
    """The way to one shard: a `ShardLink`."""

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
        """`clients` are the links there are now, by the shards' numbers; a shard without one can't answer. At most
        `concurrency` queries are worked on at a time. `workers` merge answers that are long.
        """
        self._clients, self._shards, self._workers = clients, shards, workers
        self._semaphore = asyncio.Semaphore(concurrency)
        self._known = _LineUp({}, (), None)

    def reload(self, *, concurrency: int) -> None:
        """Queries from now on are held to this limit; those before are not counted."""
        self._semaphore = asyncio.Semaphore(concurrency)

    async def series(self, request: SeriesRequest, scope: QueryScope) -> SeriesAnswer:
        return await self._merged(request, SeriesAnswer, scope, lambda answers: merge_series(answers, request.limit))

    async def label_names(self, request: LabelNamesRequest, scope: QueryScope) -> TermsAnswer:
        return await self._merged(request, TermsAnswer, scope, lambda answers: merge_terms(answers, request.limit))

    async def label_values(self, request: LabelValuesRequest, scope: QueryScope) -> TermsAnswer:
        return await self._merged(request, TermsAnswer, scope, lambda answers: merge_terms(answers, request.limit))

    async def samples(self, request: SamplesRequest, scope: QueryScope) -> SamplesAnswer:
        try:
            whole = await self._merged(request, SamplesAnswer, scope, merge_samples_answers)
        except TooManySeries as error:
            # One shard has refused, with the number of its own series.
            raise await self._refusal(error, request, scope) from None
        except TooManySamples as error:
            at_least = len(self._line_up().able) > 1
            raise (TooManySamples(error.found, request.max_samples, at_least=True) if at_least else error) from None
        check_series(len(whole.keys), request.max_series)
        check_samples(len(whole.time), request.max_samples)
        return whole

    async def evaluate(self, fragment: AnyFragment, limits: EvaluationLimits, scope: QueryScope) -> FragmentResult:
        bounds = (limits.max_series, limits.max_samples)
        within = TimeRange(fragment.first, fragment.last)
        if isinstance(fragment, SamplesFragment):
            return samples_result(await self.samples(SamplesRequest(fragment.matchers, within, *bounds), scope))
        line_up = self._line_up()
        partitions = line_up.partitions or max(line_up.clients, default=0) + 1
        left_out = b""
        for _ in range(_MOST_ROUNDS):
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
            "series came to other partitions while the query was evaluated", remedy="Ask again in a while"
        )

    async def count_series(
        self, selectors: tuple[Selector, ...], within: TimeRange | None, scope: QueryScope
    ) -> SeriesCount:
        return (await self._distinct(selectors, within, scope)).count

    async def key_page(self, request: KeyPageRequest, scope: QueryScope) -> KeyPageAnswer:
        line_up = self._line_up()
        page = await self._merged(
            request, KeyPageAnswer, scope, lambda answers: merge_key_pages(answers, request.limit)
        )
        # If they are others by now, the warning stays.
        warnings = tuple(warning for warning in page.warnings if warning not in line_up.unserved)
        return replace(page, warnings=warnings, unserved=line_up.missing)

    async def cardinality(self, request: CardinalityRequest, scope: QueryScope) -> CardinalityAnswer:
        shards = len(self._line_up().able)
        if shards < 2:
            return await self._merged(
                request, CardinalityAnswer, scope, lambda found: merge_cardinality(found, request.limit)
            )
        distinct = await self._distinct(request.selectors, request.within, scope)
        listed = min(_LISTED_BYTES, scope.memory.limit // _OF_THE_MEMORY) // shards
        each = replace(request, limit=_LONGER_TOPS * request.limit, listed_bytes=listed)
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
        line_up = self._line_up()
        if line_up.trouble or not line_up.able:
            return None
        # All of them are looked at, so that the page of a process that has ended is let go of.
        versions = [client.index_version() for _, client in line_up.able]
        known = [version for version in versions if version is not None]
        if len(known) < len(versions):
            return None
        version = joined(known)
        # What the node does not serve stands in the list's warning.
        return replace(version, numbers=(*version.numbers, line_up.partitions or 0)) if line_up.unserved else version

    def unserved(self) -> tuple[str, ...]:
        return self._line_up().unserved

    def answered_from_cache(self, request: LabelNamesRequest | LabelValuesRequest) -> None:
        """Nothing is counted here."""

    def _line_up(self) -> "_LineUp":
        """Which shards can be asked now. It changes far less often than it is needed."""
        clients, statuses, partitions = self._clients(), self._shards.shards(), self._shards.partitions()
        known = self._known
        if known.clients is not clients or known.statuses is not statuses or known.partitions != partitions:
            self._known = known = _LineUp(clients, statuses, partitions)
        return known

    async def _distinct(
        self, selectors: tuple[Selector, ...], within: TimeRange | None, scope: QueryScope
    ) -> DistinctSeries:
        """How many series the shards have together."""
        memory, shards = scope.memory, max(1, len(self._line_up().able))
        before = memory.held
        most = min(_HASHED_SERIES, memory.limit // _OF_THE_MEMORY // _HASH_BYTES)
        # What one shard says alone needs no hashes.
        request = SeriesHashesRequest(selectors, within, most // shards if shards > 1 else 0)
        distinct, _ = await self._combined(request, SeriesHashesAnswer, scope, distinct_series)
        memory.shrink(memory.held - before)
        return distinct

    async def _refusal(self, error: TooManySeries, request: SamplesRequest, scope: QueryScope) -> TooManySeries:
        """The same refusal with the number of series of all shards."""
        if len(self._line_up().able) < 2:
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
        kind: type[OneAnswer],
        scope: QueryScope,
        merge: Callable[[Sequence[OneAnswer]], OneAnswer],
    ) -> OneAnswer:
        merged, warnings = await self._combined(request, kind, scope, lambda found: merge(list(found.values())))
        return replace(merged, warnings=merged.warnings + warnings) if warnings else merged

    async def _combined(
        self,
        request: RequestEach,
        kind: type[OneAnswer],
        scope: QueryScope,
        combine: Callable[[Mapping[int, OneAnswer]], Result],
    ) -> tuple[Result, tuple[str, ...]]:
        """What comes of the answers of all shards that can answer, and warnings about the others."""
        memory = scope.memory
        before = memory.held
        try:
            async with asyncio.timeout(scope.seconds_left(asyncio.get_running_loop().time())):
                answers, warnings = await self._asked(request, kind, scope)
                size = memory.held - before
                if len(answers) == 1 or size <= SMALL_MESSAGE:
                    return combine(answers), warnings
                # While they are merged, there are the answers and what becomes of them.
                memory.grow(size)
                combined = await self._workers.run(lambda: combine(answers))
                memory.shrink(size)
                return combined, warnings
        except TimeoutError:
            waited_for = first_unresponsive_store_error(self._shards.shards(), scope.timeout_s)
            raise waited_for or timed_out(scope.timeout_s) from None

    async def _asked(
        self, request: RequestEach, kind: type[OneAnswer], scope: QueryScope
    ) -> tuple[dict[int, OneAnswer], tuple[str, ...]]:
        """The answers of the shards that can answer, one at least, and warnings about the others."""
        line_up, memory = self._line_up(), scope.memory
        able, found = line_up.able, dict[int, Answer | str]()
        lookup = None if callable(request) else lookup_frame(request)
        if lookup is not None:
            # It is so short that it does not wait behind the others.
            looked_up = await _of_each(able, lambda _, client: client.look_up(lookup, memory))
            found = {shard: answer for shard, answer in looked_up.items() if answer is not None}
            able = [one for one in able if one[0] not in found]
        if able:
            async with self._semaphore:
                seconds = scope.seconds_left(asyncio.get_running_loop().time())
                frames = _frames(request, able, seconds)
                asked = await _of_each(
                    able, lambda one, client: _answer_or_trouble(client.request(frames[one], memory))
                )
            for shard, one in asked.items():
                found[shard] = _named(one, shard) if isinstance(one, StrandlineError) else one
        trouble, answers = dict(line_up.trouble), dict[int, OneAnswer]()
        for shard, answer in sorted(found.items()):
            if isinstance(answer, str):
                trouble[shard] = answer
            elif isinstance(answer, kind):
                answers[shard] = answer
            else:
                trouble[shard] = f"shard {shard} answered something else than was asked"
        if answers and not trouble:
            return answers, line_up.unserved
        reasons = [trouble[shard] for shard in sorted(trouble)]
        if not answers:
            raise QueryUnavailable(
                "; ".join(reasons) or "this node has no shards",
                remedy="Ask again in a while; the status page shows how the shards are",
            )
        return answers, (*(f"{reason}: the answer lacks its series" for reason in reasons), *line_up.unserved)


class _LineUp:
    """The shards of a node at one moment, in the order of their numbers: which to ask, and why others can't be.
    `unserved` is the warning about partitions that are not this node's, if there are any.
    """

    def __init__(
        self, clients: Mapping[int, ShardClient], statuses: Sequence[ShardProcessStatus], partitions: int | None
    ) -> None:
        self.clients, self.statuses, self.partitions = clients, statuses, partitions
        self.able: list[tuple[int, ShardClient]] = []
        self.trouble: dict[int, str] = {}
        by_shard = {one.shard: one for one in statuses}
        for shard in sorted({*clients, *by_shard}):
            reason = _unable(shard, clients, by_shard)
            if reason is None:
                self.able.append((shard, clients[shard]))
            else:
                self.trouble[shard] = reason
        self.missing = unserved(partitions, {*clients, *by_shard})
        told = f"{unserved_in_words(self.missing, partitions)}: the answer lacks the series there"
        self.unserved: tuple[str, ...] = (told,) if self.missing else ()


async def _of_each(
    able: Sequence[tuple[int, ShardClient]], request: Callable[[int, ShardClient], Coroutine[object, object, Result]]
) -> dict[int, Result]:
    """What comes of each shard. An error is raised at once, and the other shards are told to stop."""
    if len(able) == 1:
        ((shard, client),) = able
        return {shard: await request(shard, client)}
    try:
        async with asyncio.TaskGroup() as group:
            tasks = {shard: group.create_task(request(shard, client)) for shard, client in able}
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return {shard: task.result() for shard, task in tasks.items()}


def _frames(request: RequestEach, able: Sequence[tuple[int, ShardClient]], seconds: float) -> dict[int, bytes]:
    """What each shard is sent."""
    if callable(request):
        return {shard: encode_joined(request_message(request(shard), seconds)) for shard, _ in able}
    return dict.fromkeys((shard for shard, _ in able), encode_joined(request_message(request, seconds)))


async def _answer_or_trouble(asked: Coroutine[object, object, Answer]) -> Answer | StrandlineError:
    """The answer, or why the shard has none. What says something about the query itself is raised."""
    try:
        return await asked
    except (QueryUnavailable, QueryFailed) as error:
        return error


def _unable(shard: int, clients: Mapping[int, ShardClient], statuses: Mapping[int, ShardProcessStatus]) -> str | None:
    """Why a shard need not be asked; None if it may be able to answer."""
    status = statuses.get(shard)
    if status is not None and status.state not in (ProcessState.STARTING, ProcessState.RUNNING):
        why = f" ({status.reason})" if status.reason else ""
        if status.state is ProcessState.WAITING:
            pause = f" in {status.starts_in_s:.0f} s" if status.starts_in_s is not None else ""
            return f"shard {shard} has ended{why} and is started again{pause}"
        return f"shard {shard} is {status.state.value}{why}"
    return None if shard in clients else f"shard {shard} has not started yet"


def _named(error: StrandlineError, shard: int) -> str:
    return error.message if f"shard {shard}" in error.message else f"shard {shard}: {error.message}"
