import json
import math
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import Enum, IntEnum
from pathlib import Path
from uuid import UUID

import pytest

from strandline.node.json_values import json_value

pytestmark = pytest.mark.unit


class Colour(Enum):
    RED = "red"


class Code(IntEnum):
    TWO = 2


@dataclass(frozen=True, slots=True)
class Login:
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Report:
    path: Path
    logins: tuple[Login, ...]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (1.5, 1.5),
        (math.inf, "inf"),
        (math.nan, "nan"),
        ("text", "text"),
        (Colour.RED, "red"),
        (Code.TWO, 2),
        (Path("/a/b"), "/a/b"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (date(2026, 11, 15), "2026-11-15"),
        (datetime(2026, 11, 15, 10, tzinfo=UTC), "2026-11-15T10:00:00+00:00"),
        ((1, [2, {3}]), [1, [2, [3]]]),
        ({"b", "a"}, ["a", "b"]),
        ({1: Path("x")}, {"1": "x"}),
        (b"x", "b'x'"),
        (Login, repr(Login)),
        (Report(Path("/x"), (Login("me", "hunter2"),)), {"path": "/x", "logins": [{"user": "me"}]}),
    ],
)
def test_a_value_is_shown_in_the_types_of_json(value: object, shown: object) -> None:
    assert json_value(value) == shown
    assert type(json_value(value)) is type(shown)
    json.dumps(json_value(value), allow_nan=False)


def test_a_value_that_contains_itself_is_cut_off_at_the_repetition() -> None:
    recursive: list[object] = [1]
    recursive += [recursive, {"again": recursive}]
    assert json_value(recursive) == [1, "...", {"again": "..."}]


def test_a_value_that_occurs_twice_is_shown_twice() -> None:
    shared = ["x"]
    assert json_value([shared, shared]) == [["x"], ["x"]]
