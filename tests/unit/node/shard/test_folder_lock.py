import errno
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.disk import DiskFull
from strandline.node.shard.folder_lock import FolderInUse, locked

pytestmark = pytest.mark.unit

HOLDER = """
import sys
from pathlib import Path
from strandline.node.shard.folder_lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_folder_has_one_process_and_is_released_when_that_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "shards" / "0"
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(FolderInUse, match=str(folder)), locked(folder):
            pytest.fail("two processes hold it")
        holder.kill()
        holder.wait()
    with locked(folder):
        pass
    with locked(folder):
        pass


def test_a_folder_on_a_full_disk_is_named_and_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(DiskFull, match=str(tmp_path)) as full, locked(tmp_path):
        pytest.fail("it is not locked")
    assert full.value.transient
