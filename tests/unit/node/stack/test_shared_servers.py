"""The servers that all tests of a run share never outlive it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.node.stack.control import running_stack
from strandline.node.stack.process import ProcessIdentity
from support.shared_servers import end_shared_stack, state_folder
from support.stack import eventually, gone

pytestmark = pytest.mark.unit

TESTS = Path(__file__).parents[3]
KEEP = """
import sys
from pathlib import Path
from strandline.node.stack.process import ProcessIdentity
from support.shared_servers import keep
from support.stack import StandIns, options
keep(options(Path(sys.argv[1])), ProcessIdentity.of(int(sys.argv[2])), StandIns())
"""


@pytest.fixture
def controller() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def shared_processes(run_folder: Path, controller: subprocess.Popen[bytes]) -> list[ProcessIdentity]:
    """The processes of the keeper and the servers, when they are up."""
    folder = state_folder(run_folder)
    command = [sys.executable, "-c", KEEP, str(folder.root), str(controller.pid)]
    keeper = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(TESTS)})
    assert eventually(lambda: running_stack(folder) is not None)
    keeper.returncode = 0
    record = running_stack(folder)
    assert record is not None
    return [record.keeper, *(server.process for server in record.servers if server.process)]


def test_shared_servers_end_when_the_run_is_killed(tmp_path: Path, controller: subprocess.Popen[bytes]) -> None:
    processes = shared_processes(tmp_path, controller)
    assert len(processes) == 3
    controller.kill()
    assert eventually(lambda: all(gone(process) for process in processes))


def test_shared_servers_have_ended_at_the_end_of_the_run(tmp_path: Path, controller: subprocess.Popen[bytes]) -> None:
    processes = shared_processes(tmp_path, controller)
    end_shared_stack(tmp_path)
    assert all(gone(process) for process in processes)
    end_shared_stack(tmp_path)
