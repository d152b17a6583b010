"""Any value as what JSON knows: text, numbers, booleans, nothing, lists and tables of these.

Reports and log events are made of dataclasses, paths, dates and enums. Both pass through here before they are written,
so a value looks the same wherever it is shown.
"""

import dataclasses
import math
from collections.abc import Mapping, Set
from datetime import date
from enum import Enum
from pathlib import PurePath
from uuid import UUID


def json_value(value: object) -> object:
    """`value` in JSON's own types. What has no natural form there is given by its repr, and what holds itself is cut
    short where it begins again. Never raises for a value whose repr does not.
    """
    return _json_value(value, ())


def _json_value(value: object, above: tuple[int, ...]) -> object:
    if id(value) in above:
        return "..."
    inside = (*above, id(value))
    shown: object
    match value:
        case Enum():
            shown = _json_value(value.value, inside)
        case None | bool() | int() | str():
            shown = value
        case float():
            # JSON has no word for the infinite and for what is no number.
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
            # Fields that are kept out of the repr are kept out of here too.
            names = (field.name for field in dataclasses.fields(value) if field.repr)
            shown = {name: _json_value(getattr(value, name), inside) for name in names}
        case _:
            shown = repr(value)
    return shown
