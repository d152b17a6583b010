"""Prints the progress of set-up, one line for each step, and runs commands whose output goes to a log file.

On a terminal, the line of the running step shows its seconds. Elsewhere, a step prints a line when it starts to work
and a line when it is done.
"""

import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from strandline.errors import Fatal

TAIL_LINES = 25

Command = Sequence[str | Path]


class StepFailed(Fatal):
    """A command of set-up failed. The message has the end of its output."""


class Progress:
    """Prints the steps. `step` blocks must not be nested."""

    def __init__(self, total: int, stream: TextIO = sys.stderr) -> None:
        self._total = total
        self._stream = stream
        self._live = stream.isatty()
        self._number = 0
        self._title = ""
        self._detail = "checking"
        self._began = 0.0
        self._width = 0

    @contextmanager
    def step(self, title: str) -> Iterator["Progress"]:
        """Run one step. It is reported as "done" if `working` was called, and otherwise as "ready"."""
        self._number += 1
        self._title, self._detail, self._began = title, "", time.monotonic()
        self._draw("checking", last=False)
        try:
            yield self
        except BaseException:
            self._draw("FAILED", last=True)
            raise
        self._draw("done" if self._detail else "ready", last=True)

    def working(self, detail: str) -> None:
        """Report that the step does more than check, and what it does."""
        self._detail = detail
        if self._live:
            self._draw(detail, last=False)
        else:
            self._print(f"{self._label()} {detail} …")

    def tick(self) -> None:
        """Update the seconds of the running step."""
        if self._live:
            self._draw(self._detail or "checking", last=False)

    def notice(self, text: str) -> None:
        """Print a separate line for the user."""
        if self._live:
            self._stream.write("\r" + " " * self._width + "\r")
        self._print(f"        {text}")

    def _label(self) -> str:
        return f"  [{self._number}/{self._total}] {self._title:<34}"

    def _draw(self, state: str, *, last: bool) -> None:
        if not self._live and not last:
            return
        line = f"{self._label()} {state:<24} {time.monotonic() - self._began:6.1f} s"
        if self._live:
            padding = " " * max(0, self._width - len(line))
            self._stream.write(f"\r{line}{padding}" + ("\n" if last else ""))
            self._width = 0 if last else len(line)
            self._stream.flush()
        else:
            self._print(line)

    def _print(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


class Runner:
    """Runs the commands of a step, and appends their output to a log file."""

    def __init__(self, log: Path, tick: Callable[[], None] = lambda: None) -> None:
        self.log = log
        self._tick = tick
        log.parent.mkdir(parents=True, exist_ok=True)

    def run(self, command: Command, *, env: Mapping[str, str], cwd: Path | None = None) -> None:
        """Run a command until it ends. Raises `StepFailed` with the last lines of its output if it fails."""
        with self.log.open("ab") as sink:
            sink.write(f"\n$ {' '.join(map(str, command))}\n".encode())
            sink.flush()
            start = sink.tell()
            with subprocess.Popen(
                [str(part) for part in command],
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
            ) as process:
                while True:
                    try:
                        code = process.wait(timeout=0.2)
                        break
                    except subprocess.TimeoutExpired:
                        self._tick()
        if code != 0:
            shown = " ".join([Path(command[0]).name, *map(str, command[1:4])])
            raise StepFailed(
                f"`{shown} …` ended with exit code {code}:\n{self._tail(start)}",
                remedy=f"The full output is in {self.log}",
            )

    def _tail(self, start: int) -> str:
        with self.log.open("rb") as handle:
            handle.seek(start)
            lines = deque(handle, maxlen=TAIL_LINES)
        return "".join("    " + line.decode(errors="replace") for line in lines).rstrip()
