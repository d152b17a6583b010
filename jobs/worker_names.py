"""The names of workers whose parts run on Spark's executors, and when such a worker is dead with all of its tasks.

A dead process no longer uses Kafka. The executors of a dead driver may, until the last grants of the driver expire:
only then may others take its parts.
"""

from collections.abc import Callable
from typing import Final

from strandline.clock import Clock
from strandline.jobs.running import GRANT_S

_SPARK_SUFFIX: Final = "/spark"
# The last grant may expire a little later by the executor's clock.
_GRANTS_EXPIRED_S: Final = GRANT_S + 2.0


def spark_worker_name(worker: str) -> str:
    """The name of a worker whose parts run on Spark's executors."""
    return worker + _SPARK_SUFFIX


class GoneWorkers:
    """Detects workers that are certainly dead, with their tasks. For one thread."""

    def __init__(self, is_process_gone: Callable[[str], bool], clock: Clock) -> None:
        self._is_process_gone, self._clock = is_process_gone, clock
        self._gone_since: dict[str, float] = {}

    def is_gone(self, worker: str) -> bool:
        """Whether nothing more can land from a worker."""
        if not worker.endswith(_SPARK_SUFFIX):
            return self._is_process_gone(worker)
        if not self._is_process_gone(worker.removesuffix(_SPARK_SUFFIX)):
            return False
        now = self._clock.monotonic()
        return now - self._gone_since.setdefault(worker, now) >= _GRANTS_EXPIRED_S
