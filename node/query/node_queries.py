"""Questions to all shards of a node at once, and their answers as one."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol, TypeVar

from strandline.errors import StrandlineError
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
from strandline.node.query.edition import Edition, joined
from strandline.node.query.link_socket import SHORT
from strandline.node.query.merging import (
    merge_buckets,
    merge_cardinality,
    merge_samples_answers,
    merge_series,
    merge_terms,
)
from strandline.node.query.messages import QueryFailed
from strandline.node.query.queries import Cancellation, QueryUnavailable
from strandline.node.query.quick import Lookup
from strandline.node.query.sampling_limits import check_samples, check_series
from strandline.node.supervisor.standing import NodeStanding, ProcessState, ShardStanding

OneAnswer = TypeVar("OneAnswer", bound=Answer)
# A top over several shards is made of longer tops of each: what is in no shard's own is missed.
_LONGER_TOPS = 10


class Pending(Protocol):
    """A question that a shard works on."""

    async def arrives(self) -> int | None: ...

    def answer(self) -> Answer: ...

    def abandon(self) -> None: ...


class ShardClient(Protocol):
    """Whoever asks one shard: a `LinkClient`."""

    def begin(self, ask: Ask, cancellation: Cancellation) -> Pending: ...

    def has_idle(self) -> bool: ...

    def begin_at_once(self, ask: Ask, cancellation: Cancellation) -> Pending | None: ...

    def edition(self) -> Edition | None: ...


class ShardQueries:
    """`NodeQueries` over the links to the shards' processes."""

    def __init__(self, clients: Callable[[], Mapping[int, ShardClient]], standing: NodeStanding) -> None:
        """`clients` are the links there are now, by the shards' numbers; a shard without one can't answer."""
        self._clients, self._standing = clients, standing

    def series(self, ask: SeriesAsk, cancellation: Cancellation) -> SeriesAnswer:
        answers, warnings = self._ask(ask, SeriesAnswer, cancellation)
        return _warned(merge_series(answers, ask.limit), warnings)

    def label_names(self, ask: LabelNamesAsk, cancellation: Cancellation) -> TermsAnswer:
        answers, warnings = self._ask(ask, TermsAnswer, cancellation)
        return _warned(merge_terms(answers, ask.limit), warnings)

    def label_values(self, ask: LabelValuesAsk, cancellation: Cancellation) -> TermsAnswer:
        answers, warnings = self._ask(ask, TermsAnswer, cancellation)
        return _warned(merge_terms(answers, ask.limit), warnings)

    def samples(self, ask: SamplesAsk, cancellation: Cancellation) -> SamplesAnswer:
        answers, warnings = self._ask(ask, SamplesAnswer, cancellation)
        # One series may lie in several shards, but not all of them: what is far too much is not put together first.
        check_series(max(len(one.keys) for one in answers), ask.max_series)
        check_samples(max(len(one.time) for one in answers), ask.max_samples)
        merged = merge_samples_answers(answers, max_series=ask.max_series, max_samples=ask.max_samples)
        return _warned(merged, warnings)

    def cardinality(self, ask: CardinalityAsk, cancellation: Cancellation) -> CardinalityAnswer:
        longer = ask if len(self._clients()) < 2 else replace(ask, limit=_LONGER_TOPS * ask.limit)
        answers, warnings = self._ask(longer, CardinalityAnswer, cancellation)
        return _warned(merge_cardinality(answers, ask.limit), warnings)

    def buckets(self, ask: BucketsAsk, cancellation: Cancellation) -> BucketsAnswer:
        answers, warnings = self._ask(ask, BucketsAnswer, cancellation)
        return _warned(merge_buckets(answers, ask.limit), warnings)

    def edition(self) -> Edition | None:
        """Of the lists that all shards would give now, as `QuickQueries` has it."""
        clients, standings = self._clients(), {one.shard: one for one in self._standing.shards()}
        shards = sorted({*clients, *standings})
        if not shards or any(_unable(shard, clients, standings) is not None for shard in shards):
            return None
        # All of them are looked at: so the page of a process that has ended is let go of.
        editions = [clients[shard].edition() for shard in shards]
        known = [edition for edition in editions if edition is not None]
        return joined(known) if len(known) == len(shards) else None

    def kept(self, ask: Lookup) -> None:
        """Nothing is counted here."""

    def begin_at_once(self, ask: Lookup, cancellation: Cancellation) -> "ComingFromShards | None":
        """Ask all shards as `QuickQueries` has it."""
        clients = self._clients()
        if not all(client.has_idle() for client in clients.values()):
            return None
        asked = _Asked(clients, self._standing)
        begun = asked.begin(lambda client: client.begin_at_once(ask, cancellation))
        return ComingFromShards(ask, asked, cancellation) if begun else None

    def _ask(
        self, ask: Ask, kind: type[OneAnswer], cancellation: Cancellation
    ) -> tuple[list[OneAnswer], tuple[str, ...]]:
        """The answers of the shards that can answer, one at least, and warnings about the others."""
        cancellation.check()
        asked = _Asked(self._clients(), self._standing)
        asked.begin(lambda client: client.begin(ask, cancellation))
        return asked.answers(kind)


class _Asked:
    """A question to all shards: who works on it, and why others can't."""

    def __init__(self, clients: Mapping[int, ShardClient], standing: NodeStanding) -> None:
        self._clients, self._standings = clients, {one.shard: one for one in standing.shards()}
        self.pending: dict[int, Pending] = {}
        self._trouble: dict[int, str] = {}

    def begin(self, begin: Callable[[ShardClient], Pending | None]) -> bool:
        """Ask each shard that may be able to answer. False if one could not be asked like this: then none is."""
        begun = False
        try:
            for shard in sorted({*self._clients, *self._standings}):
                try:
                    if (reason := _unable(shard, self._clients, self._standings)) is not None:
                        self._trouble[shard] = reason
                    elif (pending := begin(self._clients[shard])) is not None:
                        self.pending[shard] = pending
                    else:
                        return False
                except QueryUnavailable as error:
                    self._trouble[shard] = error.message
            begun = True
        finally:
            if not begun:
                self.abandon()
        return True

    def answers(self, kind: type[OneAnswer]) -> tuple[list[OneAnswer], tuple[str, ...]]:
        """The answers, one at least, and warnings about shards that gave none.

        An error that speaks of the question is raised at once, and the other shards are told to give it up.
        """
        answers: list[OneAnswer] = []
        try:
            for shard in sorted(self.pending):
                try:
                    answer = self.pending.pop(shard).answer()
                except (QueryUnavailable, QueryFailed) as error:
                    self._trouble[shard] = _named(error, shard)
                    continue
                if not isinstance(answer, kind):
                    self._trouble[shard] = f"shard {shard} answered something else than was asked"
                    continue
                answers.append(answer)
        finally:
            self.abandon()
        reasons = [self._trouble[shard] for shard in sorted(self._trouble)]
        if not answers:
            raise QueryUnavailable(
                "; ".join(reasons) or "this node has no shards",
                remedy="Ask again in a while; the status page shows how the shards are",
            )
        return answers, tuple(f"{reason}: the answer lacks its series" for reason in reasons)

    def abandon(self) -> None:
        """Let the shards that work on it give it up."""
        for one in self.pending.values():
            one.abandon()
        self.pending.clear()


class ComingFromShards:
    """`Coming` from all shards of a node."""

    def __init__(self, ask: Lookup, asked: _Asked, cancellation: Cancellation) -> None:
        self._ask, self._asked, self._cancellation = ask, asked, cancellation
        self._lock, self._is_fetched = threading.Lock(), False

    async def arrives(self) -> bool:
        sizes = [await pending.arrives() for pending in self._asked.pending.values()]
        # Of many shards also short answers are much together.
        return None not in sizes and sum(size for size in sizes if size is not None) <= SHORT

    def answer(self) -> SeriesAnswer | TermsAnswer:
        with self._lock:
            self._cancellation.check()
            self._is_fetched = True
        if isinstance(self._ask, SeriesAsk):
            series, warnings = self._asked.answers(SeriesAnswer)
            return _warned(merge_series(series, self._ask.limit), warnings)
        terms, warnings = self._asked.answers(TermsAnswer)
        return _warned(merge_terms(terms, self._ask.limit), warnings)

    def abandon(self) -> None:
        self._cancellation.cancel()
        with self._lock:
            # A thread that is fetching it sees that it was cancelled. Its sockets must not be closed under it: their
            # numbers would be those of others in a moment.
            if not self._is_fetched:
                self._asked.abandon()


def _warned(answer: OneAnswer, warnings: tuple[str, ...]) -> OneAnswer:
    return replace(answer, warnings=answer.warnings + warnings) if warnings else answer


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
