"""A handful of keys as JSON: what Python's own writer makes of their labels."""

from collections.abc import Iterator

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.documents import AskedOfKeys, PartKeyBatch, encode_part_key
from strandline.index.key_lookup import packed_selectors, packed_values
from strandline.index.matchers import Matcher, MatchOp
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.vm import start_vm

pytestmark = pytest.mark.unit

# Every character of ASCII, and such that take two, three and four bytes; beside an escape before and behind them.
ODD = [chr(code) for code in range(1, 128)] + ["é", "\u2028", "\U0001f600", 'é"\n', '\\\U0001f600"', "\uffffé\t"]
GROUPED = [{"group": f"g{number % 7}", "n": str(number), "odd" + "x" * (number % 3): "v"} for number in range(40)]
KEYS = [{"id": str(place), "odd": text} for place, text in enumerate(ODD)]
KEYS += [{"id": "name", text: "v"} for text in ODD if text != '"'] + GROUPED


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PartKeyIndex]:
    start_vm()
    with PartKeyIndex.open(tmp_path_factory.mktemp("json")) as opened:
        keys = [encode_part_key(labels) for labels in KEYS]
        for first in range(0, len(keys), 100):
            ids = range(first, min(first + 100, len(keys)))
            opened.add(PartKeyBatch.of(ids, [(1, i) for i in ids], [keys[i] for i in ids]))
            opened.refresh()
        yield opened


def expected(found: list[dict[str, str]], asked: AskedOfKeys, label: str) -> bytes:
    if asked is AskedOfKeys.SERIES:
        return orjson.dumps(sorted(({**dict(sorted(one.items()))} for one in found), key=lambda one: list(one.items())))
    if asked is AskedOfKeys.NAMES:
        return orjson.dumps(sorted({name for one in found for name in one}))
    return orjson.dumps(sorted({one[label] for one in found if label in one}))


@pytest.mark.parametrize("asked", AskedOfKeys)
@pytest.mark.parametrize("label", ["odd", "id", "none"])
def test_one_key_is_written_as_python_writes_it(index: PartKeyIndex, asked: AskedOfKeys, label: str) -> None:
    for place in range(len(ODD)):
        found = index.few_as_json(packed_values([("id", str(place))]), 5, asked, label, 100)
        assert found is not None
        assert (found.part_ids, found.text) == ((place,), expected([KEYS[place]], asked, label))


@given(
    st.sampled_from(AskedOfKeys),
    st.sampled_from(["n", "group", "oddx", "none"]),
    st.lists(st.integers(0, 8), min_size=1, max_size=3),
    st.tuples(st.integers(0, 30), st.integers(0, 40)),
)
def test_several_come_each_once_and_in_order(
    index: PartKeyIndex, asked: AskedOfKeys, label: str, groups: list[int], bounds: tuple[int, int]
) -> None:
    most, limit = bounds
    packed = packed_selectors([[Matcher("group", MatchOp.EQUAL, f"g{group}")] for group in groups])
    assert packed is not None
    meant = [labels for labels in GROUPED if labels["group"] in {f"g{group}" for group in groups}]
    text = expected(meant, asked, label)
    found = index.few_as_json(packed, most, asked, label, limit)
    if len(meant) > most or len(orjson.loads(text)) > limit:
        assert found is None
    else:
        assert found is not None
        assert found.text == text
        assert sorted(found.part_ids) == [KEYS.index(labels) for labels in meant]


def test_names_with_odd_characters_are_escaped_and_many_keys_are_too_many(index: PartKeyIndex) -> None:
    packed = packed_values([("id", "name")])
    assert index.few_as_json(packed, 20, AskedOfKeys.NAMES, "", 1000) is None
    found = index.few_as_json(packed, 1000, AskedOfKeys.NAMES, "", 1000)
    assert found is not None
    named = [labels for labels in KEYS if labels.get("id") == "name"]
    assert found.text == expected(named, AskedOfKeys.NAMES, "")
