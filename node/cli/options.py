"""Kinds of click commands: each takes the shared options, and groups load their commands only when they are called.

`--config` and `--output` mean the same wherever they stand, before the command or after it; the last one wins. A
command gets them by being a `Command` (or a `Group`), and finds what they said in its `Context`.
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
    """The help of a command: what it does, and calls of it to copy. (The backspace tells click to keep the lines.)"""
    return f"{text}\n\n\b\nExample{'s' if len(examples) > 1 else ''}:\n" + "\n".join(f"  {line}" for line in examples)


def shared_options(layouts: Sequence[str] = ("text", "json")) -> list[click.Parameter]:
    """The options that every command takes. `layouts` are what its `--output` takes."""
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
            # Eager, so that an error in another option is already told in the form that was asked for.
            is_eager=True,
            callback=_choose_output,
            help=f"Text for people or one JSON document for programs{more}. [default: text]",
        ),
    ]


class Command(click.Command):
    """A command that takes the shared options. `layouts` are the forms of output that it knows, text and JSON among
    them.
    """

    def __init__(self, *args: Any, layouts: Sequence[str] = ("text", "json"), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(shared_options(layouts))


class Group(click.Group):
    """A group of commands that takes the shared options, as do its commands and groups."""

    command_class = Command
    group_class = type

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(shared_options())


take_option = click.option(
    "--take",
    is_flag=True,
    help="Take over shards from live owners, which then stop. [default: leave them alone]",
)
"""For commands that become the owner of shards."""


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command that is imported when it is called: its module, in which it is named `command`, and its summary,
    which stands here so that the list of commands can be shown without importing any. One that only other commands
    call is `hidden` from that list.
    """

    module: str
    summary: str
    hidden: bool = False


def _loaded(module: str) -> ModuleType:
    """Import a command's module without looking for garbage, which took a sixth of a shard's imports and found none.

    What the process has by then stays until its end, so no later search visits it either.
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
    """A group whose commands cost nothing until one is called. A module that is not installed is no command."""

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
    help="Where parts run: in this process, or on Spark (see [spark] in the settings). auto: on Spark from 500 MB of "
    "text on.",
)
