"""Look-ups at the quick side: the event loop asks the shards itself, and keeps some lists.

Two changes of threads, and aiohttp's work for a request, take longer than most look-ups do.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from strandline.node.http.api.kept_lists import KeptLists, ListKey
from strandline.node.http.api.lookups import READERS, answer_of
from strandline.node.http.api.plain_questions import plain_question
from strandline.node.http.api.sending import Answer, Keep, whole_of
from strandline.node.http.parameters import parameters_of_whole
from strandline.node.http.quick_handlers import QuickHandler
from strandline.node.http.whole import Whole
from strandline.node.http.whole_requests import WholeRequest
from strandline.node.http.working import Workers
from strandline.node.query.asks import SERIES
from strandline.node.query.edition import Edition
from strandline.node.query.queries import Cancellation
from strandline.node.query.quick import Coming, Question, QuickQueries
from strandline.time_range import TimeRange

# In bytes of the question: what takes longer to read is a thread's work. Regular expressions take the longest.
_SHORT, _SHORT_WITH_EXPRESSION = 2 << 10, 256
# So many questions may be under way like this. They take no thread, so nothing else bounds what shards work on.
_MOST = 8
# How often it is looked whether somebody's time is over.
_LOOK_S = 0.05


class QuickLookups:
    """Answers look-ups that are short to read, while few such are under way. It belongs to one event loop."""

    def __init__(
        self,
        queries: QuickQueries,
        workers: Workers,
        max_names: int,
        *,
        is_open: bool = True,
        most: int = _MOST,
    ) -> None:
        """An answer has `max_names` results at the most. While it is not open threads ask: an event loop must not wait
        until kernels are loaded.
        """
        self.max_names, self.is_open = max_names, is_open
        self._queries, self._workers, self._most = queries, workers, most
        self._kept = KeptLists()
        self._under_way: set[QuickLookup] = set()
        self._looks = False

    def handler(self, kind: str) -> QuickHandler:
        """For look-ups of a kind."""
        return partial(self._begin, kind)

    def _begin(self, kind: str, request: WholeRequest, name: str) -> "Whole | QuickLookup | None":
        if not self.is_open:
            return None
        question: Question | None = None
        timeout_s = None
        if request.method == "GET" and not request.body and len(request.query) <= _SHORT:
            question = plain_question(kind, name, request.query, self.max_names)
        if question is None:
            if not suits(request):
                return None
            parameters = parameters_of_whole(request)
            timeout_s = parameters.timeout_s()
            question = Question.of(READERS[kind](parameters, name, self.max_names))
        gzip, keep = request.headers.accept_gzip, None
        if kind != SERIES and not question.fields["selectors"] and (edition := self._queries.edition()) is not None:
            key = ListKey(question.label, question.limit, gzip)
            if edition.holds_for(_within(question)) and (whole := self._kept.get(edition, key)) is not None:
                self._queries.kept(question)
                return whole
            # Of before it is asked: what comes meanwhile is of this edition, or newer.
            keep = self._keeping(edition, key)
        if len(self._under_way) >= self._most:
            return None
        lookup = QuickLookup(self._queries, question, timeout_s, gzip=gzip, keep=keep, over=self._under_way.discard)
        coming = self._queries.begin_at_once(question, self._workers.cancellation(timeout_s), lookup.came)
        if coming is None:
            return None
        lookup.coming = coming
        self._under_way.add(lookup)
        if not self._looks:
            self._look_later()
        return lookup

    def _keeping(self, edition: Edition, key: ListKey) -> Keep:
        return lambda whole: self._kept.keep(edition, key, whole)

    def _look_later(self) -> None:
        self._looks = True
        asyncio.get_running_loop().call_later(_LOOK_S, self._look_at_times)

    def _look_at_times(self) -> None:
        # One timer for all of them: each one's own would be a good part of what a look-up costs.
        self._looks = False
        for lookup in tuple(self._under_way):
            lookup.coming.look_at_time()
        if self._under_way:
            self._look_later()


class QuickLookup:
    """A look-up that is `UnderWay`."""

    __slots__ = ("_failure", "_gzip", "_here", "_over", "_queries", "_question", "coming", "keep", "timeout_s")

    coming: Coming

    def __init__(
        self,
        queries: QuickQueries,
        question: Question,
        timeout_s: float | None,
        *,
        gzip: bool,
        keep: Keep | None,
        over: Callable[["QuickLookup"], None],
    ) -> None:
        """`over` is told once it is waited for no longer."""
        self.timeout_s, self.keep = timeout_s, keep
        self._queries, self._question, self._gzip, self._over = queries, question, gzip, over
        self._here: Callable[[], None] | None = None
        self._failure: Exception | None = None

    def came(self) -> None:
        """The answer is here, or begins to be, or its time is over."""
        self._over(self)
        if self._here is not None:
            self._here()

    def when_here(self, call: Callable[[], None]) -> None:
        self._here = call

    def take(self) -> Whole | None:
        if not self.coming.is_short():
            return None
        try:
            answer = answer_of(self._queries.fetch(self._question, self.coming), self._question.limit)
            whole = whole_of(answer, gzip=self._gzip)
        except Exception as error:  # noqa: BLE001 - it is raised again where errors are answered
            self._failure = error
            return None
        if self.keep is not None and answer.may_be_kept:
            self.keep(whole)
        return whole

    def fetched(self, cancellation: Cancellation) -> Answer:
        """The answer that was not taken. To be called from a thread: it may have to be waited for."""
        if self._failure is not None:
            raise self._failure
        cancellation.check()
        return answer_of(self._queries.fetch(self._question, self.coming), self._question.limit)

    def abandon(self) -> None:
        self._here = None
        self._over(self)
        self.coming.abandon()


def suits(request: WholeRequest) -> bool:
    """Whether a request is short to read."""
    has_expression = any(mark in request.query or mark.encode() in request.body for mark in ("~", "%7E", "%7e"))
    return len(request.query) + len(request.body) <= (_SHORT_WITH_EXPRESSION if has_expression else _SHORT)


def _within(question: Question) -> TimeRange | None:
    told = question.fields["within"]
    return TimeRange(*told) if told is not None else None
