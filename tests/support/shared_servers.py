"""One Kafka and one Cassandra for a whole run of pytest, shared by its processes.

The first test process that needs the servers starts a keeper in a separate process, and the others wait for it. The
keeper runs the servers until the controller has ended: the pytest that the user started, which is the test process
itself unless pytest-xdist runs several. It monitors the controller's pidfd, so it notices every end, `kill -9`
included, and the kernel kills the servers when the keeper ends.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from strandline.clock import Clock, SystemClock, wait_until
from strandline.node.stack import Stack, StackOptions
from strandline.node.stack.cassandra import Cassandra
from strandline.node.stack.control import running_stack
from strandline.node.stack.ports import Ports
from strandline.node.stack.process import ProcessIdentity
from strandline.node.stack.record import StackRecord
from strandline.node.stack.server import Server
from strandline.node.stack.stack import ServerBuilder, kafka_and_cassandra
from strandline.node.stack.state import StateFolder
from strandline.setup.installation import Installation

# With spaces and a letter that is not ASCII, which home folders may have.
FOLDER = "stack en été"
# By default, Cassandra 5 limits expiry to January 2038, for compatibility with Cassandra 4.
CASSANDRA_YAML = {"storage_compatibility_mode": "NONE"}
# Creating and dropping tables does not write to disk each time. A killed Cassandra would lose them at its next start;
# this one is not restarted.
CASSANDRA_ARGUMENTS = ("-Dcassandra.test.flush_local_schema_changes=false",)
# The broker must not be fenced because the machine is busy.
KAFKA_PROPERTIES = {"broker.session.timeout.ms": "120000"}
START_TIMEOUT = 240.0


class SharedCassandra(Cassandra):
    """A Cassandra that is started only once."""

    def _jvm_arguments(self) -> list[str]:
        return [*super()._jvm_arguments(), *CASSANDRA_ARGUMENTS]


def shared_pair(folder: StateFolder, ports: Ports, options: StackOptions, clock: Clock) -> Sequence[Server]:
    """The usual Kafka, and the Cassandra above."""
    kafka, _ = kafka_and_cassandra(folder, ports, options, clock)
    installed = Installation.load()
    program = installed.java_home / "bin" / "java"
    return (
        kafka,
        SharedCassandra(folder, ports, options, program=program, jars=installed.cassandra_jars, clock=clock),
    )


def state_folder(run_folder: Path) -> StateFolder:
    """The folder of a run's servers. `run_folder` is the same for all processes of the run."""
    return StateFolder(run_folder / FOLDER / "state")


def shared_stack(run_folder: Path, controller: ProcessIdentity) -> Stack:
    """The run's servers, started if they are not running yet."""
    folder = state_folder(run_folder)
    folder.root.mkdir(parents=True, exist_ok=True)
    # Not the folder's own lock, which the keeper holds.
    with (folder.root.parent / "starting").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # A process that was killed while it waited here has left a keeper that continues to start.
        _wait(lambda: running_stack(folder) is not None or not folder.is_held())
        record = running_stack(folder) or _start_keeper(folder, controller)
    stack = Stack(StackOptions(folder.root), SystemClock(), lambda _: None)
    # Stack.start would acquire the folder's lock, which belongs to the keeper.
    stack.ports, stack._record = record.ports, record
    return stack


def end_shared_stack(run_folder: Path) -> None:
    """Stop the servers of this run, if there are any, and remove their data."""
    folder = state_folder(run_folder)
    record = running_stack(folder)
    if record is None:
        return
    with suppress(ProcessLookupError):
        os.kill(record.keeper.pid, signal.SIGKILL)
    processes = [record.keeper, *(server.process for server in record.servers if server.process)]
    ended = wait_until(
        lambda: not any(process.alive() for process in processes), timeout=60, clock=SystemClock(), poll=0.02
    )
    assert ended, f"{processes} have not ended"
    _remove_data(folder)


def _wait(condition: Callable[[], bool]) -> None:
    wait_until(condition, timeout=START_TIMEOUT, clock=SystemClock())


def _start_keeper(folder: StateFolder, controller: ProcessIdentity) -> StackRecord:
    said = folder.root.parent / "keeper.log"
    with said.open("wb") as log:
        keeper = subprocess.Popen(
            [sys.executable, __file__, str(folder.root), str(controller.pid), str(controller.start_ticks)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # Ctrl-C reaches the controller, for whose end the keeper waits.
            start_new_session=True,
        )
    _wait(lambda: running_stack(folder) is not None or keeper.poll() is not None)
    record = running_stack(folder)
    assert record is not None, f"the shared servers did not start: {said.read_text()}"
    # It runs independently of us. Python warns about a process object that is dropped before it has an exit code.
    keeper.returncode = 0
    return record


def _remove_data(folder: StateFolder) -> None:
    # The logs stay with pytest's other files, for the analysis of failures.
    for name in ("kafka", "cassandra"):
        shutil.rmtree(folder.data(name), ignore_errors=True)


def options_of(root: Path) -> StackOptions:
    return StackOptions(
        root,
        start_timeout=START_TIMEOUT,
        extra_kafka_properties=KAFKA_PROPERTIES,
        extra_cassandra_yaml=CASSANDRA_YAML,
    )


def keep(options: StackOptions, controller: ProcessIdentity, build: ServerBuilder = shared_pair) -> None:
    """Run the servers until the controller has ended."""
    try:
        descriptor = os.pidfd_open(controller.pid)
    except ProcessLookupError:
        return
    # Checked after opening the descriptor, so that the pid can't have been reused unnoticed.
    if not controller.alive():
        return
    with Stack.start(options, cancelled=lambda: not controller.alive(), build=build) as stack:
        stack.wait(descriptor)
    _remove_data(stack.folder)


if __name__ == "__main__":
    keep(options_of(Path(sys.argv[1])), ProcessIdentity(int(sys.argv[2]), int(sys.argv[3])))
