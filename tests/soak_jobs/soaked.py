"""The interface of the job in a soak test, and the counts at its end."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from strandline.node.bulk.reports import JobStatus
from support.committed_topic import CommittedTopic


@dataclass(frozen=True)
class JobCount:
    """The records of a job in its topic, by row number. `wrong` are records with unexpected content."""

    expected: int
    in_topic: int
    chunks: int
    lost: int
    duplicates: int
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
        """Compare the expected rows with those in the topic."""
        times = np.bincount(found, minlength=int(expected.max(initial=0)) + 1)
        return cls(
            expected=len(expected),
            in_topic=len(found),
            chunks=chunks,
            lost=int(np.count_nonzero(times[expected] == 0)),
            duplicates=int(np.maximum(times - 1, 0).sum()),
            wrong=wrong,
            counts_are_right=counts_are_right,
        )


class SoakedJob(Protocol):
    """The job of a soak test."""

    @property
    def kind(self) -> str:
        """The kind of the job."""
        ...

    @property
    def unit(self) -> str:
        """The unit of the counts."""
        ...

    @property
    def topic(self) -> CommittedTopic:
        """The topic in which it lands."""
        ...

    @property
    def records(self) -> int:
        """The number of records, in the unit of `--rate`."""
        ...

    def arguments(self, folder: Path) -> list[str]:
        """The arguments of `strandline job` that plan it."""
        ...

    def counted(self, status: JobStatus) -> JobCount:
        """Compare the content of its topic with the expected one, and with the counts of its parts."""
        ...
