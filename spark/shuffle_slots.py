"""Numbers that Spark's shuffle sends to a chosen partition.

Spark partitions rows by the hash of a column, and has no way to specify the partition. Several units in one task would
leave other cores idle, so each unit gets a number whose hash gives it its own partition. If Spark's hash ever changes,
units share tasks, which costs time but nothing else.
"""

_SEED = 42
_MASK = 0xFFFF_FFFF


def shuffle_slots(partitions: int) -> list[int]:
    """For each partition, the lowest number that Spark hashes to it."""
    found: dict[int, int] = {}
    number = 0
    while len(found) < partitions:
        found.setdefault(_signed(spark_hash(number)) % partitions, number)
        number += 1
    return [found[partition] for partition in range(partitions)]


def spark_hash(number: int) -> int:
    """Murmur3 of an int column like Spark's `hash`, but unsigned."""
    word = (number * 0xCC9E2D51) & _MASK
    word = _rotated(word, 15) * 0x1B873593 & _MASK
    mixed = (_rotated(_SEED ^ word, 13) * 5 + 0xE6546B64) & _MASK
    mixed ^= 4  # The length of an int.
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _MASK
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _MASK
    return mixed ^ mixed >> 16


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & _MASK


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word
