"""Several processes have the same SQLite store open, and some are killed."""

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from strandline.clock import SystemClock
from strandline.store.rows import ShardId
from strandline.store.sqlite import open_sqlite_store
from support.store_contract import state_of

pytestmark = pytest.mark.unit

SHARD = ShardId("dataset", 3)

# Waits for a line, opens the store, which may not exist yet, and takes the shard that has no owner.
TAKER = """
import json, sys
from pathlib import Path
from strandline.clock import SystemClock
from strandline.store.rows import ShardId
from strandline.store.sqlite import open_sqlite_store

print("ready", flush=True)
sys.stdin.readline()
store = open_sqlite_store(Path(sys.argv[1]), SystemClock())
ownership = store.take(ShardId("dataset", 3), sys.argv[2], None, now=1_000, topic_id="topic-1")
store.close()
print(json.dumps(None if ownership is None else ownership.owner))
"""

# Commits one bucket after another with all of its groups, and reports each.
COMMITTER = """
import sys
from pathlib import Path
from strandline.clock import SystemClock
from strandline.store.rows import Lifetime, ShardId
from strandline.store.sqlite import open_sqlite_store
from support.store_contract import LASTING, cut, group_row, manifest_write, taken

store = open_sqlite_store(Path(sys.argv[1]), SystemClock())
ownership = taken(store, ShardId("dataset", 3))
life = Lifetime.from_present(SystemClock().now_ms(), LASTING)
bucket = 0
while True:
    groups = tuple(group_row(bucket, group, life) for group in range(16))
    store.commit(ownership, manifest_write([cut(bucket, life)], groups, bucket + 1))
    print(bucket, flush=True)
    bucket += 1
"""


def started(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_one_of_concurrent_processes_that_create_a_store_and_take_a_shard_succeeds(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    takers = [started(TAKER, str(path), f"owner-{number}") for number in range(4)]
    for taker in takers:
        assert line(taker) == "ready\n"
    for taker in takers:
        assert taker.stdin is not None
        taker.stdin.write("go\n")
        taker.stdin.flush()
    answers = [taker.communicate()[0] for taker in takers]
    assert [taker.returncode for taker in takers] == [0] * 4
    winners = [owner for owner in map(json.loads, answers) if owner is not None]
    with closing(open_sqlite_store(path, SystemClock())) as store:
        state = state_of(store, SHARD)
    assert (state.epoch, [state.owner]) == (1, winners)


def test_a_killed_process_loses_no_acknowledged_write(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    committed = 0
    for count in (1, 20, 45):
        with started(COMMITTER, str(path)) as committer:
            for bucket in range(count):
                assert line(committer) == f"{bucket}\n"
            committer.kill()
        committed = max(committed, count)
        with closing(open_sqlite_store(path, SystemClock())) as store:
            rows = store.manifest(SHARD)
        assert rows is not None
        buckets = [row.bucket for row in rows.cuts]
        # The commit that was in progress when it was killed is stored completely or not at all.
        assert len(buckets) >= committed
        assert buckets == list(range(len(buckets) - 1, -1, -1))
        assert [(row.bucket, row.group) for row in rows.groups] == [
            (bucket, group) for bucket in buckets for group in range(16)
        ]
        assert rows.state.next_part_id == len(buckets)
