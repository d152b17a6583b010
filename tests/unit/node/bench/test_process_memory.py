"""The memory of small programs, as counted by the kernel."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from strandline.node.bench.process_memory import descendants_bytes, peak_resident_bytes

pytestmark = pytest.mark.unit

MIB = 1 << 20
WAIT = "print('ready', flush=True); sys.stdin.read()"
PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
{WAIT}
child.stdin.close()
child.wait()
"""


@contextmanager
def running(program: str, *arguments: str) -> Iterator[int]:
    """A running program that has reached its final state."""
    command = [sys.executable, "-I", "-S", "-c", f"import sys\n{program}", *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()


def filled(size: int) -> str:
    return f"held = bytearray({size})\nfor at in range(0, {size}, 4096): held[at] = 1\n"


def test_the_peak_stays_when_memory_is_released() -> None:
    with running(f"{filled(200 * MIB)}\ndel held\n{WAIT}") as pid:
        assert 200 * MIB < peak_resident_bytes(pid) < 260 * MIB


def test_the_peak_of_the_parent_is_not_inherited() -> None:
    here = bytearray(300 * MIB)
    here[::4096] = b"x" * len(here[::4096])
    with running(WAIT) as pid:
        assert peak_resident_bytes(pid) < 100 * MIB


def test_descendants_of_a_process_are_counted_without_itself() -> None:
    with running(f"{filled(100 * MIB)}{PARENT}", f"import sys\n{filled(50 * MIB)}{WAIT}") as pid:
        assert 50 * MIB < descendants_bytes(pid) < 100 * MIB


def test_a_process_without_descendants_has_no_memory_of_descendants() -> None:
    with running(WAIT) as pid:
        assert descendants_bytes(pid) == 0
