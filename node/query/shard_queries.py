"""Queries to all shards of a node at once, and their answers as one."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from strandline.errors import StrandlineError
from strandline.node.query.answer_memory import MemoryLease
from strandline.node.query.answers import (
    Answer,
    BucketsAnswer,
    CardinalityAnswer,
    SamplesAnswer,
    SeriesAnswer,
    TermsAnswer,
)
from strandline.node.query.asks import (
    Ask,
    BucketsAsk,
    CardinalityAsk,
    LabelNamesAsk,
    LabelValuesAsk,
    SamplesAsk,
    SeriesAsk,
)
from strandline.node.query.frames import encode_joined
from strandline.node.query.index_version import IndexVersion, joined
from strandline.node.query.link_socket import SHORT
from strandline.node.query.lookup_frames import lookup_frame
from strandline.node.query.merging import (
    merge_buckets,
    merge_cardinality,
    merge_samples_answers,
    merge_series,
    merge_terms,
)
from strandline.node.query.messages import QueryFailed, ask_message
from strandline.node.query.queries import QueryScope, QueryUnavailable, timed_out
from strandline.node.query.sampling_limits import check_samples, check_series
from strandline.node.supervisor.standing import NodeStanding, ProcessState, ShardStanding
from strandline.node.workers import Workers

OneAnswer = TypeVar("OneAnswer", bound=Answer)
Result = TypeVar("Result")
# A top over several shards is made of longer tops of each: what is in no shard's own is missed.
_LONGER_TOPS = 10


class ShardClient(Protocol):
    """The way to one shard: a `ShardLink`."""

    async def look_up(self, frame: bytes, memory: MemoryLease) -> Answer | None: ...

    async def ask(self, frame: bytes, memory: MemoryLease) -> Answer: ...

    def index_version(self) -> IndexVersion | None: ...


class ShardQueries:
    """`NodeQueries` over the links to the shards' processes."""

    def __init__(
        self,
        clients: Callable[[], Mapping[int, ShardClient]],
        standing: NodeStanding,
        workers: Workers,
        *,
        concurrency: int,
    ) -> None:
        """`clients` are the links there are now, by the shards' numbers; a shard without one can't answer. At most
        `concurrency` queries are worked on at a time. `workers` merge answers that are long.
        """
        self._clients, self._standing, self._workers = clients, standing, workers
        self._turns = asyncio.Semaphore(concurrency)
        self._known = _LineUp({}, ())

    def reload(self, *, concurrency: int) -> None:
        """Queries from now on are held to this limit; those before are not counted."""
        self._turns = asyncio.Semaphore(concurrency)

    async def series(self, ask: SeriesAsk, scope: QueryScope) -> SeriesAnswer:
        return await self._merged(ask, SeriesAnswer, scope, lambda answers: merge_series(answers, ask.limit))

    async def label_names(self, ask: LabelNamesAsk, scope: QueryScope) -> TermsAnswer:
        return await self._merged(ask, TermsAnswer, scope, lambda answers: merge_terms(answers, ask.limit))

    async def label_values(self, ask: LabelValuesAsk, scope: QueryScope) -> TermsAnswer:
        return await self._merged(ask, TermsAnswer, scope, lambda answers: merge_terms(answers, ask.limit))

    async def samples(self, ask: SamplesAsk, scope: QueryScope) -> SamplesAnswer:
        def merge(answers: Sequence[SamplesAnswer]) -> SamplesAnswer:
            # One series may lie in several shards, but not all of them: what is far too much is not merged first.
            check_series(max(len(one.keys) for one in answers), ask.max_series)
            check_samples(max(len(one.time) for one in answers), ask.max_samples)
            return merge_samples_answers(answers, max_series=ask.max_series, max_samples=ask.max_samples)

        return await self._merged(ask, SamplesAnswer, scope, merge)

    async def cardinality(self, ask: CardinalityAsk, scope: QueryScope) -> CardinalityAnswer:
        longer = ask if len(self._clients()) < 2 else replace(ask, limit=_LONGER_TOPS * ask.limit)
        return await self._merged(longer, CardinalityAnswer, scope, lambda found: merge_cardinality(found, ask.limit))

    async def buckets(self, ask: BucketsAsk, scope: QueryScope) -> BucketsAnswer:
        return await self._merged(ask, BucketsAnswer, scope, lambda answers: merge_buckets(answers, ask.limit))

    def index_version(self) -> IndexVersion | None:
        line_up = self._line_up()
        if line_up.trouble or not line_up.able:
            return None
        # All of them are looked at, so that the page of a process that has ended is let go of.
        versions = [client.index_version() for _, client in line_up.able]
        known = [version for version in versions if version is not None]
        return joined(known) if len(known) == len(versions) else None

    def kept(self, ask: LabelNamesAsk | LabelValuesAsk) -> None:
        """Nothing is counted here."""

    def _line_up(self) -> "_LineUp":
        """Which shards can be asked now. It changes far less often than it is needed."""
        clients, standings = self._clients(), self._standing.shards()
        known = self._known
        if known.clients is not clients or known.standings is not standings:
            self._known = known = _LineUp(clients, standings)
        return known

    async def _merged(
        self,
        ask: Ask,
        kind: type[OneAnswer],
        scope: QueryScope,
        merge: Callable[[Sequence[OneAnswer]], OneAnswer],
    ) -> OneAnswer:
        memory = scope.memory
        try:
            async with asyncio.timeout(scope.timeout_s):
                answers, warnings = await self._asked(ask, kind, scope)
                size = memory.held
                if len(answers) == 1 or size <= SHORT:
                    merged = merge(answers)
                else:
                    # While they are merged, there are the answers and what becomes of them.
                    memory.grow(size)
                    merged = await self._workers.run(lambda: merge(answers))
                    memory.shrink(size)
        except TimeoutError:
            raise timed_out(scope.timeout_s) from None
        return replace(merged, warnings=merged.warnings + warnings) if warnings else merged

    async def _asked(
        self, ask: Ask, kind: type[OneAnswer], scope: QueryScope
    ) -> tuple[list[OneAnswer], tuple[str, ...]]:
        """The answers of the shards that can answer, one at least, and warnings about the others."""
        line_up, memory = self._line_up(), scope.memory
        able, found, lookup = line_up.able, dict[int, Answer | str](), lookup_frame(ask)
        if lookup is not None:
            # It is so short that it does not wait behind the others.
            looked_up = await _of_each(able, lambda client: client.look_up(lookup, memory))
            found = {shard: answer for shard, answer in looked_up.items() if answer is not None}
            able = [one for one in able if one[0] not in found]
        if able:
            async with self._turns:
                frame = encode_joined(ask_message(ask, scope.timeout_s))
                asked = await _of_each(able, lambda client: _answer_or_trouble(client.ask(frame, memory)))
            for shard, one in asked.items():
                found[shard] = _named(one, shard) if isinstance(one, StrandlineError) else one
        trouble, answers = dict(line_up.trouble), list[OneAnswer]()
        for shard, answer in sorted(found.items()):
            if isinstance(answer, str):
                trouble[shard] = answer
            elif isinstance(answer, kind):
                answers.append(answer)
            else:
                trouble[shard] = f"shard {shard} answered something else than was asked"
        if answers and not trouble:
            return answers, ()
        reasons = [trouble[shard] for shard in sorted(trouble)]
        if not answers:
            raise QueryUnavailable(
                "; ".join(reasons) or "this node has no shards",
                remedy="Ask again in a while; the status page shows how the shards are",
            )
        return answers, tuple(f"{reason}: the answer lacks its series" for reason in reasons)


class _LineUp:
    """The shards of a node at one moment, in the order of their numbers: which to ask, and why others can't be."""

    def __init__(self, clients: Mapping[int, ShardClient], standings: Sequence[ShardStanding]) -> None:
        self.clients, self.standings = clients, standings
        self.able: list[tuple[int, ShardClient]] = []
        self.trouble: dict[int, str] = {}
        by_shard = {one.shard: one for one in standings}
        for shard in sorted({*clients, *by_shard}):
            reason = _unable(shard, clients, by_shard)
            if reason is None:
                self.able.append((shard, clients[shard]))
            else:
                self.trouble[shard] = reason


async def _of_each(
    able: Sequence[tuple[int, ShardClient]], ask: Callable[[ShardClient], Coroutine[object, object, Result]]
) -> dict[int, Result]:
    """What comes of each shard. An error is raised at once, and the other shards are told to stop."""
    if len(able) == 1:
        ((shard, client),) = able
        return {shard: await ask(client)}
    try:
        async with asyncio.TaskGroup() as group:
            tasks = {shard: group.create_task(ask(client)) for shard, client in able}
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return {shard: task.result() for shard, task in tasks.items()}


async def _answer_or_trouble(asked: Coroutine[object, object, Answer]) -> Answer | StrandlineError:
    """The answer, or why the shard has none. What says something about the query itself is raised."""
    try:
        return await asked
    except (QueryUnavailable, QueryFailed) as error:
        return error


def _unable(shard: int, clients: Mapping[int, ShardClient], standings: Mapping[int, ShardStanding]) -> str | None:
    """Why a shard need not be asked; None if it may be able to answer."""
    standing = standings.get(shard)
    if standing is not None and standing.state not in (ProcessState.STARTING, ProcessState.RUNNING):
        why = f" ({standing.reason})" if standing.reason else ""
        if standing.state is ProcessState.WAITING:
            pause = f" in {standing.starts_in_s:.0f} s" if standing.starts_in_s is not None else ""
            return f"shard {shard} has ended{why} and is started again{pause}"
        return f"shard {shard} is {standing.state.value}{why}"
    return None if shard in clients else f"shard {shard} has not started yet"


def _named(error: StrandlineError, shard: int) -> str:
    return error.message if f"shard {shard}" in error.message else f"shard {shard}: {error.message}"
