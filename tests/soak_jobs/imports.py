"""An import as the job of a soak test: the samples of a file are counted in the dataset's topic."""

from pathlib import Path

import numpy as np

from soak_jobs.soaked import JobCount
from soak_jobs.source import Source
from strandline.node.bulk.reports import JobStatus
from support.committed_topic import CommittedTopic


class SoakedImport:
    """An import into the dataset's topic."""

    kind, unit = "import", "samples"

    def __init__(self, source: Source, topic: CommittedTopic) -> None:
        self._source, self.topic = source, topic

    @property
    def records(self) -> int:
        return self._source.rows

    def arguments(self, _folder: Path) -> list[str]:
        return ["import", *self._source.arguments()]

    def counted(self, status: JobStatus) -> JobCount:
        source, found = self._source, self.topic.samples_of(status.job)
        rows = found.values.astype(np.int64)
        counts = status.counts
        return JobCount.of(
            source.good_rows(),
            rows,
            len(found.chunks),
            wrong=int(np.count_nonzero(found.times != source.first_ms + rows)),
            counts_are_right=(counts.records, counts.samples, counts.bad, counts.sent)
            == (source.rows, source.samples, source.bad, found.records),
        )
