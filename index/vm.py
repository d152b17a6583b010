"""The JVM that Lucene runs in: one per process, started once. Every thread must be attached before it calls Java.

JCC allows exactly one JVM per process, which exists until the process ends. After a fork, the child has the JVM's
memory but none of its threads, and calls would hang. So calls from a forked process are rejected here.
"""

import faulthandler
import os
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import NewType

from strandline.errors import Fatal

# A Java `byte[]`, as an argument or result.
JavaBytes = NewType("JavaBytes", object)

DEFAULT_HEAP_MB = 512
# Options of every JVM. Tests add to them.
common_options: tuple[str, ...] = ("-XX:-UsePerfData", "-Djava.awt.headless=true")


class VmUnusable(Fatal):
    """The JVM can't be started, or can't be called from here."""


@dataclass(frozen=True, slots=True)
class _RunningVm:
    lucene: ModuleType
    byte_array: Callable[[bytes], JavaBytes]
    arguments: tuple[str, ...]
    process_id: int


class _Attachment:
    """Attaches the thread that creates it, and detaches it when the thread ends and its locals are dropped.

    Otherwise the thread would stay on the JVM's list of threads forever.
    """

    def __init__(self, environment: object) -> None:
        self._environment = environment
        name = threading.current_thread().name.encode("ascii", "replace").decode()
        # As a daemon, so that the JVM does not wait for Python's threads.
        environment.attachCurrentThread(name, 1)  # type: ignore[attr-defined]  # JCC has no types

    def __del__(self) -> None:
        self._environment.detachCurrentThread()  # type: ignore[attr-defined]  # JCC has no types


class _ThreadLocals(threading.local):
    attachment: _Attachment | None = None


_start_lock = threading.Lock()
_running: _RunningVm | None = None
_thread = _ThreadLocals()
# Whether this process was forked from the one in which the JVM runs. Set at the fork, because checking the process id
# would need a system call for each call of Java.
_is_lost = False


def _after_fork() -> None:
    global _is_lost  # noqa: PLW0603 - as the JVM is one a process
    _is_lost = _running is not None


os.register_at_fork(after_in_child=_after_fork)


def start_vm(heap_mb: int = DEFAULT_HEAP_MB, extra: Sequence[str] = ()) -> None:
    """Start this process's JVM with a heap of at most `heap_mb` and further JVM options, and attach this thread.

    Further calls only attach the thread; other options than those of the running JVM are rejected. Python keeps SIGINT,
    SIGTERM and SIGHUP. `faulthandler` is switched off, because the JVM itself uses SIGSEGV, many times per second, and
    must handle it.
    """
    global _running  # noqa: PLW0603 - one JVM a process is JCC's rule; this is where it is kept
    arguments = _arguments(heap_mb, extra)
    with _start_lock:
        if _running is None:
            lucene = _create_vm(arguments)
            _running = _RunningVm(lucene, lucene.JArray("byte"), arguments, os.getpid())
        elif _running.arguments != arguments:
            raise VmUnusable(
                f"the JVM runs with {' '.join(_running.arguments)}, and can't be started with {' '.join(arguments)}",
                remedy="Start it once, with the options that the process needs",
            )
    attach_thread()


def attach_thread() -> None:
    """Make sure that the JVM runs in this process, and that this thread may call it.

    Repeated calls cost almost nothing, so everything that calls Java does this first.
    """
    _attached()


def _attached() -> _RunningVm:
    vm = _running
    if vm is None:
        raise VmUnusable("the JVM is not running", remedy="Call start_vm first")
    if _is_lost:
        raise VmUnusable(
            f"the JVM belongs to process {vm.process_id}, which this process {os.getpid()} was forked from",
            remedy="Start processes with the spawn method, and a JVM in each",
        )
    if _thread.attachment is None:
        environment = vm.lucene.getVMEnv()
        # The thread that created the JVM is always attached.
        if not environment.isCurrentThreadAttached():
            _thread.attachment = _Attachment(environment)
    return vm


def lucene_module() -> ModuleType:
    """Return the `lucene` module, with the JVM running and this thread attached."""
    return _attached().lucene


def to_java(data: bytes) -> JavaBytes:
    """Copy bytes into a Java array."""
    return _attached().byte_array(data)


def to_python(array: JavaBytes) -> bytes:
    """Copy a Java array into bytes."""
    data: bytes = array.bytes_  # type: ignore[attr-defined]  # JCC has no types
    return data


def java_heap_bytes() -> int:
    """Return the bytes of the Java heap in use, after a collection: for reports, not for hot paths."""
    attach_thread()
    runtime = import_module("java.lang").Runtime.getRuntime()
    runtime.gc()
    return int(runtime.totalMemory()) - int(runtime.freeMemory())


def _arguments(heap_mb: int, extra: Sequence[str]) -> tuple[str, ...]:
    if heap_mb < 32:
        raise VmUnusable(f"a heap of {heap_mb} MB is too small for Lucene", remedy="Give it 32 MB or more")
    chosen = [option for option in extra if option.startswith("-XX:+Use") and option.endswith("GC")]
    # Adding documents is a third faster than with G1, whose barriers are most expensive before code is compiled.
    collector = () if chosen else ("-XX:+UseParallelGC",)
    # -Xrs leaves signals to Python; -UsePerfData avoids files for jps in the temporary folder.
    return ("-Xrs", f"-Xmx{heap_mb}m", *collector, *common_options, *extra)


def _create_vm(arguments: tuple[str, ...]) -> ModuleType:
    faulthandler.disable()
    # JCC's type names cause a Python warning. If warnings were errors, JCC would crash, because it does not check.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            lucene = import_module("lucene")
            lucene.initVM(vmargs=list(arguments))
        except ImportError as error:
            raise VmUnusable(f"PyLucene can't be loaded ({error})", remedy="Run `make setup`") from error
        except ValueError as error:
            raise VmUnusable(
                f"no JVM could be started with {' '.join(arguments)}",
                remedy="See standard error for the JVM's message; a wrong option or too large a heap are likely",
            ) from error
    return lucene
