"""The names of workers whose parts run in other processes, and when such a worker is gone with all of its tasks.

A process that is dead uses Kafka no more. The executors of a dead driver may, until the grants are over that it gave
them: only then may others take its parts as if nobody had them.
"""

from collections.abc import Callable
from typing import Final

from strandline.clock import Clock
from strandline.jobs.running import GRANT_S

_SPARK_SUFFIX: Final = "/spark"
# The last grant is over a little later on the executor's clock.
_GRANTS_EXPIRED_S: Final = GRANT_S + 2.0


def spark_worker_name(worker: str) -> str:
    """The name of a worker whose parts run on executors."""
    return worker + _SPARK_SUFFIX


class GoneWorkers:
    """Whether workers are gone for sure, tasks included. For one thread."""

    def __init__(self, is_process_gone: Callable[[str], bool], clock: Clock) -> None:
        self._is_process_gone, self._clock = is_process_gone, clock
        self._gone_since: dict[str, float] = {}

    def is_gone(self, worker: str) -> bool:
        """Whether nothing lands any more by a worker."""
        if not worker.endswith(_SPARK_SUFFIX):
            return self._is_process_gone(worker)
        if not self._is_process_gone(worker.removesuffix(_SPARK_SUFFIX)):
            return False
        now = self._clock.monotonic()
        return now - self._gone_since.setdefault(worker, now) >= _GRANTS_EXPIRED_S
