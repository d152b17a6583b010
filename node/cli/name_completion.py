"""Shell completion of labels and metrics, from a node that answers within half a second.

Errors give no completions and no message, because the user is typing a command line.
"""

import re
from collections.abc import Callable
from contextlib import closing

import click

from strandline.errors import StrandlineError
from strandline.node.cli.context import Context
from strandline.node.cli.node_options import NodeLocation
from strandline.node.client.node_client import NodeClient, TimeBounds
from strandline.node.client.notation import METRIC_NAME, quoted

_TIMEOUT_S = 0.5
_MAX_COMPLETIONS = 200
_PARTIAL_METRIC = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*|", re.ASCII)
_SHELL_SAFE = re.compile(r"[A-Za-z0-9_:.-]+", re.ASCII)

Lookup = Callable[[NodeClient], tuple[str, ...]]


def complete_label(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Label names."""

    def look_up(client: NodeClient) -> tuple[str, ...]:
        return client.label_names((), TimeBounds(), 0).items

    return _completions(context, incomplete, look_up)


def complete_selector(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Metric names, as long as the text is a prefix of one."""
    if not _PARTIAL_METRIC.fullmatch(incomplete):
        return []
    # The prefix has no characters that are special in a regular expression.
    selectors = (f"{{{METRIC_NAME}=~{quoted(incomplete + '.*')}}}",) if incomplete else ()

    def look_up(client: NodeClient) -> tuple[str, ...]:
        return client.label_values(METRIC_NAME, selectors, TimeBounds(), _MAX_COMPLETIONS).items

    return _completions(context, incomplete, look_up)


def _completions(context: click.Context, incomplete: str, look_up: Lookup) -> list[str]:
    ours, given = context.find_object(Context), context.params
    if ours is None:
        return []
    place = NodeLocation(given.get("url"), given.get("token_file"), given.get("ca_file"))
    try:
        with closing(place.client(ours, _TIMEOUT_S)) as client:
            names = look_up(client)
    except StrandlineError:
        return []
    # Shells insert completions without quoting.
    return [name for name in names if name.startswith(incomplete) and _SHELL_SAFE.fullmatch(name)][:_MAX_COMPLETIONS]
