"""Label sets as error messages show them."""

import re
from typing import Final

from strandline.index.documents import decode_part_key
from strandline.promql.go_text import quoted

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def shown_labels(key: bytes) -> str:
    """As Prometheus has it: {__name__="up", job="api"}."""
    labels = decode_part_key(key).items()
    return "{" + ", ".join(f"{_shown_name(name)}={quoted(value)}" for name, value in labels) + "}"


def _shown_name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else quoted(name)
