"""`strandline recover plan | run | status | verify`: what a restart has to read again."""

import click

from strandline.node.cli.options import LazyCommand, LazyGroup, help_with

COMMANDS = {
    "plan": LazyCommand("strandline.node.cli.recover_plan", "Show what a start would read again. Changes nothing."),
    "run": LazyCommand("strandline.node.cli.recover_run", "Catch up shards whose node is down."),
    "status": LazyCommand(
        "strandline.node.cli.recover_status", "Show how far shards are stored, and their replay jobs."
    ),
    "verify": LazyCommand("strandline.node.cli.recover_verify", "Check what is stored against what the manifest says."),
    "work": LazyCommand("strandline.node.cli.recover_work", "Work on replay jobs until there are none."),
}


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    help=help_with(
        "Plan, run, watch and verify a recovery: the reading again of what was not stored when shards ended.",
        "strandline recover plan",
        "strandline recover run --shard 3",
        "strandline recover status --output json",
    ),
)
def command() -> None:
    """The group."""
