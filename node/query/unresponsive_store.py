"""When it is the store that keeps a query waiting, and what is said then: a narrower query would not help."""

from collections.abc import Iterable

from strandline.node.query.queries import QueryUnavailable
from strandline.node.shard.store_health import StoreFigures
from strandline.node.status.processes import ShardProcessStatus

# In seconds: a shorter wait is usual.
_MIN_UNANSWERED_S = 1.0


def unresponsive_store_error(shard: int, store: StoreFigures, timeout_s: float) -> QueryUnavailable | None:
    """Why a query of this shard has no answer after so many seconds, if its store did not answer for half of them."""
    if store.unanswered_s < max(_MIN_UNANSWERED_S, timeout_s / 2):
        return None
    return QueryUnavailable(
        f"shard {shard} had no answer within {timeout_s:g} s, because its store ({store.name or 'unnamed'}) has not "
        f"answered for {store.unanswered_s:.0f} s",
        remedy="Check the store's servers and the network; queries work again as soon as it answers",
    )


def first_unresponsive_store_error(shards: Iterable[ShardProcessStatus], timeout_s: float) -> QueryUnavailable | None:
    """The same for the first of some shards that has such trouble, by what it last reported."""
    found = (
        unresponsive_store_error(one.shard, one.report.store, timeout_s) for one in shards if one.report is not None
    )
    return next((trouble for trouble in found if trouble is not None), None)
