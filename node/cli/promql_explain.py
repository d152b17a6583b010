"""`strandline promql explain QUERY`: the plan of a query."""

from functools import partial
from pathlib import Path

import click

from strandline.errors import ExitCode
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.node_options import NODE_EXIT_CODES, NodeLocation, connected_client, node_options, print_report
from strandline.node.cli.options import Command, help_with
from strandline.node.cli.query_times import QueryTimeOptions, query_time_options
from strandline.node.client.answers import SelectorSize
from strandline.node.client.node_client import NodeClient, TimeBounds
from strandline.node.promql_tools.plan_report import PlanReport
from strandline.node.promql_tools.queries import read
from strandline.promql.engine import prepare
from strandline.promql.plan.explaining import ShardFragment, explain
from strandline.promql.plan.query_times import QueryTimes
from strandline.promql.printing import print_expression


@click.command(
    cls=Command,
    help=help_with(
        "Show the plan of a query: the fragments that every shard evaluates over its own series, the samples that "
        "they read, and what the front evaluates on their results. With --url, a node reports how many series each "
        "selector matches in the time range, and about how many samples they have; nothing is evaluated.",
        "strandline promql explain 'sum by (job) (rate(http_requests_total[5m]))'",
        "strandline promql explain 'topk(3, up) / on (job) group_left up' --start -1h --step 1m",
        "strandline promql explain up --url http://127.0.0.1:9460",
    ),
    epilog=exit_codes(NODE_EXIT_CODES),
)
@click.argument("query")
@query_time_options
@node_options
@pass_context
def command(
    context: Context,
    *,
    query: str,
    time: str | None,
    start: str | None,
    end: str | None,
    step: str | None,
    url: str | None,
    token_file: Path | None,
    ca_file: Path | None,
) -> ExitCode:
    """Explain."""
    written, now = QueryTimeOptions(time, start, end, step), context.clock.now_ms()
    steps = written.steps(now)
    times = QueryTimes.instant(written.moment(now)) if steps is None else QueryTimes(steps.start, steps.end, steps.step)
    prepared = read(query, partial(prepare, times=times))
    plan, text = explain(prepared), print_expression(prepared.expression)
    if url is None:
        return print_report(context, PlanReport.of(text, times, plan))
    with connected_client(context, NodeLocation(url, token_file, ca_file)) as client:
        sizes, warnings = _sizes(client, plan.fragments)
    return print_report(context, PlanReport.of(text, times, plan, sizes, warnings))


def _sizes(client: NodeClient, fragments: tuple[ShardFragment, ...]) -> tuple[dict[int, SelectorSize], tuple[str, ...]]:
    """The size of each fragment's selector, and the node's warnings."""
    sizes, warnings = dict[int, SelectorSize](), dict[str, None]()
    for one in fragments:
        answer = client.selector_size(one.selector, TimeBounds(one.first, one.last))
        sizes[one.number] = answer.items[0]
        warnings |= dict.fromkeys(answer.warnings)
    return sizes, tuple(warnings)
