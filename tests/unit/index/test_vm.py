"""The JVM in the process: started once, called only from where that is possible."""

import faulthandler
import os
import subprocess
import sys
import threading
from importlib import import_module

import pytest

from strandline.index import vm
from strandline.index.vm import VmUnusable, attach_thread, lucene_module, start_vm, to_java, to_python

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def _running_vm() -> None:
    start_vm()


def run_python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)


def test_starting_twice_starts_once() -> None:
    first = lucene_module()
    start_vm()
    assert lucene_module() is first


def test_another_heap_size_than_that_of_the_running_jvm_is_refused() -> None:
    with pytest.raises(VmUnusable, match="-Xmx513m"):
        start_vm(513)


def test_a_heap_too_small_for_lucene_is_refused() -> None:
    with pytest.raises(VmUnusable, match="a heap of 31 MB"):
        start_vm(31)


def test_bytes_are_passed_to_java_and_back() -> None:
    data = bytes(range(256)) * 3
    assert to_python(to_java(data)) == data
    assert to_python(to_java(b"")) == b""


def test_a_thread_attaches_itself_and_is_detached_after_its_end() -> None:
    java_thread = import_module("java.lang").Thread
    before = java_thread.activeCount()
    during: list[int] = []

    def work() -> None:
        attach_thread()
        attach_thread()
        during.append(java_thread.activeCount())

    for _ in range(20):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert during == [before + 1] * 20
    assert java_thread.activeCount() == before


def test_a_forked_process_is_refused_instead_of_hanging() -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            attach_thread()
            os.write(writing, b"allowed")
        except VmUnusable as refused:
            os.write(writing, str(refused).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        message = answer.read()
    os.waitpid(child, 0)
    assert message.startswith(f"the JVM belongs to process {os.getpid()}, which this process {child} was forked from")


def test_a_process_that_was_forked_before_the_start_has_a_jvm_of_its_own() -> None:
    done = run_python(
        "import os\n"
        "from strandline.index.vm import attach_thread, start_vm\n"
        "child = os.fork()\n"
        "start_vm(64)\n"
        "attach_thread()\n"
        "code = os.waitpid(child, 0)[1] if child else 0\n"
        "print(code, flush=True)\n"
        "os._exit(code)\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n0\n", "")


def test_a_call_before_the_start_is_refused() -> None:
    done = run_python("from strandline.index.vm import attach_thread; attach_thread()")
    assert done.returncode == 1
    assert "VmUnusable: the JVM is not running. Call start_vm first" in done.stderr


def test_a_wrong_option_is_an_error_that_shows_the_options() -> None:
    done = run_python("from strandline.index.vm import start_vm; start_vm(64, ['-XX:+NoSuchOption'])")
    assert done.returncode == 1
    assert "no JVM could be started with -Xrs -Xmx64m" in done.stderr


def test_another_collector_can_be_chosen() -> None:
    done = run_python("from strandline.index.vm import start_vm; start_vm(64, ['-XX:+UseSerialGC']); print('runs')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "runs\n", "")


def test_signals_stay_with_python() -> None:
    done = run_python(
        "import os, signal, sys\n"
        "from strandline.index.vm import start_vm\n"
        "start_vm(64)\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "signal.pause()\n"
    )
    assert done.returncode == 7


def test_segmentation_faults_are_left_to_the_jvm() -> None:
    # The JVM stops its threads by faults that it handles itself; Python's handler would take them for crashes.
    assert not faulthandler.is_enabled()
    assert vm.lucene_module().getVMEnv().isCurrentThreadAttached()
