"""A send as the job of a soak test: its messages are counted in a separate topic."""

from pathlib import Path

import numpy as np
import orjson
from confluent_kafka.admin import NewTopic

from soak_jobs.soaked import JobCount
from soak_jobs.source import METRIC, Source
from strandline.node.bulk.reports import JobStatus
from strandline.wire.record_headers import CHUNK_HEADER, JOB_HEADER, PART_HEADER
from support.committed_topic import CommittedTopic
from support.part_logs import committed_records

TEMPLATE = """
key = "{host}"

[value]
host = "{host}"
row = "{$value}"
"""


class SoakedSend:
    """Sends a message for each series of a file that was imported before. Each series has one sample, whose value is
    the number of its row.
    """

    kind, unit = "send", "messages"

    def __init__(self, source: Source, topic: CommittedTopic) -> None:
        """Create the topic."""
        self._source, self.topic = source, topic
        (made,) = topic.admin.create_topics([NewTopic(topic.name, topic.partitions(), 1)]).values()
        made.result(90)

    @property
    def records(self) -> int:
        return self._source.samples

    def arguments(self, folder: Path) -> list[str]:
        template = folder / "template.toml"
        template.write_text(TEMPLATE)
        return ["send", METRIC, "--to", self.topic.name, "--template", str(template)]

    def counted(self, status: JobStatus) -> JobCount:
        rows, chunks, wrong = list[int](), set[tuple[bytes, bytes]](), 0
        for _, value, headers in committed_records(self.topic):
            message = orjson.loads(value)
            rows.append(int(message["row"]))
            chunks.add((headers[PART_HEADER], headers[CHUNK_HEADER]))
            is_expected = message["host"] == f"host-{rows[-1]}" and headers[JOB_HEADER] == status.job.encode()
            wrong += not is_expected
        counts = status.counts
        return JobCount.of(
            self._source.good_rows(),
            np.array(rows, np.int64),
            len(chunks),
            wrong=wrong,
            counts_are_right=(counts.records, counts.sent, counts.bad) == (self.records, len(rows), 0),
        )
