"""What a shard's process serves over the link during its whole life."""

import threading
from dataclasses import replace
from pathlib import Path

from strandline.clock import Clock
from strandline.node.query.answers import Answer
from strandline.node.query.index_version import IndexVersionPage, version_path
from strandline.node.query.lookup_frames import lookups_path
from strandline.node.query.lookup_gate import LookupGate
from strandline.node.query.queries import Cancellation, QueryUnavailable
from strandline.node.query.result_cache import DEFAULT_BYTES
from strandline.node.query.shard_answers import ShardAnswers
from strandline.node.query.shard_requests import ShardRequest
from strandline.node.shard.report import ProcessFigures, ShardReport, report_of
from strandline.node.shard.running import RunningShard
from strandline.node.shard.status import Status


class ShardService:
    """A `LinkService` whose shard is set later. Until then, it reports that the process runs, and refuses requests."""

    def __init__(
        self, number: int, clock: Clock, socket: Path | None = None, *, result_cache: int = DEFAULT_BYTES
    ) -> None:
        """`socket` is the link's socket. Next to it are the socket of the lookup server and the file of the index
        version. `result_cache` is the size of the result cache in bytes.
        """
        self._result_cache = result_cache
        self._number, self._clock = number, clock
        self._lookups = LookupGate(lookups_path(socket) if socket is not None else None)
        self._running: RunningShard | None = None
        self._answers: ShardAnswers | None = None
        self._page = IndexVersionPage(version_path(socket) if socket is not None else None)
        self._publishing = threading.Lock()

    def begin(self, running: RunningShard) -> None:
        """Serve this shard from now on."""
        self._answers, self._running = ShardAnswers(running, result_cache=self._result_cache), running
        running.after_step = self._publish

    def close(self) -> None:
        """Stop background reads, lookups and publishing."""
        if self._answers is not None:
            self._answers.close()
        with self._publishing:
            self._lookups.close()
            self._page.close()

    def _publish(self) -> None:
        with self._publishing:
            if self._answers is not None:
                self._answers.publish(self._page, self._lookups)

    def answer(self, request: ShardRequest, cancellation: Cancellation) -> Answer:
        answers = self._answers
        if answers is None:
            raise QueryUnavailable(
                f"shard {self._number} is starting: it can't answer",
                remedy="Try again later; the status page shows the progress",
            )
        return answers.answer(request, cancellation)

    def report(self) -> bytes:
        running, answers = self._running, self._answers
        if running is None or answers is None:
            return ShardReport(Status(), ProcessFigures.now(), reported_at=self._clock.now_ms()).to_json()
        return replace(report_of(running), result_cache=answers.results.figures()).to_json()
