"""Accounting of the memory that an evaluation uses."""

from strandline.promql.values import Samples, Scalar, Value, Vector


class Budget:
    """Tracks how much an evaluation holds in memory. This class has no limit; a subclass raises in `hold`."""

    def __init__(self) -> None:
        self.peak = 0
        """The maximum number of cells that were held at once."""

    def hold(self, cells: int, points: int = 0) -> None:
        """Called with the number of cells that are held, or are about to be allocated, and of points in the answer. A
        cell takes 8 bytes, a point 16.
        """
        self.peak = max(self.peak, cells + points)


def cells_of(value: Value | Samples) -> int:
    """The number of cells in a value. A sample counts as one cell."""
    match value:
        case Vector(values=values) | Scalar(values=values):
            return int(values.size)
        case Samples(value=values):
            return len(values)
        case _:
            return 1
