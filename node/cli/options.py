"""Base classes of the commands: all take the shared options, and groups import their commands lazily.

`--config` and `--output` may be given before or after the subcommand; the last one wins. Every `Command` and `Group`
has them. Their values are in the `Context`.
"""

import gc
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from strandline.node.cli.context import Context


def _choose_config(context: click.Context, _option: click.Parameter, value: Path | None) -> None:
    if value is not None:
        context.ensure_object(Context).config = value


def _choose_output(context: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is not None:
        chosen = context.ensure_object(Context)
        chosen.layout = value
        chosen.output_format = "json" if value == "json" else "text"


def help_with(text: str, *examples: str) -> str:
    """The help of a command: a description and examples. The backspace makes click keep the line breaks."""
    return f"{text}\n\n\b\nExample{'s' if len(examples) > 1 else ''}:\n" + "\n".join(f"  {line}" for line in examples)


def shared_options(layouts: Sequence[str] = ("text", "json")) -> list[click.Parameter]:
    """The options of every command. `layouts` are the values of `--output`."""
    more = "".join(f", or {layout}" for layout in layouts if layout not in ("text", "json"))
    return [
        click.Option(
            ["--config"],
            metavar="PATH",
            type=click.Path(path_type=Path),
            expose_value=False,
            callback=_choose_config,
            help="Settings file. [default: $STRANDLINE_CONFIG, or /etc/strandline/strandline.toml if it exists]",
        ),
        click.Option(
            ["--output"],
            type=click.Choice(layouts),
            expose_value=False,
            # Eager, so that errors in other options are already printed in this format.
            is_eager=True,
            callback=_choose_output,
            help=f"Output format: text, or one JSON document{more}. [default: text]",
        ),
    ]


class Command(click.Command):
    """A command with the shared options. `layouts` are its output formats, including text and JSON."""

    def __init__(self, *args: Any, layouts: Sequence[str] = ("text", "json"), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(shared_options(layouts))


class Group(click.Group):
    """A group of commands with the shared options, which its commands and groups have, too."""

    command_class = Command
    group_class = type

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(shared_options())


take_option = click.option(
    "--take",
    is_flag=True,
    help="Take over shards from live owners, which then stop. [default: leave live owners alone]",
)
"""For commands that take ownership of shards."""


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command that is imported when it is called: the attribute `command` of `module`. The summary allows listing the
    commands without importing them. Commands that only other commands call are `hidden` from the list.
    """

    module: str
    summary: str
    hidden: bool = False


def _loaded(module: str) -> ModuleType:
    """Import a command's module with garbage collection disabled: it took a sixth of a shard's import time and found
    nothing.

    The imported objects live until the process ends. They are frozen, so that later collections skip them.
    """
    if module in sys.modules:
        return sys.modules[module]
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        imported = import_module(module)
        gc.freeze()
    finally:
        if is_enabled:
            gc.enable()
    return imported


class LazyGroup(Group):
    """A group that imports a command when it is called. Commands whose module is not installed are left out."""

    def __init__(self, *args: Any, lazy: Mapping[str, LazyCommand], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = {name: command for name, command in lazy.items() if find_spec(command.module) is not None}

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return sorted(name for name, command in self._lazy.items() if not command.hidden)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return None
        command: click.Command = _loaded(self._lazy[cmd_name].module).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._lazy[name].summary) for name in self.list_commands(ctx)])


on_option = click.option(
    "--on",
    type=click.Choice(["auto", "process", "spark"]),
    default="auto",
    show_default=True,
    help="Where parts run: in this process, or on Spark (see [spark] in the settings). auto: on Spark for 500 MB of "
    "text or more.",
)
