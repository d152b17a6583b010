"""Questions that the event loop asks itself. Two changes of threads take longer than most look-ups do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from strandline.node.query.answers import SeriesAnswer, TermsAnswer
from strandline.node.query.asks import Lookup
from strandline.node.query.edition import Edition
from strandline.node.query.frames import Message, encode
from strandline.node.query.link_socket import decode_frame
from strandline.node.query.messages import ask_message, ask_of
from strandline.node.query.queries import Cancellation

LookupAnswer = SeriesAnswer | TermsAnswer


@dataclass(slots=True)
class Question:
    """A look-up as it goes over the link: the kind and the fields of its message, but for the time that it has. An
    event loop that only passes it on need not make anything else of it.
    """

    kind: str
    fields: dict[str, Any]
    limit: int
    """How many results are wanted at the most."""

    @classmethod
    def of(cls, ask: Lookup) -> "Question":
        """The question that asks for this."""
        message = ask_message(ask, 0.0)
        return cls(message.kind, dict(message.fields), ask.limit)

    @property
    def label(self) -> str | None:
        """The label whose values are wanted."""
        return self.fields.get("label")

    def ask(self) -> Lookup:
        """What it asks for, as whoever receives it reads it."""
        ask, _ = ask_of(decode_frame(self.frame(0.0)))
        if not isinstance(ask, Lookup):
            raise TypeError(f"{self.kind} is no look-up")
        return ask

    def frame(self, seconds: float) -> bytes:
        """As the link takes it, with so much time."""
        return b"".join(encode(Message(self.kind, self.fields | {"seconds": seconds})))


class Coming(Protocol):
    """An answer on its way to an event loop. It is either fetched or abandoned."""

    def is_short(self) -> bool:
        """Whether all of it is here, and not much; if not, it is for a thread to fetch it."""
        ...

    def answer(self) -> LookupAnswer:
        """The answer, under the rules of `NodeQueries`."""
        ...

    def look_at_time(self) -> None:
        """To be called now and then. If its time is over, it is not waited for any longer."""
        ...

    def abandon(self) -> None:
        """Give the question up. Called by the event loop; afterwards, or when it was fetched, it means nothing."""
        ...


class QuickQueries(Protocol):
    """What an event loop may ask. Nothing here waits, but for `fetch` of what is not short."""

    def edition(self) -> Edition | None:
        """Of the lists that all shards would give now; None if they should not be kept."""
        ...

    def kept(self, question: Question) -> None:
        """A question was answered with a list that was kept."""
        ...

    def begin_at_once(self, question: Question, cancellation: Cancellation, came: Callable[[], None]) -> Coming | None:
        """Ask a short question; None if that could not be done without waiting, so that a thread has to.

        The event loop calls `came` later, once: when the answer is here or too long to wait for it, or when its time is
        over. It is not called after `abandon`.
        """
        ...

    def fetch(self, question: Question, coming: Coming) -> LookupAnswer:
        """The answer, as `Coming.answer` gives it. Any thread may."""
        ...
