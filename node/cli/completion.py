"""`strandline completion SHELL`: prints the completion script of a shell, and answers the script's calls.

The script is click's, except that it calls this command with `--answer` and the words of the line. Completing a
command's name imports no command: names and summaries are listed in `main`.
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
    """The completion script of a shell."""

    shell: str
    script: str

    def blocks(self) -> Iterator[Block]:
        """The script only."""
        yield self.script


class ListedCommands(LazyGroup):
    """The root group. Completes command names without importing the commands."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        offered = [CompletionItem(name, help=self._lazy[name].summary) for name in names]
        return [*offered, *click.Command.shell_complete(self, ctx, incomplete)]


def script_of(shell: str) -> str:
    """The script for a shell."""
    # click's scripts set an environment variable instead. A subcommand is easier to discover and to try by hand.
    program = "$1" if shell == "bash" else "%(prog_name)s"
    template = _SHELLS[shell].source_template.replace(f" %(complete_var)s={shell}_complete", "")
    template = template.replace(f"{program})", f"{program} completion {shell} --answer 2>/dev/null)")
    return template.strip() % {"complete_func": "_strandline_completion", "prog_name": "strandline"}


def answer(shell: str, root: click.Command, context: Context) -> str:
    """The completions for the command line that the shell passes; empty if the line is invalid."""
    listed = ListedCommands(root.name, lazy=COMMANDS)
    listed.params = root.params
    try:
        return _SHELLS[shell](listed, {"obj": context}, "strandline", "").complete()
    except (StrandlineError, click.ClickException, KeyError, ValueError):
        return ""


@click.command(
    cls=Command,
    help=help_with(
        "Print a completion script. It completes commands, options and files, and, if the node answers quickly, names "
        "of labels and metrics. Save it where your shell looks for completion scripts, and open a new shell.",
        "strandline completion bash > ~/.local/share/bash-completion/completions/strandline",
        "strandline completion zsh > ~/.zfunc/_strandline    # with ~/.zfunc in fpath, before compinit",
        "strandline completion fish > ~/.config/fish/completions/strandline.fish",
        "source <(strandline completion bash)                # for this shell only",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE)),
)
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.option("--answer", "answers", is_flag=True, hidden=True, help="Called by the script.")
@pass_context
def command(context: Context, *, shell: str, answers: bool) -> ExitCode:
    """Print the script, or the completions for a line."""
    if answers:
        click.echo(answer(shell, click.get_current_context().find_root().command, context))
    else:
        context.output.result(CompletionScript(shell, script_of(shell)))
    return ExitCode.OK
