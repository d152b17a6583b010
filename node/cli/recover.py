"""`strandline recover plan | run | status | verify | work`: recovery of shards, and verification."""

import click

from strandline.node.cli.options import LazyCommand, LazyGroup, help_with

COMMANDS = {
    "plan": LazyCommand("strandline.node.cli.recover_plan", "Show what a start would replay. Changes nothing."),
    "run": LazyCommand("strandline.node.cli.recover_run", "Catch up shards whose node is down."),
    "status": LazyCommand("strandline.node.cli.recover_status", "Show checkpoints of shards, and their replay jobs."),
    "verify": LazyCommand(
        "strandline.node.cli.recover_verify", "Check that what is stored is complete and consistent."
    ),
    "work": LazyCommand("strandline.node.cli.recover_work", "Work on replay jobs until none are left."),
}


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    help=help_with(
        "Plan, run, monitor and verify a recovery: reading the records again that were not stored when shards ended.",
        "strandline recover plan",
        "strandline recover run --shard 3",
        "strandline recover status --output json",
    ),
)
def command() -> None:
    """The group."""
