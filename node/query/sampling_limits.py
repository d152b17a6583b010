"""Checks of `query.max_series` and `query.max_samples`."""

from strandline.node.query.queries import TooManySamples, TooManySeries


def check_series(found: int, limit: int) -> None:
    """Raises `TooManySeries` above the limit."""
    if found > limit:
        raise TooManySeries(found, limit)


def check_samples(found: int, limit: int, *, at_least: bool = False) -> None:
    """Raises `TooManySamples` above the limit. `at_least`: there may be more than `found`."""
    if found > limit:
        raise TooManySamples(found, limit, at_least=at_least)
