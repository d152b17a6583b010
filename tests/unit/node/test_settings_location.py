import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.settings.location import key_lines

pytestmark = pytest.mark.unit

AWKWARD = """\
# a comment = 1
top = 1
"quoted key" = 'x = 1'   # [not.a.table]
'literal.key' = \"\"\"
hidden = 1 \\"\"\"
[also.hidden]\"\"\"

[kafka]   # comment ] = "
bootstrap_servers = [   # one
    "a:1",  # two = 2
    "b]:2",

    # three
]
dotted.inner.name = true
inline = { one = 1, two = "}", three = { four = [ { five = 5 } ] } }
date = 1979-05-27T07:32:00Z

  [ kafka . client ]
\t"fetch.min.bytes"\t=\t1
"caf\\u00e9" = 1
raw = '''
x = "'
y'''''
after = 'z'

[[points]]
x = 1
[[points]]
x = 2
last = [\"\"\"a\"\"\"\", '''b''''']
"""


def test_the_line_of_a_key_is_the_first_one_that_has_it() -> None:
    tomllib.loads(AWKWARD)
    assert key_lines(AWKWARD) == {
        "top": 2,
        "quoted key": 3,
        "literal.key": 4,
        "kafka": 8,
        "kafka.bootstrap_servers": 9,
        "kafka.dotted": 15,
        "kafka.dotted.inner": 15,
        "kafka.dotted.inner.name": 15,
        "kafka.inline": 16,
        "kafka.inline.one": 16,
        "kafka.inline.two": 16,
        "kafka.inline.three": 16,
        "kafka.inline.three.four": 16,
        "kafka.inline.three.four.five": 16,
        "kafka.date": 17,
        "kafka.client": 19,
        "kafka.client.fetch.min.bytes": 20,
        "kafka.client.café": 21,
        "kafka.client.raw": 22,
        "kafka.client.after": 25,
        "points": 27,
        "points.x": 28,
        "points.last": 31,
    }


def test_windows_line_ends_count_once() -> None:
    assert key_lines("a = 1\r\n\r\n[b]\r\nc = [\r\n1,\r\n]\r\nd = 2\r\n") == {"a": 1, "b": 3, "b.c": 4, "b.d": 7}


@pytest.mark.parametrize("text", ["", "\n", "# only\n# comments", "   \t\n"])
def test_a_text_without_keys_has_no_lines(text: str) -> None:
    assert key_lines(text) == {}


def test_invalid_toml_raises_an_error_instead_of_looping_forever() -> None:
    with pytest.raises(ValueError, match="not TOML at character 2"):
        key_lines("\n\n= 1")


keys = st.text(st.characters(codec="utf-8", exclude_characters="\x7f", min_codepoint=32), max_size=8).map(
    lambda key: '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'
)
texts = st.sampled_from(
    ['"a # b = c"', "'[x]'", '"""\n[x]\n# y = 1\n"""', "'''\na = 1'''", '"\\"]"', "1", "-1.5e3", "true"]
)
values = st.recursive(
    texts,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[ # a, b\n{' , '.join(items)}\n]")
        | st.dictionaries(keys, inner, max_size=3).map(
            lambda table: "{" + ", ".join(f"{key} = {value}" for key, value in table.items()) + "}"
        )
    ),
    max_leaves=5,
)


@given(st.dictionaries(keys, st.dictionaries(keys, values, max_size=4), max_size=3))
def test_the_lines_of_all_keys_are_found_in_any_document(document: dict[str, dict[str, str]]) -> None:
    text, expected = "", {}
    for table, pairs in document.items():
        expected[_name(table)] = text.count("\n") + 1
        text += f"[{table}] # a comment\n"
        for key, value in pairs.items():
            expected[f"{_name(table)}.{_name(key)}"] = text.count("\n") + 1
            text += f"  {key} = {value} # x = 1\n\n"
    tomllib.loads(text)
    lines_of_keys = key_lines(text)
    # Names with dots in them may collide with deeper keys; then the first line counts, which can't be later.
    assert all(lines_of_keys[name] <= line for name, line in expected.items())
    if not any("." in name for pairs in document.values() for name in [*document, *pairs]):
        assert {name: lines_of_keys[name] for name in expected} == expected


def _name(quoted: str) -> str:
    parsed: dict[str, Any] = tomllib.loads(f"{quoted} = 0")
    return next(iter(parsed))
