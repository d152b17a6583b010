"""Creates `ExportKind`s in the processes where parts run."""

from collections.abc import Callable
from dataclasses import dataclass

from strandline.clock import Clock
from strandline.jobs.completing import Completion
from strandline.jobs.exporting.export_kind import ExportKind
from strandline.store.protocol import Store


@dataclass(frozen=True, slots=True)
class ExportOpener:
    """A `KindOpener` for exports from the store that `open_store` opens. The job names its target and plan.
    `completion` creates what completes a job.
    """

    open_store: Callable[[], Store]
    completion: Callable[[Clock], Completion] = Completion

    def __call__(self, clock: Clock) -> ExportKind:
        return ExportKind(self.open_store, clock, completion=self.completion(clock))
