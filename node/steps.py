"""Shows the progress of a long command step by step, with times.

Progress goes to stderr, so that it does not mix with a command's result. On a terminal, running steps have a spinner
and elapsed time. Elsewhere, for example in the log of a build, each step is one line when it ends.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self, TextIO

from rich.console import Console
from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.text import Text

from strandline.clock import Clock

_BAR = 24


class Step:
    """A running step. `note` may be set at any time, by any thread, to show details ("port 9092"), and `fraction` to
    show how much is done, which a terminal shows as a bar.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.note = ""
        self.fraction: float | None = None


class Steps(ABC):
    """The steps of a command, under one title. Steps may overlap, and may run in several threads."""

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Measure the time of the block. An exception marks the step as failed, and is raised again."""
        step = Step(name)
        self._begin(step)
        try:
            yield step
        except BaseException:
            self._end(step, failed=True)
            raise
        self._end(step, failed=False)

    @abstractmethod
    def _begin(self, step: Step) -> None: ...

    @abstractmethod
    def _end(self, step: Step, *, failed: bool) -> None: ...


class LineSteps(Steps):
    """A line for the title, and a line for each step when it has ended."""

    def __init__(self, title: str, stream: TextIO, clock: Clock) -> None:
        self._title = title
        self._stream = stream
        self._clock = clock
        self._started: dict[Step, float] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._write(self._title)
        return self

    def __exit__(self, *_: object) -> None: ...

    def _begin(self, step: Step) -> None:
        self._started[step] = self._clock.monotonic()

    def _end(self, step: Step, *, failed: bool) -> None:
        elapsed = _elapsed(self._clock.monotonic() - self._started.pop(step))
        note = f" ({step.note})" if step.note else ""
        self._write(f"  {step.name}{note}: {'failed after ' if failed else ''}{elapsed}")

    def _write(self, line: str) -> None:
        with self._lock:
            self._stream.write(f"{line}\n")
            self._stream.flush()


class LiveSteps(Steps):
    """A line for each step, with a spinner while it runs, which stays when the step has ended."""

    def __init__(self, title: str, console: Console, clock: Clock) -> None:
        self._title = title
        self._console = console
        self._started: dict[Step, _LiveTask] = {}
        self._progress = Progress(
            SpinnerColumn(finished_text=" "),
            TextColumn("{task.description}", markup=False),
            _NoteColumn(),
            console=console,
            get_time=clock.monotonic,
        )

    def __enter__(self) -> Self:
        self._console.print(self._title, style="bold")
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def refresh(self) -> None:
        """Refresh the display now."""
        self._progress.refresh()

    def _begin(self, step: Step) -> None:
        self._started[step] = _LiveTask(self._progress, step)

    def _end(self, step: Step, *, failed: bool) -> None:
        self._started.pop(step).end(failed=failed)


class _LiveTask:
    """The line of one step in rich's progress display."""

    def __init__(self, progress: Progress, step: Step) -> None:
        self._progress = progress
        self._id = progress.add_task(step.name, total=None, step=step, failed=False)

    def end(self, *, failed: bool) -> None:
        self._progress.update(self._id, total=1, completed=1, failed=failed)
        self._progress.stop_task(self._id)


class _NoteColumn(ProgressColumn):
    """The elapsed time, the note, and whether the step failed."""

    max_refresh = 0.1

    def render(self, task: Task) -> Text:
        step: Step = task.fields["step"]
        failed: bool = task.fields["failed"]
        elapsed = _elapsed(task.elapsed or 0.0)
        note = f"  {step.note}" if step.note else ""
        if step.fraction is not None and not task.finished:
            return Text.assemble((_bar(step.fraction), "cyan"), f" {step.fraction:4.0%}  {elapsed}{note}")
        return Text(f"failed after {elapsed}{note}", "red") if failed else Text(f"{elapsed}{note}", "green")


def steps(title: str, stream: TextIO, clock: Clock) -> LineSteps | LiveSteps:
    """`LiveSteps` on a terminal, and otherwise `LineSteps`."""
    if stream.isatty():
        return LiveSteps(title, Console(file=stream, markup=False, highlight=False, emoji=False), clock)
    return LineSteps(title, stream, clock)


def _bar(fraction: float) -> str:
    filled = round(_BAR * min(1.0, max(0.0, fraction)))
    return "━" * filled + "─" * (_BAR - filled)


def _elapsed(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"
