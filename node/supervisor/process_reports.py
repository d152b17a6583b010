"""Reports of the front and the worker to the supervisor: a service behind a `LinkServer`, in the child's process."""

from strandline.node.query.answers import Answer
from strandline.node.query.queries import Cancellation, QueryUnavailable
from strandline.node.query.shard_requests import ShardRequest
from strandline.node.shard.report import ProcessFigures
from strandline.node.supervisor.child_report import ProcessReport
from strandline.node.supervisor.liveness import Stage


class ProcessReports:
    """A `LinkService` that only serves reports. One thread calls `iterated` and sets `stage`; any thread may call
    `report`.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage, self._iterations = stage, 0

    def iterated(self) -> None:
        """Count an iteration of the monitored loop."""
        self._iterations += 1

    def report(self) -> bytes:
        return ProcessReport(ProcessFigures.now(), self.stage, self._iterations).to_json()

    def answer(self, _request: ShardRequest, _cancellation: Cancellation) -> Answer:
        raise QueryUnavailable("this process is not a shard")
