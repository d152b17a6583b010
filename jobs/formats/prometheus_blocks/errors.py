"""What makes a whole block unreadable, in one error."""

from strandline.jobs.formats.byte_ranges import UnreadableSource

REMEDY = "Copy the block again from its origin, or move its folder away to import the other blocks"


class DamagedBlock(UnreadableSource):
    """A file without which a block can't be read is missing, truncated or damaged."""

    def __init__(self, path: str, position: int | None, reason: str) -> None:
        """`position` is the byte of the file where the reason was found, if it has one."""
        place = path if position is None else f"{path} at byte {position}"
        super().__init__(f"{place}: {reason}", remedy=REMEDY)
