"""The tether: no program outlives its parent, however the parent ends."""

import json
import os
import select
import signal
import subprocess
import sys

import pytest

from strandline.node import tether
from strandline.node.stack.process import ProcessIdentity
from support.stack import STACK_TIMEOUT, eventually, gone

pytestmark = pytest.mark.unit

# Starts a tethered program that waits forever, prints its process id, and waits forever itself.
PARENT = """
import json, subprocess, sys
from strandline.node.tether import tethered
waits = [sys.executable, "-c", "import signal; signal.pause()"]
child = subprocess.Popen(tethered(waits), start_new_session=True)
print(json.dumps(child.pid), flush=True)
child.wait()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_program_ends_with_its_parent(how: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = ProcessIdentity.of(json.loads(parent.stdout.readline()))
        assert child is not None

        parent.send_signal(how)
        parent.wait(STACK_TIMEOUT)

        assert eventually(lambda: gone(child))


def test_program_keeps_its_process_id() -> None:
    command = tether.tethered([sys.executable, "-c", "import os; print(os.getpid())"])

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        output, _ = child.communicate(timeout=STACK_TIMEOUT)

    assert int(output) == child.pid


def test_program_is_not_started_for_a_parent_that_is_already_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as gone_parent:
        gone_parent.wait(STACK_TIMEOUT)
    command = tether.tethered([sys.executable, "-c", "print('started')"])
    command[command.index(str(os.getpid()))] = str(gone_parent.pid)

    ended = subprocess.run(command, capture_output=True, text=True, timeout=STACK_TIMEOUT, check=False)

    assert (ended.returncode, ended.stdout) == (tether.CANNOT_TETHER, "")
    assert f"the parent {gone_parent.pid} has ended" in ended.stderr


def test_missing_program_is_named() -> None:
    command = tether.tethered(["/no/such/program"])

    ended = subprocess.run(command, capture_output=True, text=True, timeout=STACK_TIMEOUT, check=False)

    assert ended.returncode == tether.CANNOT_TETHER
    assert "/no/such/program can't be run: No such file or directory" in ended.stderr


def test_a_pid_descriptor_is_readable_as_soon_as_the_process_ends() -> None:
    with subprocess.Popen(tether.tethered([sys.executable, "-c", "import signal; signal.pause()"])) as child:
        descriptor = os.pidfd_open(child.pid)
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            assert not poll.poll(0)
            child.kill()
            assert poll.poll(STACK_TIMEOUT * 1000)
        finally:
            os.close(descriptor)
