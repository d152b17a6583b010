"""Columns of label sets, compared with plain Python."""

import random

import numpy as np
import pytest

from strandline.index.documents import decode_part_key, encode_part_key
from strandline.index.key_bytes import KeyBytes
from strandline.promql.errors import EvaluationError
from strandline.promql.labels import (
    GroupTable,
    Texts,
    check_distinct,
    first_duplicate,
    groups,
    is_valid_label_name,
    keeping,
    label_join,
    label_values,
    signatures,
    with_label,
    without,
    without_name,
)

pytestmark = pytest.mark.unit

NAMES = ("__name__", "__type__", "a", "ab", "instance", "job", "le", "long_label_name", "zone", "ä.b")


def made(*label_sets: dict[str, str]) -> KeyBytes:
    keys = [encode_part_key(labels) for labels in label_sets]
    return KeyBytes(
        np.cumsum([0, *map(len, keys)], dtype=np.int64), np.frombuffer(bytearray(b"".join(keys)), dtype=np.uint8)
    )


def read(keys: KeyBytes) -> list[dict[str, str]]:
    """The label sets; each is checked to be in canonical form."""
    decoded = [decode_part_key(keys.key(position)) for position in range(len(keys))]
    assert [encode_part_key(labels) for labels in decoded] == [keys.key(position) for position in range(len(keys))]
    return decoded


def some_labels(source: random.Random) -> dict[str, str]:
    names = source.sample(NAMES, source.randrange(len(NAMES)))
    return {name: source.choice(("x", "y", "a value of twenty bytes", "ü")) for name in names}


def some_sets(source: random.Random) -> list[dict[str, str]]:
    return [some_labels(source) for _ in range(source.randrange(40))]


@pytest.mark.parametrize("seed", range(30))
def test_labels_are_kept_dropped_and_grouped_by_name(seed: int) -> None:
    source = random.Random(seed)  # noqa: S311 - not for secrets
    label_sets, names = some_sets(source), source.sample((*NAMES, "absent"), source.randrange(6))
    keys = made(*label_sets)
    kept = [{name: value for name, value in labels.items() if name in names} for labels in label_sets]
    rest = [{name: value for name, value in labels.items() if name not in names} for labels in label_sets]
    nameless = [{name: value for name, value in labels.items() if name != "__name__"} for labels in rest]
    # Keys are in canonical order, random label sets are not; they are compared as dictionaries.
    assert read(keeping(keys, names)) == kept
    assert read(without(keys, names)) == rest
    for is_without, expected in ((False, kept), (True, nameless)):
        found = groups(keys, names, is_without=is_without)
        distinct = list({tuple(sorted(labels.items())): labels for labels in expected}.values())
        assert read(found.keys) == distinct
        assert [distinct[group] for group in found.group_of.tolist()] == expected


def test_groups_of_blocks_are_those_of_the_whole() -> None:
    source = random.Random(1)  # noqa: S311 - not for secrets
    label_sets = [{"__name__": "m", "job": str(source.randrange(500)), "i": str(i)} for i in range(3000)]
    complete = groups(made(*label_sets), ["job"], is_without=False)
    table = GroupTable.of_aggregation(["job"], is_without=False)
    parts = [table.add(made(*label_sets[start : start + 170])) for start in range(0, 3000, 170)]
    assert np.concatenate(parts).tolist() == complete.group_of.tolist()
    assert read(table.keys) == read(complete.keys)
    assert len(table) == 500


def test_returned_keys_do_not_change_when_groups_are_added() -> None:
    table = GroupTable.of_whole_keys()
    table.add(made({"a": "1"}))
    before = table.keys
    table.add(made(*({"a": str(i), "b": "x" * 100} for i in range(200))))
    assert read(before) == [{"a": "1"}]


def test_functions_drop_the_metadata_labels() -> None:
    keys = made({"__name__": "m", "__type__": "counter", "__unit__": "s", "__other__": "o", "a": "1"}, {"a": "2"})
    assert read(without_name(keys)) == [{"__other__": "o", "a": "1"}, {"a": "2"}]


def test_sides_match_by_the_labels_of_on_and_by_all_but_name_and_those_of_ignoring() -> None:
    left = made({"__name__": "l", "job": "a", "i": "1"}, {"__name__": "l", "job": "b", "i": "1"})
    right = made({"__name__": "r", "job": "b", "i": "1"}, {"__name__": "r", "job": "a", "i": "2"}, {"__name__": "r"})
    (one, other), keys = signatures((left, right), ["job"], is_on=True)
    assert (one.tolist(), other.tolist()) == ([0, 1], [1, 0, 2])
    assert read(keys) == [{"job": "a"}, {"job": "b"}, {}]
    (one, other), keys = signatures((left, right), ["job"], is_on=False)
    assert (one.tolist(), other.tolist()) == ([0, 0], [0, 1, 2])
    assert read(keys) == [{"i": "1"}, {"i": "2"}, {}]
    # `on` may name the metric's name.
    (one, other), _ = signatures((left, right), ["__name__"], is_on=True)
    assert (one.tolist(), other.tolist()) == ([0, 0], [1, 1, 1])


def test_duplicate_label_sets_are_found_and_rejected() -> None:
    keys = made({"a": "1"}, {"a": "2"}, {"b": "1"}, {"a": "2"}, {"a": "1"}, {})
    assert first_duplicate(keys) == (1, 3)
    with pytest.raises(EvaluationError, match="vector cannot contain metrics with the same labelset"):
        check_distinct(keys)
    check_distinct(made({"a": "1"}, {"a": "2"}, {}))
    check_distinct(made())
    with pytest.raises(EvaluationError):
        check_distinct(made({}, {}))


@pytest.mark.parametrize("seed", range(20))
def test_one_label_is_read_and_set(seed: int) -> None:
    source = random.Random(seed)  # noqa: S311 - not for secrets
    label_sets = some_sets(source)
    keys = made(*label_sets)
    for name in (*NAMES, "zzz"):
        values = label_values(keys, name)
        assert [values.text(i).decode() for i in range(len(keys))] == [labels.get(name, "") for labels in label_sets]
        new = [source.choice(("", "v", "a rather long value")) for _ in label_sets]
        expected = [{**labels, name: value} for labels, value in zip(label_sets, new, strict=True)]
        assert read(with_label(keys, name, Texts.of(value.encode() for value in new))) == [
            {label: value for label, value in labels.items() if value} for labels in expected
        ]


def test_keys_may_share_a_value_or_keep_their_own() -> None:
    keys = made({"a": "1"}, {"a": "2", "b": "x"}, {"b": "y"})
    changed = with_label(keys, "a", Texts.of([b"", b"new"]), np.array([1, -1, 0]))
    assert read(changed) == [{"a": "new"}, {"a": "2", "b": "x"}, {"b": "y"}]


def test_a_value_that_no_key_can_hold_is_refused() -> None:
    keys = made({"a": "1"})
    assert len(read(with_label(keys, "b", Texts.of([b"x" * 0xFFFF])))[0]["b"]) == 0xFFFF
    with pytest.raises(EvaluationError, match="'b' would be 65536 bytes long"):
        with_label(keys, "b", Texts.of([b"x" * 0x10000]))


def test_values_of_labels_are_joined_with_a_separator() -> None:
    keys = made({"a": "1", "b": "2"}, {"b": "3", "joined": "old"}, {})
    assert read(label_join(keys, "joined", "-", ["a", "b", "a"])) == [
        {"a": "1", "b": "2", "joined": "1-2-1"},
        {"b": "3", "joined": "-3-"},
        {"joined": "--"},
    ]
    # Without sources, and without values, the label is deleted.
    assert read(label_join(keys, "b", "-", [])) == [{"a": "1"}, {"joined": "old"}, {}]
    assert read(label_join(keys, "a", "", ["a"])) == [{"a": "1", "b": "2"}, {"b": "3", "joined": "old"}, {}]


def test_names_of_labels_are_any_text_that_utf_8_can_write() -> None:
    assert is_valid_label_name("my.label ä")
    assert not is_valid_label_name("")
    assert not is_valid_label_name("\ud800")
    with pytest.raises(EvaluationError, match=r"invalid destination label name in label_join\(\): $"):
        label_join(made({}), "", "-", ["a"])
    with pytest.raises(EvaluationError, match=r"invalid source label name in label_join\(\)"):
        label_join(made({}), "a", "-", ["a", ""])
