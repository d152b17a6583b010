"""Creates `ImportKind`s in the processes where parts run."""

from collections.abc import Callable
from dataclasses import dataclass, field

from strandline.clock import Clock
from strandline.jobs.completing import Completion
from strandline.jobs.importing.import_kind import ImportKind
from strandline.jobs.landing.kafka_part_log import kafka_part_log, shared_part_logs
from strandline.kafka.clients import ClientOptions


@dataclass(frozen=True, slots=True)
class ImportOpener:
    """A `KindOpener` for imports into a topic. Files that the client's options name, such as a certificate, must have
    the same path on every executor. `completion` creates what completes a job.
    """

    kafka: ClientOptions = field(repr=False)
    topic: str
    completion: Callable[[Clock], Completion] = Completion

    def __call__(self, clock: Clock) -> ImportKind:
        return ImportKind(
            lambda: kafka_part_log(self.kafka, self.topic, clock),
            clock,
            self.completion(clock),
            lambda: shared_part_logs(self.kafka, self.topic, clock),
        )
