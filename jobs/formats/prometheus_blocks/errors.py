"""The error for a block that can't be read at all."""

from strandline.jobs.formats.byte_ranges import UnreadableSource

REMEDY = "Copy the block again, or move its folder away to import the other blocks"


class DamagedBlock(UnreadableSource):
    """A file that is required to read a block is missing, truncated or damaged."""

    def __init__(self, path: str, position: int | None, reason: str) -> None:
        """`position` is the byte offset of the fault in the file, if known."""
        place = path if position is None else f"{path} at byte {position}"
        super().__init__(f"{place}: {reason}", remedy=REMEDY)
