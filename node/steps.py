"""Progress of a command that takes a while, told step by step with times.

Progress is for a person who waits, so it goes to stderr and never mixes with a command's result. On a terminal the
steps under way turn and count; elsewhere, as in a log of a build, each step is one line once it ends.
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
    """One step under way. `note` may be set at any time, by any thread, to say how it stands ("port 9092"), and
    `fraction` to say how much of it is done, where that is known: a terminal shows it as a bar.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.note = ""
        self.fraction: float | None = None


class Steps(ABC):
    """A list of steps under one title. Steps may overlap and may be taken in several threads."""

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Time what is done inside. An exception marks the step as failed and passes on."""
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
    """A line for the title, and a line for each step that ended, in the order in which they ended."""

    def __init__(self, title: str, stream: TextIO, clock: Clock) -> None:
        self._title = title
        self._stream = stream
        self._clock = clock
        self._begun: dict[Step, float] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._write(self._title)
        return self

    def __exit__(self, *_: object) -> None: ...

    def _begin(self, step: Step) -> None:
        self._begun[step] = self._clock.monotonic()

    def _end(self, step: Step, *, failed: bool) -> None:
        elapsed = _elapsed(self._clock.monotonic() - self._begun.pop(step))
        note = f" ({step.note})" if step.note else ""
        self._write(f"  {step.name}{note}: {'failed after ' if failed else ''}{elapsed}")

    def _write(self, line: str) -> None:
        with self._lock:
            self._stream.write(f"{line}\n")
            self._stream.flush()


class LiveSteps(Steps):
    """A line for each step, which turns while the step is under way and stays when it has ended."""

    def __init__(self, title: str, console: Console, clock: Clock) -> None:
        self._title = title
        self._console = console
        self._begun: dict[Step, _LiveTask] = {}
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
        """Show how things stand now, without waiting for the next time."""
        self._progress.refresh()

    def _begin(self, step: Step) -> None:
        self._begun[step] = _LiveTask(self._progress, step)

    def _end(self, step: Step, *, failed: bool) -> None:
        self._begun.pop(step).end(failed=failed)


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
    """Steps that suit the stream."""
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
