import subprocess
import sys
from pathlib import Path

import pytest

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


def test_a_folder_has_one_process_and_is_free_when_that_is_killed(tmp_path: Path) -> None:
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
