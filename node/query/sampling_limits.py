"""How many series and samples a question may be about."""

from strandline.node.query.queries import TooManySamples, TooManySeries


def check_series(found: int, most: int) -> None:
    """Refuse more series than are allowed."""
    if found > most:
        raise TooManySeries(found, most)


def check_samples(found: int, most: int, *, at_least: bool = False) -> None:
    """Refuse more samples than are allowed."""
    if found > most:
        raise TooManySamples(found, most, at_least=at_least)
