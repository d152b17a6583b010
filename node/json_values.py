"""Converts any value to JSON types: text, numbers, booleans, null, lists and mappings of these.

Reports and log events contain dataclasses, paths, dates and enums. Both are converted here, so a value looks the same
everywhere.
"""

import dataclasses
import math
from collections.abc import Mapping, Set
from datetime import date
from enum import Enum
from pathlib import PurePath
from uuid import UUID


def json_value(value: object) -> object:
    """`value` in JSON types. A value without a JSON form becomes its repr, and a reference to a containing value "...".
    Raises only if the repr of a value raises.
    """
    return _json_value(value, ())


def _json_value(value: object, containers: tuple[int, ...]) -> object:
    if id(value) in containers:
        return "..."
    inside = (*containers, id(value))
    shown: object
    match value:
        case Enum():
            shown = _json_value(value.value, inside)
        case None | bool() | int() | str():
            shown = value
        case float():
            # JSON has no infinity and no NaN.
            shown = value if math.isfinite(value) else str(value)
        case PurePath() | UUID():
            shown = str(value)
        case date():
            shown = value.isoformat()
        case Mapping():
            shown = {str(key): _json_value(item, inside) for key, item in value.items()}
        case list() | tuple():
            shown = [_json_value(item, inside) for item in value]
        case Set():
            shown = sorted((_json_value(item, inside) for item in value), key=str)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            # Without the fields that are excluded from the repr.
            names = (field.name for field in dataclasses.fields(value) if field.repr)
            shown = {name: _json_value(getattr(value, name), inside) for name in names}
        case _:
            shown = repr(value)
    return shown
