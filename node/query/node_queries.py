"""Questions to all shards of a node at once, and their answers as one."""

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
from strandline.node.query.merging import (
    merge_buckets,
    merge_cardinality,
    merge_samples_answers,
    merge_series,
    merge_terms,
)
from strandline.node.query.messages import QueryFailed
from strandline.node.query.queries import Cancellation, QueryUnavailable
from strandline.node.query.sampling_limits import check_samples, check_series
from strandline.node.supervisor.standing import NodeStanding, ProcessState, ShardStanding

OneAnswer = TypeVar("OneAnswer", bound=Answer)
# A top over several shards is made of longer tops of each: what is in no shard's own is missed.
_LONGER_TOPS = 10


class Pending(Protocol):
    """A question that a shard works on."""

    def answer(self) -> Answer: ...

    def abandon(self) -> None: ...


class ShardClient(Protocol):
    """Whoever asks one shard: a `LinkClient`."""

    def begin(self, ask: Ask, cancellation: Cancellation) -> Pending: ...


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

    def _ask(
        self, ask: Ask, kind: type[OneAnswer], cancellation: Cancellation
    ) -> tuple[list[OneAnswer], tuple[str, ...]]:
        """The answers of the shards that can answer, one at least, and warnings about the others.

        An error that speaks of the question is raised at once, and the other shards are told to give it up.
        """
        cancellation.check()
        clients, standings = self._clients(), {one.shard: one for one in self._standing.shards()}
        trouble: dict[int, str] = {}
        pending: dict[int, Pending] = {}
        answers: list[OneAnswer] = []
        try:
            for shard in sorted({*clients, *standings}):
                try:
                    if (reason := _unable(shard, clients, standings)) is not None:
                        trouble[shard] = reason
                    else:
                        pending[shard] = clients[shard].begin(ask, cancellation)
                except QueryUnavailable as error:
                    trouble[shard] = error.message
            for shard in sorted(pending):
                try:
                    answer = pending.pop(shard).answer()
                except (QueryUnavailable, QueryFailed) as error:
                    trouble[shard] = _named(error, shard)
                    continue
                if not isinstance(answer, kind):
                    trouble[shard] = f"shard {shard} answered something else than was asked"
                    continue
                answers.append(answer)
        finally:
            for one in pending.values():
                one.abandon()
        reasons = [trouble[shard] for shard in sorted(trouble)]
        if not answers:
            raise QueryUnavailable(
                "; ".join(reasons) or "this node has no shards",
                remedy="Ask again in a while; the status page shows how the shards are",
            )
        return answers, tuple(f"{reason}: the answer lacks its series" for reason in reasons)


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
