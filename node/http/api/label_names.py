"""Names of labels in a URL's path. A name that is no plain one may be escaped as Prometheus 3 does it."""

import re

from strandline.node.http.errors import BadParameter

_PREFIX = "U__"
_ESCAPED = re.compile(r"_([0-9A-Fa-f]{1,6})_|__|([^_]+)")
_LONGEST = 32_766


def label_name_of(written: str) -> str:
    """The name that a path means. Raises `BadParameter`."""
    name = unescaped(written) if written.startswith(_PREFIX) else written
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        raise BadParameter("the label's name is not UTF-8") from None
    if not 0 < length <= _LONGEST:
        raise BadParameter(f"a label's name has from 1 to {_LONGEST} bytes, and this one {length}")
    return name


def unescaped(written: str) -> str:
    """`U__a_2E_b` is `a.b`: two underscores stand for one, a number between two for a character. What is not escaped
    like that is a name as it stands.
    """
    found: list[str] = []
    position = len(_PREFIX)
    while position < len(written):
        part = _ESCAPED.match(written, position)
        if part is None:
            return written
        code = int(part[1], 16) if part[1] else -1
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            return written
        found.append(chr(code) if part[1] else part[2] or "_")
        position = part.end()
    return "".join(found)
