"""How many series and samples a question may be about."""

from strandline.node.query.queries import QueryTooLarge


def check_series(found: int, most: int) -> None:
    """Refuse more series than are allowed."""
    if found > most:
        raise QueryTooLarge(
            f"the selector matches {found:,} series, and a query may read samples of {most:,}",
            remedy="Narrow the selector or the time range, or raise query.max_series",
        )


def check_samples(found: int, most: int, *, at_least: bool = False) -> None:
    """Refuse more samples than are allowed."""
    if found > most:
        raise QueryTooLarge(
            f"the query reads {'at least ' if at_least else ''}{found:,} samples, and {most:,} are allowed",
            remedy="Narrow the selector or the time range, or raise query.max_samples",
        )
