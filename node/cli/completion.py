"""`strandline completion SHELL`: the script by which a shell completes our commands, and the answers to it.

The script is click's, but that it calls this very command with `--answer`, which is handed the words of the line.
Completing the name of a command imports none: names and summaries are known without.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

from strandline.errors import ExitCode, StrandlineError
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.main import COMMANDS
from strandline.node.cli.options import Command, LazyGroup, help_with
from strandline.node.output import Block

_SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@dataclass(frozen=True, slots=True)
class CompletionScript:
    """What a shell has to read."""

    shell: str
    script: str

    def blocks(self) -> Iterator[Block]:
        """The script, and nothing else."""
        yield self.script


class ListedCommands(LazyGroup):
    """The commands, whose names are offered without importing them."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        offered = [CompletionItem(name, help=self._lazy[name].summary) for name in names]
        return [*offered, *click.Command.shell_complete(self, ctx, incomplete)]


def script_of(shell: str) -> str:
    """The script for a shell."""
    # click would have it told by a variable; a command is one that people can find, and try by hand.
    program = "$1" if shell == "bash" else "%(prog_name)s"
    template = _SHELLS[shell].source_template.replace(f" %(complete_var)s={shell}_complete", "")
    template = template.replace(f"{program})", f"{program} completion {shell} --answer 2>/dev/null)")
    return template.strip() % {"complete_func": "_strandline_completion", "prog_name": "strandline"}


def answer(shell: str, root: click.Command, context: Context) -> str:
    """What a shell may offer for the line that it hands over; nothing if anything is wrong with the line."""
    listed = ListedCommands(root.name, lazy=COMMANDS)
    listed.params = root.params
    try:
        return _SHELLS[shell](listed, {"obj": context}, "strandline", "").complete()
    except (StrandlineError, click.ClickException, KeyError, ValueError):
        return ""


@click.command(
    cls=Command,
    help=help_with(
        "Print the script by which a shell completes commands, options and files, and, if the node answers at once, "
        "names of labels and metrics. Put it where the shell looks for such scripts, and open a new shell.",
        "strandline completion bash > ~/.local/share/bash-completion/completions/strandline",
        "strandline completion zsh > ~/.zfunc/_strandline    # with ~/.zfunc in fpath, before compinit",
        "strandline completion fish > ~/.config/fish/completions/strandline.fish",
        "source <(strandline completion bash)                # for this shell only",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE)),
)
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.option("--answer", "answers", is_flag=True, hidden=True, help="What the script calls.")
@pass_context
def command(context: Context, *, shell: str, answers: bool) -> ExitCode:
    """Print the script, or answer it."""
    if answers:
        click.echo(answer(shell, click.get_current_context().find_root().command, context))
    else:
        context.output.result(CompletionScript(shell, script_of(shell)))
    return ExitCode.OK
