"""`strandline offsets show | history | rewind`: shows the checkpoints of shards, and rewinds them."""

import click

from strandline.errors import ExitCode
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Group, help_with, take_option
from strandline.node.offsets.deployment import open_deployment
from strandline.node.offsets.history import history as history_of
from strandline.node.offsets.rewinding import do_rewind, show_rewind
from strandline.node.offsets.showing import show as shown
from strandline.recovery.periods import parse_moment
from strandline.recovery.rewinding import Target, ToBucket, ToOffset, ToTime


@click.group(
    cls=Group,
    help=help_with(
        "Show how far each shard is stored and how long Kafka keeps the rest, or rewind a shard to read records again.",
        "strandline offsets show",
        "strandline offsets history 0",
        "strandline offsets rewind 0 --to-time 2026-11-15T10",
    ),
)
def command() -> None:
    """The group."""


@command.command(
    help=help_with(
        "Show the owner of each shard, its checkpoints, the start and end of its log, and how long Kafka is guaranteed "
        "to keep the records that are not stored.",
        "strandline offsets show",
        "strandline offsets show 3 --output json",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE)),
)
@click.argument("shard", type=click.IntRange(min=0), required=False)
@pass_context
def show(context: Context, *, shard: int | None) -> None:
    """Show the checkpoints."""
    with open_deployment(context.settings(), context.environ, context.clock) as deployment:
        context.output.result(shown(deployment, shard))


@command.command(
    help=help_with(
        "Show a shard's buckets, newest first: their offsets, what is stored, by which owner, and what was lost.",
        "strandline offsets history 0",
        "strandline offsets history 3 --limit 200 --output json",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE)),
)
@click.argument("shard", type=click.IntRange(min=0))
@click.option("--limit", type=click.IntRange(min=1), default=24, show_default=True, help="Number of buckets.")
@pass_context
def history(context: Context, *, shard: int, limit: int) -> None:
    """Show the buckets."""
    with open_deployment(context.settings(), context.environ, context.clock) as deployment:
        context.output.result(history_of(deployment, shard, limit))


@command.command(
    help=help_with(
        "Make a shard read again from the cut between two buckets, and store the records again. Queries don't find the "
        "samples from there on until the shard has started and read them again. Without --yes, only shows what would "
        "be read again.",
        "strandline offsets rewind 0 --to-time 2026-11-15T10",
        "strandline offsets rewind 0 --to-time 2026-11-15T10 --yes",
        "strandline offsets rewind 0 --to-bucket 498538 --yes --take",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.FENCED)),
)
@click.argument("shard", type=click.IntRange(min=0))
@click.option("--to-time", metavar="TIME", help="Rewind to the newest cut that is not after this UTC time.")
@click.option(
    "--to-offset", metavar="OFFSET", type=click.IntRange(min=0), help="Rewind to this offset, which must be a cut."
)
@click.option("--to-bucket", metavar="BUCKET", type=click.IntRange(min=0), help="Rewind to the start of this bucket.")
@click.option("--yes", is_flag=True, help="Perform the rewind.")
@take_option
@pass_context
def rewind(
    context: Context,
    *,
    shard: int,
    to_time: str | None,
    to_offset: int | None,
    to_bucket: int | None,
    yes: bool,
    take: bool,
) -> ExitCode:
    """Rewind."""
    target = _target(to_time, to_offset, to_bucket)
    with open_deployment(context.settings(), context.environ, context.clock) as deployment:
        if not yes:
            context.output.result(show_rewind(deployment, shard, target))
            # Not OK: a script without --yes must not conclude that the rewind was done.
            return ExitCode.USAGE
        context.output.result(do_rewind(deployment, shard, target, by_force=take))
    return ExitCode.OK


def _target(to_time: str | None, to_offset: int | None, to_bucket: int | None) -> Target:
    targets: list[Target] = []
    targets += [ToTime(parse_moment(to_time))] if to_time is not None else []
    targets += [ToOffset(to_offset)] if to_offset is not None else []
    targets += [ToBucket(to_bucket)] if to_bucket is not None else []
    if len(targets) != 1:
        raise click.UsageError("Give exactly one of --to-time, --to-offset and --to-bucket")
    return targets[0]
