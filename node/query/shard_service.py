"""What a shard's process serves over the link, from before there is a shard until it is gone."""

import threading
from pathlib import Path

from strandline.clock import Clock
from strandline.node.query.answers import Answer
from strandline.node.query.asks import Ask
from strandline.node.query.edition import EditionPage
from strandline.node.query.lookup_gate import LookupGate
from strandline.node.query.queries import Cancellation, QueryUnavailable
from strandline.node.query.shard_answers import ShardAnswers
from strandline.node.shard.report import ProcessFigures, ShardReport, report_of
from strandline.node.shard.running import RunningShard
from strandline.node.shard.status import Status


class ShardService:
    """A `LinkService` whose shard comes later: until then it tells that the process is there, and answers nothing."""

    def __init__(self, number: int, clock: Clock, lookups: Path | None = None) -> None:
        """`lookups` is where the JVM may answer look-ups of its own."""
        self._number, self._clock = number, clock
        self._lookups = LookupGate(lookups)
        self._running: RunningShard | None = None
        self._answers: ShardAnswers | None = None
        self._page, self._telling = EditionPage(), threading.Lock()

    def begin(self, running: RunningShard) -> None:
        """From now on tell of this shard."""
        self._answers, self._running = ShardAnswers(running), running
        running.after_step = self._tell

    def close(self) -> None:
        """End what reads in the background."""
        if self._answers is not None:
            self._answers.close()
        with self._telling:
            self._lookups.close()
            self._page.close()

    def edition_file(self) -> int:
        return self._page.file

    def _tell(self) -> None:
        with self._telling:
            if self._answers is not None:
                self._answers.tell(self._page, self._lookups)

    def answer(self, ask: Ask, cancellation: Cancellation) -> Answer:
        answers = self._answers
        if answers is None:
            raise QueryUnavailable(
                f"shard {self._number} is just starting: it can't answer",
                remedy="Ask again in a while; the status page shows how far it is",
            )
        return answers.answer(ask, cancellation)

    def report(self) -> bytes:
        running = self._running
        if running is None:
            return ShardReport(Status(), ProcessFigures.now(), told_at=self._clock.now_ms()).to_json()
        return report_of(running).to_json()
