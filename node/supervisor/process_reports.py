"""How the front and the worker report to the supervisor: a service behind a `LinkServer`, in the child's process."""

from strandline.node.query.answers import Answer
from strandline.node.query.queries import Cancellation, QueryUnavailable
from strandline.node.query.shard_requests import ShardRequest
from strandline.node.shard.report import ProcessFigures
from strandline.node.supervisor.child_report import ProcessReport
from strandline.node.supervisor.liveness import Stage


class ProcessReports:
    """A `LinkService` that only reports. One thread calls `turned` and sets `stage`; any may ask for a report."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self._turns = stage, 0

    def turned(self) -> None:
        """The loop that is watched has turned once more."""
        self._turns += 1

    def report(self) -> bytes:
        return ProcessReport(ProcessFigures.now(), self.stage, self._turns).to_json()

    def answer(self, _request: ShardRequest, _cancellation: Cancellation) -> Answer:
        raise QueryUnavailable("this process is no shard")
