"""The code that runs on executors, without an executor."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from strandline.recovery.replay import mapping
from strandline.recovery.replay.replay_input import ReplayInput
from strandline.spark.tasks import map_task
from support import replays
from support.replays import leased_job

pytestmark = pytest.mark.unit


def test_a_task_with_too_much_in_memory_outputs_blocks_before_it_has_read_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mapping, "MAX_FAULT_BYTES", 2 * len(replays.POISON))
    given = ReplayInput.of([leased_job(0, 9)], replays.settings(), now=0, bounds={})
    read: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for offset in range(5):
            read.append(offset)
            yield pa.RecordBatch.from_pydict(
                {
                    "partition": [0],
                    "offset": [offset],
                    "time": [0],
                    "times_checked": [False],
                    "value": [replays.POISON],
                }
            )

    found = [
        (len(read), sorted(set(batch.column("first_offset").to_pylist()))) for batch in map_task(given, [0])(batches())
    ]
    # The first two batches are output at the third, and the next two at the fifth.
    assert found == [(3, [0]), (5, [2]), (5, [4])]
