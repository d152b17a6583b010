"""The output of commands: one interface, implemented as text for people and as JSON for programs.

A command passes a report: a frozen dataclass that can also render itself as lines and tables. `TextOutput` prints
these, and `JsonOutput` prints the dataclass as one JSON document. Commands print nothing themselves.

Text errors are `error: ...` and a remedy on stderr. With `--output json`, the error is the only document on stdout,
`{"error": {...}}`, so that a script always parses the same stream and distinguishes the cases by the exit code.
Progress goes to stderr in both.
"""

import dataclasses
import json
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal, Protocol, TextIO, runtime_checkable

import rich.box
import rich.table
from rich.console import Console

from strandline.clock import Clock
from strandline.errors import ExitCode, StrandlineError
from strandline.node.json_values import json_value
from strandline.node.masking import SecretMask
from strandline.node.steps import LineSteps, LiveSteps, steps

OutputFormat = Literal["text", "json"]

# The width of tables in a pipe or a file: lines must not be folded, for grep.
_MAX_WIDTH = 100_000


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under named columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Block = str | Table


class Report(Protocol):
    """The result of a command: a dataclass, whose fields are its JSON form, with blocks of text for people."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def blocks(self) -> Iterable[Block]:
        """Lines and tables, in order."""
        ...


@runtime_checkable
class Detailed(Protocol):
    """An error with more than a message and a remedy."""

    def blocks(self) -> Iterable[Block]:
        """Text below the message."""
        ...

    def details(self) -> Mapping[str, object]:
        """Additional fields of the JSON form."""
        ...


class Output(ABC):
    """Where a command's results, errors and progress go. Secrets that `mask` knows are masked everywhere."""

    def __init__(self, stdout: TextIO, stderr: TextIO, clock: Clock, mask: SecretMask) -> None:
        self._stdout = stdout
        self._stderr = stderr
        self._clock = clock
        self._mask = mask

    @abstractmethod
    def result(self, report: Report) -> None:
        """The result of a command that has succeeded."""

    @abstractmethod
    def error(self, error: StrandlineError) -> None:
        """The error of a command that has failed."""

    def note(self, text: str) -> None:
        """A note for people, besides the result, on stderr."""
        self._stderr.write(self._mask.text(text) + "\n")
        self._stderr.flush()

    def crash(self, error: BaseException) -> None:
        """An unexpected error: its traceback goes to stderr, for a bug report."""
        self._stderr.write(self._mask.text("".join(traceback.format_exception(error))))
        self._stderr.flush()

    def steps(self, title: str) -> LineSteps | LiveSteps:
        """Progress: `with output.steps("Starting") as steps:` and inside it `with steps.step("Kafka"):`."""
        return steps(title, self._stderr, self._clock)


class TextOutput(Output):
    """For people: lines and tables on stdout, errors on stderr."""

    def result(self, report: Report) -> None:
        self._print(report.blocks(), self._stdout)

    def error(self, error: StrandlineError) -> None:
        lines = [f"error: {error.message}", *([f"  {error.remedy}"] if error.remedy else [])]
        more = error.blocks() if isinstance(error, Detailed) else ()
        self._print([*lines, *more], self._stderr)

    def _print(self, blocks: Iterable[Block], stream: TextIO) -> None:
        # Without markup: values such as "[kafka]" look like rich's markup.
        on_terminal = stream.isatty()
        console = Console(
            file=stream, markup=False, highlight=False, emoji=False, width=None if on_terminal else _MAX_WIDTH
        )
        for block in blocks:
            if isinstance(block, str):
                console.print(self._mask.text(block), soft_wrap=True)
            else:
                console.print(self._table(block, on_terminal=on_terminal))
        stream.flush()

    def _table(self, table: Table, *, on_terminal: bool) -> rich.table.Table:
        drawn = rich.table.Table(
            box=rich.box.SIMPLE_HEAD if on_terminal else None, pad_edge=False, header_style="bold", show_edge=False
        )
        for name in table.columns:
            drawn.add_column(name, overflow="fold")
        for row in table.rows:
            drawn.add_row(*(self._mask.text(cell) for cell in row))
        return drawn


class JsonOutput(Output):
    """For programs: exactly one JSON document on stdout, the report or `{"error": {...}}`."""

    def result(self, report: Report) -> None:
        self._write(report)

    def error(self, error: StrandlineError) -> None:
        more = error.details() if isinstance(error, Detailed) else {}
        self._fail(error, error.message, error.remedy, error.exit_code, more)

    def crash(self, error: BaseException) -> None:
        super().crash(error)
        self._fail(error, str(error), "This is a bug: please report it with the traceback", ExitCode.FAILED, {})

    def _fail(
        self, error: BaseException, message: str, remedy: str, exit_code: ExitCode, more: Mapping[str, object]
    ) -> None:
        document = {
            "type": type(error).__name__,
            "message": message,
            "remedy": remedy,
            "exit_code": exit_code,
            "retryable": isinstance(error, StrandlineError) and error.transient,
            **more,
        }
        self._write({"error": document})

    def _write(self, value: object) -> None:
        json.dump(self._mask.value(json_value(value)), self._stdout, indent=2, allow_nan=False)
        self._stdout.write("\n")
        self._stdout.flush()


def make_output(
    output_format: OutputFormat, stdout: TextIO, stderr: TextIO, clock: Clock, mask: SecretMask
) -> TextOutput | JsonOutput:
    """The output that `--output` selects."""
    return (JsonOutput if output_format == "json" else TextOutput)(stdout, stderr, clock, mask)
