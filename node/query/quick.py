"""Questions that the event loop asks itself. Two changes of threads take longer than most look-ups do."""

from typing import Protocol

from strandline.node.query.answers import SeriesAnswer, TermsAnswer
from strandline.node.query.asks import LabelNamesAsk, LabelValuesAsk, SeriesAsk
from strandline.node.query.edition import Edition
from strandline.node.query.queries import Cancellation

Lookup = SeriesAsk | LabelNamesAsk | LabelValuesAsk


class Coming(Protocol):
    """An answer on its way. It is either fetched or abandoned."""

    async def arrives(self) -> bool:
        """Wait until it begins to come, or its time is over. Whether all of it is here then, and short; if not, it is
        for a thread to fetch it.
        """
        ...

    def answer(self) -> SeriesAnswer | TermsAnswer:
        """The answer, under the rules of `NodeQueries`."""
        ...

    def abandon(self) -> None:
        """Give the question up."""
        ...


class QuickQueries(Protocol):
    """What an event loop may ask. Nothing here waits."""

    def edition(self) -> Edition | None:
        """Of the lists that all shards would give now; None if they should not be kept."""
        ...

    def kept(self, ask: Lookup) -> None:
        """A question was answered with a list that was kept."""
        ...

    def begin_at_once(self, ask: Lookup, cancellation: Cancellation) -> Coming | None:
        """Ask a short question; None if that could not be done without waiting, so that a thread has to."""
        ...
