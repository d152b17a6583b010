"""Look-ups of single series, or of a handful: a few bytes that are passed on to the shards, and JSON that comes back.

What is on the way from a client to a shard and back takes as long as the look-up itself, and each call of Python is a
good part of that. So there are few here. Whatever is not as simple as that (a selector with an expression, a shard that
can't answer, many results) is left to the ordinary way, from its beginning.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import structlog

from strandline.clock import Clock
from strandline.node.http.api.kernels.lookup_requests import ROOM, read_lookup
from strandline.node.http.api.sending import whole_list
from strandline.node.http.express import ExpressClient
from strandline.node.http.turns import Turn
from strandline.node.query.asks import LABEL_NAMES, LABEL_VALUES, SERIES
from strandline.node.query.few_json import merged_few
from strandline.node.query.loop_links import Expected, LoopLink, LoopLinks
from strandline.node.query.plain_lookups import DECLINED, KINDS, FewJson, answer_in

log = structlog.get_logger(__name__)

# In bytes, of a request with its header fields.
_LONGEST = 4 << 10
# What the parameter's name begins with.
_SELECTOR = b"match"
# So many may be under way like this, and each so long: then something is amiss, and others know what to do about it.
_MOST = 16
_PATIENCE_S = 0.2
_LOOK_S = 0.05
# For so long, or twice that if there are several shards, the event loop waits for nothing but an answer. A shard takes
# a tenth of it to look a series up. If one has taken longer, so many look-ups are not waited for like this, and twice
# as many each time that it happens again.
_LINGER_MS = 1
_FEWEST_PASSED, _MOST_PASSED = 4, 256
_HANDLERS = {
    SERIES: "/api/v1/series",
    LABEL_NAMES: "/api/v1/labels",
    LABEL_VALUES: "/api/v1/label/{name}/values",
}


class Asks(Protocol):
    """Who knows the shards: `ShardQueries`."""

    def lookup_links(self) -> Sequence[LoopLinks] | None: ...


class LookupCounts(Protocol):
    """Who counts look-ups: `FrontFigures`."""

    def began(self) -> None: ...

    def over(self) -> None: ...

    def looked_up(self, handler: str, ask: str, seconds: float, series: int) -> None:
        """One that had begun was answered."""
        ...


class ExpressLookups:
    """Answers look-ups while few are under way. It belongs to one event loop."""

    def __init__(
        self, queries: Asks, counts: LookupCounts, clock: Clock, max_names: int, *, is_open: bool = True
    ) -> None:
        """An answer has `max_names` results at the most. Until it is open all goes the ordinary way: an event loop must
        not wait until a kernel is loaded.
        """
        self.max_names, self.is_open = max_names, is_open
        self.counts, self.clock = counts, clock
        self._queries = queries
        self._under_way: set[ExpressLookup] = set()
        self._looks = False
        self._last_client = 0
        self._to_pass, self._pass_next = 0, _FEWEST_PASSED
        self._request, self._question = np.empty(_LONGEST, dtype=np.uint8), np.empty(ROOM * _LONGEST, dtype=np.uint8)
        self._read_from, self._written = self._request.data, self._question.data

    def begin(self, data: bytes, client: ExpressClient) -> "ExpressLookup | None":
        length = len(data)
        # The first is not needed, but spares all other requests what follows.
        if _SELECTOR not in data or not self.is_open or length > _LONGEST or len(self._under_way) >= _MOST:
            return None
        self._read_from[:length] = data
        line_end, question_end, kind, limit = read_lookup(self._request, length, self.max_names, self._question)
        if not line_end or (headers := client.cleared_fields(data, line_end)) is None:
            return None
        links = self._queries.lookup_links()
        if links is None:
            return None
        lookup = ExpressLookup(self, data, client, KINDS[kind], limit)
        lookup.gzip = headers.accept_gzip
        if not lookup.ask(links, self._written[:question_end]):
            return None
        self.counts.began()
        self._under_way.add(lookup)
        return lookup

    def is_alone(self, client: ExpressClient) -> bool:
        """Whether a client that has just asked is the only one that does: it also asked the last time, and nothing else
        is under way. While several ask, the loop has better things to do than to wait for one answer.
        """
        # By its address. If another one has the same later, that is waited for once too often.
        last, self._last_client = self._last_client, id(client)
        if self._to_pass:
            self._to_pass -= 1
            return False
        return last == self._last_client and len(self._under_way) == 1

    def lingered(self, *, in_vain: bool) -> None:
        """A look-up was waited for in place."""
        if in_vain:
            self._to_pass, self._pass_next = self._pass_next, min(2 * self._pass_next, _MOST_PASSED)
        else:
            self._pass_next = _FEWEST_PASSED

    def watch(self) -> None:
        """See to it that what is under way is not waited for too long."""
        if not self._looks:
            self._look_later()

    def over(self, lookup: "ExpressLookup") -> None:
        """It is no longer under way."""
        self._under_way.discard(lookup)

    def _look_later(self) -> None:
        self._looks = True
        asyncio.get_running_loop().call_later(_LOOK_S, self._look_at_times)

    def _look_at_times(self) -> None:
        self._looks = False
        latest = self.clock.monotonic() - _PATIENCE_S
        for lookup in tuple(self._under_way):
            if lookup.began <= latest:
                lookup.give_up()
        if self._under_way:
            self._look_later()


class ExpressLookup(Turn):
    """A look-up that all shards were asked."""

    __slots__ = ("_asked", "_client", "_kind", "_limit", "_lookups", "_missing", "began", "gzip")

    def __init__(self, lookups: ExpressLookups, data: bytes, client: ExpressClient, kind: str, limit: int) -> None:
        self.data, self.behind = data, b""
        self.began, self.gzip = lookups.clock.monotonic(), False
        self._lookups, self._client, self._kind, self._limit = lookups, client, kind, limit
        # Each knows whom to tell. It is emptied when that is done: to find circles of a thousand look-ups takes as long
        # as one look-up, and somebody would wait for it.
        self._asked: list[Expected] = []
        self._missing = 0

    def ask(self, links: Sequence[LoopLinks], question: memoryview) -> bool:
        """Ask the shards; False if that can't be done at once."""
        # Of all first: one that does not answer look-ups now would have the others search in vain, each time.
        taken: list[LoopLink] = []
        for shard in links:
            link = shard.take()
            if link is None:
                _give_back(taken)
                return False
            taken.append(link)
        while taken:
            expected = Expected(self._one_came)
            if not taken.pop().ask(question, expected):
                _give_back(taken)
                self._abandon_asked()
                return False
            self._asked.append(expected)
        self._missing = len(self._asked)
        return True

    def linger(self) -> None:
        lookups = self._lookups
        if lookups.is_alone(self._client):
            came = self._came_at_once()
            lookups.lingered(in_vain=not came)
            if came:
                return
        lookups.watch()

    def _came_at_once(self) -> bool:
        """Wait in place: to go back to the loop, and to come here again, takes longer than a shard does."""
        latest = self._lookups.clock.monotonic() + _LINGER_MS / 1000
        # A copy: with the last one it is over.
        for expected in tuple(self._asked):
            if not expected.linger(_LINGER_MS) or self._lookups.clock.monotonic() > latest:
                break
        return not self._missing

    def abandon(self) -> None:
        self._abandon_asked()
        self._lookups.over(self)
        self._lookups.counts.over()

    def _one_came(self) -> None:
        self._missing -= 1
        if self._missing:
            return
        try:
            found = self._found()
        except Exception:
            # Whatever it is, the client gets an answer.
            log.exception("the answer of a look-up can't be used")
            found = None
        if found is None:
            self.give_up()
            return
        lookups = self._lookups
        lookups.over(self)
        self._asked.clear()
        seconds = lookups.clock.monotonic() - self.began
        self._client.express_answered(whole_list(found.text, gzip=self.gzip), seconds)
        lookups.counts.looked_up(
            _HANDLERS[self._kind], self._kind, seconds, found.series if self._kind == SERIES else 0
        )

    def _found(self) -> FewJson | None:
        answers = []
        for expected in self._asked:
            frame = expected.frame
            if frame is None or frame == DECLINED:
                return None
            answers.append(answer_in(frame))
        return answers[0] if len(answers) == 1 else merged_few(self._kind, answers, self._limit)

    def give_up(self) -> None:
        """Leave it to the ordinary way, where whatever is amiss is told."""
        self.abandon()
        self._client.express_declined()

    def _abandon_asked(self) -> None:
        for expected in self._asked:
            expected.abandon()
        self._asked.clear()


def _give_back(links: Sequence[LoopLink]) -> None:
    for link in links:
        link.give_back()
