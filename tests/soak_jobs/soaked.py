"""What a soak needs of the job that it disturbs, and what is counted of it at the end."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from strandline.node.bulk.reports import JobStatus
from support.committed_topic import CommittedTopic


@dataclass(frozen=True)
class JobCount:
    """What a job has in its topic, by the numbers of rows. `wrong` are those that are not what they should be."""

    expected: int
    in_topic: int
    chunks: int
    lost: int
    doubled: int
    wrong: int
    counts_are_right: bool

    @classmethod
    def of(
        cls,
        expected: npt.NDArray[np.int64],
        found: npt.NDArray[np.int64],
        chunks: int,
        *,
        wrong: int,
        counts_are_right: bool,
    ) -> "JobCount":
        """Compare the rows that should be there with those that are."""
        times = np.bincount(found, minlength=int(expected.max(initial=0)) + 1)
        return cls(
            expected=len(expected),
            in_topic=len(found),
            chunks=chunks,
            lost=int(np.count_nonzero(times[expected] == 0)),
            doubled=int(np.maximum(times - 1, 0).sum()),
            wrong=wrong,
            counts_are_right=counts_are_right,
        )


class SoakedJob(Protocol):
    """The job of a soak."""

    @property
    def kind(self) -> str:
        """Its kind."""
        ...

    @property
    def unit(self) -> str:
        """What is counted."""
        ...

    @property
    def topic(self) -> CommittedTopic:
        """Where it lands."""
        ...

    @property
    def records(self) -> int:
        """How much it has to do, as `--rate` counts it."""
        ...

    def arguments(self, folder: Path) -> list[str]:
        """What `strandline job` is given to plan it."""
        ...

    def counted(self, status: JobStatus) -> JobCount:
        """What is in its topic, compared with what should be, and with what its parts have counted."""
        ...
