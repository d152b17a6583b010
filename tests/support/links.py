"""A link to a shard's process as a test has it answer."""

import threading
from collections.abc import Callable

from strandline.clock import SystemClock
from strandline.errors import StrandlineError
from strandline.node.query.answers import Answer, BucketsAnswer
from strandline.node.query.asks import Ask, BucketsAsk
from strandline.node.query.edition import EditionPage
from strandline.node.query.queries import Cancellation
from strandline.node.shard.report import ProcessFigures, ShardReport
from strandline.node.shard.status import Phase, Status

CLOCK = SystemClock()
ASK = BucketsAsk(None, 1)
WAIT_S = 20.0


class Service:
    """Answers as the test says."""

    def __init__(self) -> None:
        self.answers: Callable[[Ask, Cancellation], Answer] = lambda ask, _: BucketsAnswer((), (repr(ask),))
        self.ended: list[StrandlineError] = []
        self.begun, self.over = threading.Event(), threading.Event()
        self.page = EditionPage()

    def edition_file(self) -> int:
        return self.page.file

    def answer(self, ask: Ask, cancellation: Cancellation) -> Answer:
        return self.answers(ask, cancellation)

    def report(self) -> bytes:
        return ShardReport(Status(phase=Phase.REPLAYING, fraction=0.5), ProcessFigures.now()).to_json()

    def work_until_given_up(self, _ask: Ask, cancellation: Cancellation) -> Answer:
        """Steps of an answer that never ends by itself."""
        self.begun.set()
        try:
            while not self.over.wait(0.001):
                cancellation.check()
            raise AssertionError
        except StrandlineError as error:
            self.ended.append(error)
            raise
        finally:
            self.over.set()


def give(seconds: float = WAIT_S) -> Cancellation:
    return Cancellation(CLOCK, seconds)
