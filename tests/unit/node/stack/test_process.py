"""Processes are identified by id and start time, not by id alone."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from strandline.node.stack.process import ProcessIdentity, command_name, resident_bytes
from support.stack import eventually

pytestmark = pytest.mark.unit


def test_the_current_process_is_alive() -> None:
    assert ProcessIdentity.own().pid == os.getpid()
    assert ProcessIdentity.own().alive()


def test_another_process_with_the_same_id_is_not_the_same() -> None:
    current = ProcessIdentity.own()

    assert not replace(current, start_ticks=current.start_ticks - 1).alive()


def test_a_zombie_is_not_alive() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        identity = ProcessIdentity.of(child.pid)
        assert identity is not None
        assert identity.alive()
        assert child.stdin is not None
        child.stdin.write(b"\n")
        child.stdin.close()

        # It was not reaped yet, so that its id is still in use.
        assert eventually(lambda: not identity.alive())
        assert child.returncode is None


def test_a_process_that_never_existed_has_no_facts() -> None:
    unused_id = 2**22 + 1

    assert ProcessIdentity.of(unused_id) is None
    assert resident_bytes(unused_id) is None
    assert command_name(unused_id) is None


def test_memory_of_a_process_is_more_than_a_megabyte() -> None:
    resident = resident_bytes(os.getpid())

    assert resident is not None
    assert resident > 1 << 20
