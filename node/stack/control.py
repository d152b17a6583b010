"""Starts and stops a detached stack, for `strandline stack up` and `strandline stack down`.

Whether a stack runs follows from the state folder's lock. The process to signal is read from the stack's record, and is
signalled only if its identity (pid and start time) is still the same.
"""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from strandline.clock import Clock
from strandline.node.stack.errors import KeeperFailed, StackBusy, StopTimedOut
from strandline.node.stack.handshake import Handshake, failure_from, options_message, step_from
from strandline.node.stack.logs import last_lines
from strandline.node.stack.options import StackOptions
from strandline.node.stack.process import ProcessIdentity
from strandline.node.stack.record import StackRecord, StackState
from strandline.node.stack.stack import OnStep
from strandline.node.stack.state import StateFolder

STOP_TIMEOUT = 60.0
_POLL = 0.1


def running_stack(folder: StateFolder) -> StackRecord | None:
    """The record of the stack in this folder if it is up; None if there is none, or if it is starting or stopping."""
    if not folder.is_held():
        return None
    record = folder.read()
    return record if record and record.state is StackState.UP and record.keeper.alive() else None


def start_detached(options: StackOptions, *, on_step: OnStep, clock: Clock) -> tuple[StackRecord, bool]:
    """Start a keeper, and return its record and True when the stack is up.

    If a stack is already up in this folder, return its record and False. If another process is starting or stopping
    one, wait for that, for at most `options.start_timeout`. If this process is killed or interrupted before it returns,
    the keeper stops everything.
    """
    folder = StateFolder(options.state_dir)
    deadline = clock.monotonic() + options.start_timeout
    while True:
        record = running_stack(folder)
        if record is not None:
            return record, False
        if not folder.is_held():
            try:
                return _start(options, folder, on_step), True
            except KeeperFailed as error:
                # Another process started a stack after our check and before the keeper's.
                if error.kind != StackBusy.__name__ or clock.monotonic() >= deadline:
                    raise
        elif clock.monotonic() >= deadline:
            raise StackBusy(
                f"another process has been starting or stopping a stack in {folder.root} for more than "
                f"{options.start_timeout:.0f} s",
                remedy="See `strandline stack status`, or stop it with `strandline stack down`",
            )
        clock.sleep(_POLL)


def stop(folder: StateFolder, *, clock: Clock, timeout: float = STOP_TIMEOUT) -> bool:
    """Stop the stack in this folder, and wait until its keeper has ended. Returns False if no stack was running."""
    deadline = clock.monotonic() + timeout
    while folder.is_held():
        record = folder.read()
        if record is not None and _stop_keeper(record.keeper, deadline - clock.monotonic(), folder):
            return True
        # The lock's holder has not written its record yet, or has just released the lock.
        if clock.monotonic() >= deadline:
            raise StopTimedOut(
                f"{folder.lock_file} is held by a process that {folder.record_file} does not name",
                remedy=f"Find it with `fuser {folder.lock_file}` and end it",
            )
        clock.sleep(_POLL)
    return False


def keeper_command(descriptor: int) -> list[str]:
    """The keeper's command line; `pgrep -f 'stack up'` finds it."""
    script = Path(sys.executable).with_name("strandline")
    return [sys.executable, str(script), "stack", "up", "--foreground", "--handshake", str(descriptor)]


def _start(options: StackOptions, folder: StateFolder, on_step: OnStep) -> StackRecord:
    folder.prepare()
    handshake, other_end = Handshake.pair()
    with other_end, folder.keeper_log.open("wb") as log:
        keeper = subprocess.Popen(
            keeper_command(other_end.fileno()),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=(other_end.fileno(),),
            start_new_session=True,
            cwd=folder.root,
        )
    try:
        handshake.send(options_message(options))
        _await_outcome(handshake, keeper, folder, on_step)
    except BaseException:
        # Ctrl-C, or an error in `on_step`: the keeper notices that our end is closed, and stops everything.
        handshake.shut_down_sending()
        while handshake.receive() is not None:
            pass
        keeper.wait()
        raise
    finally:
        handshake.close()
    record = folder.read()
    if record is None:
        raise StackBusy(f"the stack in {folder.root} was wiped while it started", remedy="Start it again")
    # The keeper continues to run. Python warns if a process object is dropped that has no exit code.
    keeper.returncode = 0
    return record


def _await_outcome(
    handshake: Handshake, keeper: "subprocess.Popen[bytes]", folder: StateFolder, on_step: OnStep
) -> None:
    while (message := handshake.receive()) is not None:
        if message["type"] == "step":
            on_step(step_from(message))
        elif message["type"] == "failed":
            raise failure_from(message)
        else:
            handshake.send({"type": "keep"})
            return
    raise KeeperFailed(
        f"the keeper of the stack ended without reporting an error, with exit code {keeper.wait()}",
        remedy=f"See {folder.keeper_log}",
        kind=KeeperFailed.__name__,
        lines=[f"    {line}" for line in last_lines(folder.keeper_log, 12)],
    )


def _stop_keeper(keeper: ProcessIdentity, timeout: float, folder: StateFolder) -> bool:
    """Signal the keeper and wait until it has ended. Returns False if there is no such process."""
    try:
        descriptor = os.pidfd_open(keeper.pid)
    except ProcessLookupError:
        return False
    try:
        # Checked after the descriptor was opened: the descriptor then refers to this process, even if its id is reused.
        if not keeper.alive():
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if not poll.poll(max(0.0, timeout) * 1000):
            raise StopTimedOut(
                f"the keeper of the stack in {folder.root} (pid {keeper.pid}) has not ended in time",
                remedy=f"End it with `kill -9 {keeper.pid}`: its servers end with it, and no data is lost",
            )
    finally:
        os.close(descriptor)
    return True
