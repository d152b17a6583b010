"""Part keys in the order in which Prometheus compares label sets."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from strandline.index.documents import encode_part_key
from strandline.index.key_bytes import KeyBytes, in_label_order, label_order, take_keys

pytestmark = pytest.mark.unit

# Texts that have long common prefixes, end within eight bytes, or contain the zero byte, which is not padding.
TEXTS = st.builds(
    lambda shared, rest: shared + rest,
    st.sampled_from(["", "abcdefg", "abcdefgh", "abcdefghi", "abcdefghabcdefgh"]),
    st.text(st.sampled_from("\0ab\u00e9\U0001f600"), max_size=4),
)
LABELS = st.dictionaries(TEXTS.filter(bool), TEXTS.filter(bool), max_size=4)


def key_bytes(parts: list[bytes]) -> KeyBytes:
    offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return KeyBytes(offsets, np.frombuffer(b"".join(parts), dtype=np.uint8))


def by_labels(labels: dict[str, str]) -> list[tuple[bytes, bytes]]:
    """As Go compares: bytes of names and values, pair by pair, and a prefix of the pairs first."""
    return sorted((name.encode(), value.encode()) for name, value in labels.items())


@given(st.lists(LABELS, max_size=40))
@example([{"a": "x", "b": "y"}, {"a": "x"}, {}, {"a": "x\0"}, {"a": "x"}])
@example([{"a": "abcdefgh" * 3 + end} for end in ("", "\0", "a", "b", "\0\0", "abcdefgh")])
def test_keys_are_in_the_order_of_their_labels(some: list[dict[str, str]]) -> None:
    keys = key_bytes([encode_part_key(labels) for labels in some])
    order = label_order(keys).tolist()
    assert sorted(order) == list(range(len(some)))
    assert [by_labels(some[index]) for index in order] == sorted(map(by_labels, some))


def test_many_keys_with_a_long_common_beginning_are_sorted() -> None:
    generator = np.random.default_rng(3)
    numbers = generator.permutation(5_000)
    some = [{"__name__": "metric_of_a_fleet", "pod": f"pod-{number:06}", "z": "last"} for number in numbers.tolist()]
    keys = key_bytes([encode_part_key(labels) for labels in some])
    assert numbers[label_order(keys)].tolist() == list(range(5_000))


def test_keys_are_taken_in_the_order_of_their_positions() -> None:
    keys = take_keys(key_bytes([b"a", b"", b"ccc", b"dd"]), np.array([3, 1, 0, 3]))
    assert [keys.key(position) for position in range(len(keys))] == [b"dd", b"", b"a", b"dd"]
    assert len(take_keys(keys, np.empty(0, dtype=np.int64))) == 0


@given(st.lists(LABELS, max_size=3), st.integers(0, 2), st.integers(0, 3))
def test_keys_in_order_have_no_bytes_but_their_own(some: list[dict[str, str]], first: int, behind: int) -> None:
    keys = key_bytes([encode_part_key(labels) for labels in some])
    part = KeyBytes(keys.offsets[first : max(first, behind) + 1], keys.data) if first <= len(some) else keys
    ordered = in_label_order(part)
    assert sorted(part.key(position) for position in range(len(part))) == sorted(map(ordered.key, range(len(ordered))))
    assert (ordered.offsets[0], ordered.offsets[-1]) == (0, len(ordered.data))
