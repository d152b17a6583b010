"""Processes as threads of which one runs at a time. A seeded random choice at each call decides which one continues."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from strandline.clock import ManualClock
from strandline.recovery.lease_keeper import LeaseKeeper
from support.seeded.violations import Crash

_OF_A_PART = ("replace_bulk_part", "bulk_part")


class Kind(StrEnum):
    """The kinds of faults of a call."""

    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    LOSE_ANSWER = "lose the answer"


@dataclass
class Fault:
    """A fault in the call at which `calls_left` reaches 0."""

    kind: Kind
    calls_left: int


class HostClock:
    """The clock of a process. Its wall time may be wrong; its monotonic time stops while its machine is suspended."""

    def __init__(self, true: ManualClock, offset_ms: Callable[[], int], sleep: Callable[[float], None]) -> None:
        self._true, self._offset_ms, self._sleep = true, offset_ms, sleep
        self._lost_s, self._stood_at = 0.0, None

    _stood_at: float | None

    def now_ms(self) -> int:
        return self._true.now_ms() + self._offset_ms()

    def monotonic(self) -> float:
        at = self._true.monotonic() if self._stood_at is None else self._stood_at
        return at - self._lost_s

    def sleep(self, seconds: float) -> None:
        self._sleep(seconds)

    def suspend(self) -> None:
        self._stood_at = self._true.monotonic()

    def resume_clock(self) -> None:
        if self._stood_at is not None:
            self._lost_s += self._true.monotonic() - self._stood_at
            self._stood_at = None


class Process:
    """A process of a host. Its body runs in a thread, controlled by the scheduler."""

    def __init__(self, scheduler: "Scheduler", host: str, number: int, offset_ms: Callable[[], int]) -> None:
        self.host, self.name = host, f"{host}/{number}"
        self.clock = HostClock(scheduler.clock, offset_ms, self._sleep)
        self.fault: Fault | None = None
        self.is_dead = self.is_over = self.is_suspended = False
        self.wakes_at = 0.0
        self.inside = ""
        self.keepers: list[LeaseKeeper[Any]] = []
        self.error: BaseException | None = None
        self._scheduler = scheduler
        self._go = threading.Lock()
        self._go.acquire()
        self._thread: threading.Thread | None = None

    def start(self, body: Callable[[], None]) -> None:
        def run() -> None:
            self._go.acquire()
            try:
                if not self.is_dead:
                    body()
            except Crash:
                pass
            except BaseException as error:  # noqa: BLE001 - anything that is raised is a failure of the history
                self.error = error
            self.is_over = True
            self._scheduler.back.release()

        self._thread = threading.Thread(target=run, name=self.name, daemon=True)
        self._thread.start()

    def resume(self) -> None:
        """Run the process to its next stop. Called by the scheduler."""
        self._go.release()
        self._scheduler.back.acquire()

    def stop_here(self) -> None:
        """Yield to other processes. Raises `Crash` if this one was killed meanwhile."""
        if threading.current_thread() is not self._thread:
            # Called by the scheduler for the lease keeper.
            return
        self._scheduler.back.release()
        self._go.acquire()
        if self.is_dead:
            raise Crash

    def call(self, unavailable: type[Exception], function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """An external call of this process, during which it may be stopped or killed, or lose the answer."""
        if self.is_dead:
            raise Crash
        kind = self._next_fault()
        if kind is Kind.CRASH_BEFORE:
            self.is_dead = True
            raise Crash
        self._scheduler.maybe_stop(self)
        result = function(*arguments, **options)
        if kind is Kind.CRASH_AFTER:
            self.is_dead = True
            raise Crash
        if kind is Kind.LOSE_ANSWER:
            raise unavailable("the answer was lost")
        self._scheduler.maybe_stop(self)
        return result

    def renew_leases(self) -> None:
        """The work of the lease keeper's thread, which is blocked by its lock while a lease is ended."""
        if self.inside in _OF_A_PART:
            return
        for keeper in self.keepers:
            with suppress(Crash):
                keeper.renew_if_due()

    def _sleep(self, seconds: float) -> None:
        self.wakes_at = self._scheduler.clock.monotonic() + seconds
        self.stop_here()

    def _next_fault(self) -> Kind | None:
        fault = self.fault
        if fault is None:
            return None
        fault.calls_left -= 1
        if fault.calls_left > 0:
            return None
        self.fault = None
        return fault.kind


class Scheduler:
    """Decides which process runs. `choose(n)` returns a number below n."""

    def __init__(self, clock: ManualClock, choose: Callable[[int], int]) -> None:
        self.clock, self._choose = clock, choose
        self.back = threading.Lock()
        self.back.acquire()
        self.processes: list[Process] = []
        self.stops = True

    def maybe_stop(self, process: Process) -> None:
        if self.stops and self._choose(4) == 0:
            process.stop_here()

    def live(self) -> list[Process]:
        return [one for one in self.processes if not one.is_over and not one.is_dead]

    def run(self, switches: int) -> None:
        """Run processes for a number of switches. Time passes while all of them sleep. Raises their errors."""
        for _ in range(switches):
            able = [one for one in self.processes if not one.is_over and not one.is_suspended]
            if not able:
                return
            now = self.clock.monotonic()
            awake = [one for one in able if one.wakes_at <= now or one.is_dead]
            if not awake:
                self.pass_time(min(one.wakes_at for one in able) - now)
                continue
            self._resume(awake[self._choose(len(awake))])

    def pass_time(self, seconds: float) -> None:
        """Advance the time. Processes that are not suspended renew their leases meanwhile."""
        while seconds > 0:
            step = min(seconds, 15.0)
            self.clock.sleep(step)
            seconds -= step
            for one in self.live():
                if not one.is_suspended:
                    one.renew_leases()

    def end(self) -> None:
        """Kill all processes."""
        for one in self.processes:
            one.is_dead = True
            while not one.is_over:
                one.resume()
        self.processes.clear()

    def _resume(self, process: Process) -> None:
        process.resume()
        if process.is_over:
            self.processes.remove(process)
        if process.error is not None:
            raise process.error
