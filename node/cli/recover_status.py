"""`strandline recover status`: shows the checkpoints of shards and the state of their replay jobs."""

from contextlib import closing

import click

from strandline.errors import ExitCode, Fatal
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with
from strandline.node.recovering.status_report import RecoverStatus, clock_differences, known_shards, shard_status
from strandline.node.shard.assembling import open_store
from strandline.store.rows import ShardId


class NoSuchDataset(Fatal):
    """The store does not have the dataset."""


@click.command(
    cls=Command,
    help=help_with(
        "Show the owner of each shard, its checkpoints, and its replay jobs: state, epoch, worker, remaining lease, "
        "failures and the reason of the last one. Only reads the store. The exit code is 1 if a replay has stopped.",
        "strandline recover status",
        "strandline recover status --shard 3 --output json",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE)),
)
@click.option("--shard", "shards", metavar="N", type=click.IntRange(min=0), multiple=True, help="Only these shards.")
@pass_context
def command(context: Context, *, shards: tuple[int, ...]) -> ExitCode:
    """Show the status."""
    settings = context.settings()
    dataset = settings.dataset.name
    with closing(open_store(settings, settings.shard.data_folder(context.environ), context.clock)) as store:
        shape = store.dataset(dataset)
        if shape is None:
            raise NoSuchDataset(
                f"the store has no dataset {dataset!r}",
                remedy="Its first shard creates it; or check dataset.name and the store in the settings",
            )
        report = RecoverStatus(
            dataset,
            tuple(
                shard_status(store, ShardId(dataset, shard), shape.groups, context.clock.now_ms())
                for shard in (sorted(set(shards)) or known_shards(store, shape))
            ),
            clock_differences(store, context.clock.now_ms()),
        )
    context.output.result(report)
    return report.exit_code
