"""How much an evaluation may hold in memory at once."""

from strandline.promql.values import Samples, Scalar, Value, Vector


class Budget:
    """Counts what an evaluation holds. It has no limit; a subclass refuses by raising from `hold`."""

    def __init__(self) -> None:
        self.peak = 0
        """The most cells that were held at once."""

    def hold(self, cells: int, points: int = 0) -> None:
        """So many cells are held, or are about to be; and so many points of the answer beside them. A cell takes
        8 bytes, a point 16.
        """
        self.peak = max(self.peak, cells + points)


def cells_of(value: Value | Samples) -> int:
    """How many cells a value has. A sample is one."""
    match value:
        case Vector(values=values) | Scalar(values=values):
            return int(values.size)
        case Samples(value=values):
            return len(values)
        case _:
            return 1
