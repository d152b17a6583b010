"""Questions to all shards of a node at once, and their answers as one."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

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
    SERIES,
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
from strandline.node.query.loop_links import LoopLinks
from strandline.node.query.merging import (
    merge_buckets,
    merge_cardinality,
    merge_samples_answers,
    merge_series,
    merge_terms,
)
from strandline.node.query.messages import QueryFailed
from strandline.node.query.queries import Cancellation, QueryUnavailable
from strandline.node.query.quick import Coming, LookupAnswer, Question
from strandline.node.query.sampling_limits import check_samples, check_series
from strandline.node.supervisor.standing import NodeStanding, ProcessState, ShardStanding

OneAnswer = TypeVar("OneAnswer", bound=Answer)
Told = TypeVar("Told", bound=Answer)
# A top over several shards is made of longer tops of each: what is in no shard's own is missed.
_LONGER_TOPS = 10
# Held for a moment, to decide between whoever fetches an answer and whoever gives it up.
_FETCHING = threading.Lock()


class Pending(Protocol):
    """A question that a shard works on."""

    def answer(self) -> Answer: ...

    def abandon(self) -> None: ...


class PendingAtOnce(Pending, Protocol):
    """The same for an event loop: `AskedAtOnce`."""

    frame: bytes | None
    """The answer, once it is here and if it is short."""

    def detach(self) -> None: ...


OnePending = TypeVar("OnePending", bound=Pending)


class ShardClient(Protocol):
    """Whoever asks one shard: a `LinkClient`."""

    @property
    def lookups(self) -> LoopLinks: ...

    def begin(self, ask: Ask, cancellation: Cancellation) -> Pending: ...

    def begin_at_once(
        self, question: Question, cancellation: Cancellation, came: Callable[[], None]
    ) -> PendingAtOnce | None: ...

    def edition(self) -> Edition | None: ...


class ShardQueries:
    """`NodeQueries` over the links to the shards' processes."""

    def __init__(self, clients: Callable[[], Mapping[int, ShardClient]], standing: NodeStanding) -> None:
        """`clients` are the links there are now, by the shards' numbers; a shard without one can't answer."""
        self._clients, self._standing = clients, standing
        self._known = _LineUp({}, ())

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
        line_up = self._line_up()
        if line_up.trouble or not line_up.able:
            return None
        # All of them are looked at: so the page of a process that has ended is let go of.
        editions = [client.edition() for _, client in line_up.able]
        known = [edition for edition in editions if edition is not None]
        return joined(known) if len(known) == len(editions) else None

    def lookup_links(self) -> Sequence[LoopLinks] | None:
        """Where all shards answer look-ups beside their links; None if one has to be waited for, or can't answer."""
        known = self._known
        if known.clients is self._clients() and known.standings is self._standing.shards():
            return known.lookups
        return self._line_up().lookups

    def kept(self, question: Question) -> None:
        """Nothing is counted here."""

    def begin_at_once(
        self, question: Question, cancellation: Cancellation, came: Callable[[], None]
    ) -> "ComingFromShards | None":
        """Ask all shards as `QuickQueries` has it."""
        coming = ComingFromShards(self._line_up(), question, cancellation, came)
        return coming if coming.begin_all() else None

    def fetch(self, _question: Question, coming: Coming) -> LookupAnswer:
        return coming.answer()

    def _line_up(self) -> "_LineUp":
        """Who can be asked now. It changes far less often than somebody asks."""
        clients, standings = self._clients(), self._standing.shards()
        known = self._known
        if known.clients is not clients or known.standings is not standings:
            self._known = known = _LineUp(clients, standings)
        return known

    def _ask(
        self, ask: Ask, kind: type[OneAnswer], cancellation: Cancellation
    ) -> tuple[list[OneAnswer], tuple[str, ...]]:
        """The answers of the shards that can answer, one at least, and warnings about the others."""
        cancellation.check()
        asked: _Asked[Pending] = _Asked(self._line_up())
        asked.begin(lambda client: client.begin(ask, cancellation))
        return asked.answers(kind)


class _LineUp:
    """The shards of a node at one moment, in the order of their numbers: whom to ask, and why others need not be."""

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
        everyone = [client.lookups for _, client in self.able]
        self.lookups = everyone if everyone and not self.trouble else None


class _Asked(Generic[OnePending]):
    """A question to all shards: who works on it, and why others can't."""

    def __init__(self, line_up: _LineUp) -> None:
        self._able, self._trouble = line_up.able, dict(line_up.trouble)
        self.pending: dict[int, OnePending] = {}

    def begin(self, begin: Callable[[ShardClient], OnePending | None]) -> bool:
        """Ask each shard that may be able to answer. False if one could not be asked like this: then none is."""
        begun = False
        try:
            for shard, client in self._able:
                try:
                    pending = begin(client)
                except QueryUnavailable as error:
                    self._trouble[shard] = error.message
                    continue
                if pending is None:
                    return False
                self.pending[shard] = pending
            begun = True
        finally:
            if not begun:
                self.give_up()
        return True

    def answers(self, kind: type[OneAnswer]) -> tuple[list[OneAnswer], tuple[str, ...]]:
        """The answers of a kind, one at least, and warnings about shards that gave none.

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
            if self.pending:
                self.give_up()
        if answers and not self._trouble:
            return answers, ()
        reasons = [self._trouble[shard] for shard in sorted(self._trouble)]
        if not answers:
            raise QueryUnavailable(
                "; ".join(reasons) or "this node has no shards",
                remedy="Ask again in a while; the status page shows how the shards are",
            )
        return answers, tuple(f"{reason}: the answer lacks its series" for reason in reasons)

    def give_up(self) -> None:
        """Let the shards that work on it do so no longer."""
        for one in self.pending.values():
            one.abandon()
        self.pending.clear()


class ComingFromShards(_Asked[PendingAtOnce]):
    """`Coming` from all shards of a node."""

    def __init__(
        self, line_up: _LineUp, question: Question, cancellation: Cancellation, came: Callable[[], None]
    ) -> None:
        self._able, self._trouble, self.pending = line_up.able, line_up.trouble.copy(), {}
        self._question, self._cancellation, self._came = question, cancellation, came
        self._missing, self._is_fetched = 0, False

    def begin_all(self) -> bool:
        """Ask; False if that can't be done at once. If there is nobody to ask, a thread says so."""
        for shard, client in self._able:
            pending = client.begin_at_once(self._question, self._cancellation, self._one_came)
            if pending is None:
                self.give_up()
                return False
            self.pending[shard] = pending
        self._missing = len(self.pending)
        return self._missing > 0

    def is_short(self) -> bool:
        """Of many shards also short answers are much together."""
        size = 0
        for pending in self.pending.values():
            if pending.frame is None:
                return False
            size += len(pending.frame)
        return size <= SHORT

    def answer(self) -> LookupAnswer:
        with _FETCHING:
            self._cancellation.check()
            self._is_fetched = True
        if self._question.kind == SERIES:
            series, warnings = self.answers(SeriesAnswer)
            return _warned(merge_series(series, self._question.limit), warnings)
        terms, warnings = self.answers(TermsAnswer)
        return _warned(merge_terms(terms, self._question.limit), warnings)

    def look_at_time(self) -> None:
        if self._missing and not self._cancellation.seconds_left:
            self._missing = 0
            # Whoever fetches it says that it is too late.
            for pending in self.pending.values():
                pending.detach()
            self._tell()

    def abandon(self) -> None:
        self._missing, self._came = 0, _nobody
        self._cancellation.cancel()
        with _FETCHING:
            # A thread that is fetching it sees that it was cancelled. Its sockets must not be closed under it: their
            # numbers would be those of others in a moment.
            if not self._is_fetched:
                self.give_up()

    def _one_came(self) -> None:
        self._missing -= 1
        if not self._missing:
            self._tell()

    def _tell(self) -> None:
        # Once; and whoever is told knows of this, which makes a circle for as long as both do.
        came, self._came = self._came, _nobody
        came()


def _nobody() -> None:
    """Whoever waited does so no longer."""


def _warned(answer: Told, warnings: tuple[str, ...]) -> Told:
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
