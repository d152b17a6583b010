"""Which partitions of the topic a node does not serve: its answers lack their series. Pure."""

from collections.abc import Collection, Sequence


def unserved(partitions: int | None, served: Collection[int]) -> tuple[int, ...]:
    """The partitions that the node does not serve; empty while the number of partitions is unknown, or without
    shards.
    """
    if partitions is None or not served:
        return ()
    return tuple(partition for partition in range(partitions) if partition not in served)


def unserved_in_words(missing: Sequence[int], partitions: int | None) -> str:
    """As in "this node does not serve partitions 1-2 of 4"."""
    noun = "partition" if len(missing) == 1 else "partitions"
    return f"this node does not serve {noun} {ranges(missing)} of {partitions}"


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers in the notation of `node.shards`: "0-3, 7"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)
