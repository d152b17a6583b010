"""The stack: starts, monitors and stops both servers together."""

import select
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from strandline.clock import Clock, SystemClock
from strandline.errors import StrandlineError
from strandline.node.stack.cassandra import Cassandra
from strandline.node.stack.errors import ServerExited, StartCancelled, StartTimedOut, StateFolderUnusable
from strandline.node.stack.java import checked_java
from strandline.node.stack.kafka import Kafka
from strandline.node.stack.logs import ADDRESS_IN_USE
from strandline.node.stack.options import StackOptions
from strandline.node.stack.ports import LOOPBACK, Ports, choose_ports
from strandline.node.stack.process import ProcessIdentity
from strandline.node.stack.record import StackRecord, StackState
from strandline.node.stack.server import Phase, Server
from strandline.node.stack.state import StateFolder, StateLock
from strandline.setup.installation import Installation

_POLL = 0.05
_CHECK_TIMEOUT = 3.0
_STOP_TIMEOUT = 20.0
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class StackStep:
    """A server has reached a phase, `elapsed` seconds after the begin of the start or stop."""

    server: str
    title: str
    phase: Phase
    elapsed: float


OnStep = Callable[[StackStep], None]


class ServerBuilder(Protocol):
    """Creates the servers without starting them. Raises `WrongJava`, `JarsMissing` or `NotInstalled`."""

    def __call__(self, folder: StateFolder, ports: Ports, options: StackOptions, clock: Clock) -> Sequence[Server]: ...


def kafka_and_cassandra(folder: StateFolder, ports: Ports, options: StackOptions, clock: Clock) -> Sequence[Server]:
    """The real servers, from the jars of this installation."""
    installed = Installation.load()
    java = checked_java(options.java_home or installed.java_home)
    return (
        Kafka(folder, ports, options, program=java, jars=installed.kafka_jars, clock=clock),
        Cassandra(folder, ports, options, program=java, jars=installed.cassandra_jars, clock=clock),
    )


class Stack:
    """A running stack: `with Stack.start(options) as stack:`.

    It holds the state folder's lock from start to stop. Start it from the main thread: the kernel kills the servers
    when the thread that started them ends. Leaving the `with` block always stops the servers.
    """

    def __init__(self, options: StackOptions, clock: Clock, on_step: OnStep) -> None:
        """For `start` only."""
        self.folder = StateFolder(options.state_dir)
        self.ports = Ports()
        self._options = options
        self._clock = clock
        self._on_step = on_step
        self._servers: Sequence[Server] = ()
        self._lock: StateLock | None = None
        self._record: StackRecord | None = None
        self._begun = clock.monotonic()

    @classmethod
    def start(
        cls,
        options: StackOptions,
        *,
        on_step: OnStep = lambda _: None,
        cancelled: Callable[[], bool] = lambda: False,
        clock: Clock | None = None,
        build: ServerBuilder = kafka_and_cassandra,
    ) -> Self:
        """Start both servers, and return when both are healthy.

        If that fails, if `cancelled` returns True, or if an exception occurs, everything that was started is stopped
        before the error is raised.
        """
        stack = cls(options, clock or SystemClock(), on_step)
        stack.folder.prepare()
        stack._lock = stack.folder.lock(clock=stack._clock)
        try:
            stack._start(cancelled, build)
        except BaseException as error:
            stack.stop(failure=error)
            raise
        return stack

    @property
    def kafka_bootstrap(self) -> str:
        return f"{LOOPBACK}:{self.ports.kafka}"

    @property
    def cassandra_host(self) -> str:
        return LOOPBACK

    @property
    def cassandra_port(self) -> int:
        return self.ports.cassandra

    @property
    def record(self) -> StackRecord:
        """The current content of `stack.json`."""
        if self._record is None:
            raise RuntimeError("the stack was not started")
        return self._record

    def wait(self, wake_up: int) -> None:
        """Wait until the descriptor `wake_up` is readable. Raises `ServerExited` if a server ends before that."""
        with ExitStack() as opened:
            poll = select.poll()
            poll.register(wake_up, select.POLLIN)
            for server in self._servers:
                poll.register(opened.enter_context(server.exit_event()), select.POLLIN)
            poll.poll()
        for server in self._servers:
            server.require_alive()

    def stop(self, failure: BaseException | None = None) -> None:
        """Stop both servers concurrently, and unlock the state folder. May be called twice."""
        if self._lock is None:
            return
        self._begun = self._clock.monotonic()
        try:
            for server in self._servers:
                server.begin_stop()
            # The record is informational, and the lock is authoritative: the servers stop even if the disk is full.
            with suppress(StateFolderUnusable):
                self._write_record(StackState.STOPPING)
            for server in self._servers:
                self._report_step(server)
            for server in self._servers:
                server.finish_stop(self._begun + _STOP_TIMEOUT - self._clock.monotonic())
                self._report_step(server)
            with suppress(StateFolderUnusable):
                self._write_record(StackState.FAILED if failure else StackState.DOWN, failure)
        finally:
            # Also reached after a second Ctrl-C: no server may remain, and the lock is released last.
            for server in self._servers:
                server.finish_stop(0.0)
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(failure=error)

    def _start(self, cancelled: Callable[[], bool], build: ServerBuilder) -> None:
        before = self.folder.read()
        self.ports = before.ports if before else Ports()
        self._write_record(StackState.STARTING)
        self.folder.require_free_disk(self._options.min_free_disk)
        for attempt in range(1, _ATTEMPTS + 1):
            self.ports = choose_ports(self._options, self.ports)
            self._servers = build(self.folder, self.ports, self._options, self._clock)
            try:
                self._bring_up(cancelled)
            except ServerExited as error:
                # Another process has bound one of the ports first. Choose others, unless the settings fix them.
                if error.cause != ADDRESS_IN_USE or attempt == _ATTEMPTS:
                    raise
                for server in self._servers:
                    server.begin_stop()
                for server in self._servers:
                    server.finish_stop(_STOP_TIMEOUT)
            else:
                break
        self._write_record(StackState.UP)

    def _bring_up(self, cancelled: Callable[[], bool]) -> None:
        deadline = self._clock.monotonic() + self._options.start_timeout
        for server in self._servers:
            server.start()
            self._report_step(server)
        self._write_record(StackState.STARTING)
        while any(server.phase is not Phase.HEALTHY for server in self._servers):
            if cancelled():
                raise StartCancelled("the start was cancelled")
            if self._clock.monotonic() >= deadline:
                raise self._start_timed_out()
            for server in self._servers:
                before = server.phase
                if server.advance(_CHECK_TIMEOUT) is not before:
                    self._report_step(server)
                    self._write_record(StackState.STARTING)
            self._clock.sleep(_POLL)
        # The first healthy server may have ended while the other one was starting.
        for server in self._servers:
            server.require_alive()

    def _start_timed_out(self) -> StartTimedOut:
        late = [server for server in self._servers if server.phase is not Phase.HEALTHY]
        how_far = "; ".join(
            f"{server.title} is still {server.phase}" + (f" ({server.last_failure})" if server.last_failure else "")
            for server in late
        )
        return StartTimedOut(
            f"the stack was not healthy within {self._options.start_timeout:.0f} s: {how_far}",
            remedy=f"See {' and '.join(str(server.log) for server in late)}, or raise stack.start_timeout",
        )

    def _report_step(self, server: Server) -> None:
        elapsed = self._clock.monotonic() - self._begun
        self._on_step(StackStep(server.name, server.title, server.phase, elapsed))

    def _write_record(self, state: StackState, failure: BaseException | None = None) -> None:
        started = self._record.started_at_ms if self._record else self._clock.now_ms()
        reason = failure.message if isinstance(failure, StrandlineError) else type(failure).__name__ if failure else ""
        record = StackRecord(
            state=state,
            keeper=ProcessIdentity.own(),
            started_at_ms=started,
            ports=self.ports,
            servers=tuple(server.describe() for server in self._servers),
            failure=reason,
        )
        self._record = record
        self.folder.write(record)
