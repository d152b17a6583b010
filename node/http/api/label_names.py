"""Label names in a URL's path. They may be escaped as in Prometheus 3."""

import re

from strandline.node.http.errors import BadParameter

_PREFIX = "U__"
_ESCAPED = re.compile(r"_([0-9A-Fa-f]{1,6})_|__|([^_]+)")
_MAX_LENGTH = 32_766


def label_name_of(written: str) -> str:
    """The label name of a path segment. Raises `BadParameter`."""
    name = unescaped(written) if written.startswith(_PREFIX) else written
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        raise BadParameter("the label's name is not UTF-8") from None
    if not 0 < length <= _MAX_LENGTH:
        raise BadParameter(f"a label's name has from 1 to {_MAX_LENGTH} bytes, and this one {length}")
    return name


def unescaped(written: str) -> str:
    """`U__a_2E_b` is `a.b`: two underscores mean one, and a hexadecimal number between two underscores a character. A
    name that is not a valid escape is returned as it is.
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
