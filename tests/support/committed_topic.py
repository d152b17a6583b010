"""A dataset's topic as its readers see it: what has been committed, by the headers of bulk jobs."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from strandline.wire.decode import Limits, decode_batch
from strandline.wire.record_headers import CHUNK_HEADER, JOB_HEADER, PART_HEADER
from support.part_logs import committed_records


@dataclass(frozen=True)
class JobSamples:
    """A job's samples in the topic, including duplicates. `chunks` counts the samples of each part and chunk."""

    records: int
    times: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    chunks: Mapping[tuple[int, int], int]

    def sorted(self) -> list[tuple[int, float]]:
        """Time and value of each sample."""
        return sorted(zip(self.times.tolist(), self.values.tolist(), strict=True))


class CommittedTopic:
    """A topic of the brokers that `client` names."""

    def __init__(self, client: Mapping[str, str], name: str, partitions: int) -> None:
        self.client, self.name = dict(client), name
        self.admin = AdminClient(self.client)
        self._partitions = partitions

    def partitions(self) -> int:
        return self._partitions

    def ends(self) -> int:
        """The sum of the ends of all partitions, including open transactions."""
        places = [TopicPartition(self.name, number) for number in range(self._partitions)]
        answers = self.admin.list_offsets({place: OffsetSpec.latest() for place in places})
        return sum(answers[place].result(60).offset for place in places)

    def samples_of(self, job: str | None) -> JobSamples:
        """The samples of a job; with None, those written through a gateway."""
        found: dict[tuple[int, int], list[bytes]] = {}
        for _, value, headers in committed_records(self):
            named = headers.get(JOB_HEADER)
            if (named.decode() if named is not None else None) == job:
                chunk = (int(headers[PART_HEADER]), int(headers[CHUNK_HEADER])) if job is not None else (0, 0)
                found.setdefault(chunk, []).append(value)
        decoded = {chunk: decode_batch(values, Limits()) for chunk, values in found.items()}
        assert not any(columns.faults for columns in decoded.values())
        return JobSamples(
            sum(map(len, found.values())),
            np.concatenate([np.zeros(0, np.int64), *(columns.time for columns in decoded.values())]),
            np.concatenate([np.zeros(0), *(columns.value for columns in decoded.values())]),
            {chunk: len(columns.time) for chunk, columns in decoded.items()},
        )
