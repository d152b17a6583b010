"""The error of a query that timed out because the store does not answer. A narrower query would not help then."""

from collections.abc import Iterable

from strandline.node.query.queries import QueryUnavailable
from strandline.node.shard.store_health import StoreFigures
from strandline.node.status.processes import ShardProcessStatus

# Shorter waits are normal.
_MIN_UNANSWERED_S = 1.0


def unresponsive_store_error(shard: int, store: StoreFigures, timeout_s: float) -> QueryUnavailable | None:
    """The error of a query of this shard that timed out, if its store has not answered for half of the time."""
    if store.unanswered_s < max(_MIN_UNANSWERED_S, timeout_s / 2):
        return None
    return QueryUnavailable(
        f"shard {shard} had no answer within {timeout_s:g} s, because its store ({store.name or 'unnamed'}) has not "
        f"answered for {store.unanswered_s:.0f} s",
        remedy="Check the store's servers and the network; queries work again as soon as it answers",
    )


def first_unresponsive_store_error(shards: Iterable[ShardProcessStatus], timeout_s: float) -> QueryUnavailable | None:
    """The same for the first of these shards whose store does not answer, by its last report."""
    errors = (
        unresponsive_store_error(one.shard, one.report.store, timeout_s) for one in shards if one.report is not None
    )
    return next((error for error in errors if error is not None), None)
