"""What a shell may offer for labels and selectors: names that the node knows, if it answers at once.

Whatever goes wrong, nothing is offered, and nothing is said: a person is in the middle of a line.
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

Ask = Callable[[NodeClient], tuple[str, ...]]


def complete_label(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of labels."""

    def ask(client: NodeClient) -> tuple[str, ...]:
        return client.label_names((), TimeBounds(), 0).items

    return _offered(context, incomplete, ask)


def complete_selector(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of metrics, as long as nothing else has begun."""
    if not _PARTIAL_METRIC.fullmatch(incomplete):
        return []
    # Nothing in what has begun means anything in an expression.
    selectors = (f"{{{METRIC_NAME}=~{quoted(incomplete + '.*')}}}",) if incomplete else ()

    def ask(client: NodeClient) -> tuple[str, ...]:
        return client.label_values(METRIC_NAME, selectors, TimeBounds(), _MAX_COMPLETIONS).items

    return _offered(context, incomplete, ask)


def _offered(context: click.Context, incomplete: str, ask: Ask) -> list[str]:
    ours, given = context.find_object(Context), context.params
    if ours is None:
        return []
    place = NodeLocation(given.get("url"), given.get("token_file"), given.get("ca_file"))
    try:
        with closing(place.client(ours, _TIMEOUT_S)) as client:
            names = ask(client)
    except StrandlineError:
        return []
    # A shell takes what is offered as it stands.
    return [name for name in names if name.startswith(incomplete) and _SHELL_SAFE.fullmatch(name)][:_MAX_COMPLETIONS]
