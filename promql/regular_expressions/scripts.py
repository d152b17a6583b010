"""Unicode scripts (Greek, Han), which Python's `unicodedata` lacks.

`scripts.txt` contains Go's `unicode.Scripts` (Unicode 15.0), which Prometheus uses: on each line, the name of a script
and its characters, as ranges of hexadecimal code points.
"""

from functools import cache
from pathlib import Path

from strandline.promql.regular_expressions.characters import Ranges

_TABLE = Path(__file__).with_name("scripts.txt")


@cache
def script(name: str) -> Ranges | None:
    """The characters of a script; None if the name is unknown."""
    text = _table().get(name)
    return tuple(map(_range, text.split())) if text is not None else None


def script_names() -> tuple[str, ...]:
    """The names of all scripts."""
    return tuple(_table())


@cache
def _table() -> dict[str, str]:
    lines = _TABLE.read_text(encoding="ascii").splitlines()
    return {name: ranges for name, _, ranges in (line.partition(" ") for line in lines)}


def _range(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first, 16), int(last or first, 16)
