"""`recover run` while another process uses the shard's folder."""

from pathlib import Path

import pytest

from strandline.clock import SystemClock
from strandline.errors import ExitCode
from strandline.node.replay.catching_up import CatchingUp, Task
from strandline.node.replay.service import NodeWorker
from strandline.node.settings import Settings
from strandline.node.shard import assembling
from strandline.node.shard.configuring import shard_folder
from strandline.node.shard.folder_lock import locked
from strandline.recovery.offset_policy import Accepted

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("take", [False, True])
def test_a_shard_whose_node_uses_the_same_folder_is_skipped_with_exit_code_5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, take: bool
) -> None:
    # A process has one JVM, and other tests give it another heap.
    monkeypatch.setattr(assembling, "start_vm", lambda _heap: None)
    settings = Settings(shard={"data_dir": str(tmp_path)}, dataset={"name": "metrics"})
    folder = shard_folder(tmp_path, "metrics", 3)
    with locked(folder):
        catching_up = CatchingUp(settings, {}, SystemClock(), NodeWorker(), at_once=1)
        [outcome] = catching_up.run([Task(3, take, Accepted())], lambda: None)
    assert outcome.exit_code is ExitCode.FENCED
    assert str(folder) in outcome.error
    assert "Stop that process first" in outcome.remedy
