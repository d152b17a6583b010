"""What an export is to do, and what each of its parts is about, as they stand in the store."""

from dataclasses import asdict, dataclass

import orjson


@dataclass(frozen=True, slots=True)
class ExportSpec:
    """Samples of a selector from `start` to before `end` into the folder `to`. The plan, with the series and rows of
    each day, lies in its subfolder `plan`.
    """

    to: str
    dataset: str
    selector: str
    start: int
    end: int
    plan: str
    days: tuple[str, ...]

    def to_json(self) -> str:
        """As it stands in a job's row."""
        return orjson.dumps(asdict(self)).decode()

    @classmethod
    def from_json(cls, text: str) -> "ExportSpec":
        """What `to_json` wrote."""
        value = orjson.loads(text)
        return cls(**{**value, "days": tuple(value["days"])})


@dataclass(frozen=True, slots=True)
class ExportPart:
    """A range of a day's series: the `range`-th of its plan, which has so many `series` and about so many samples.
    `uri` is that of the day.
    """

    uri: str
    day: str
    range: int
    series: int
    expected: int

    def to_json(self) -> str:
        """As it stands in a part's row."""
        return orjson.dumps({"kind": "export", **asdict(self)}).decode()

    @classmethod
    def from_json(cls, text: str) -> "ExportPart":
        """What `to_json` wrote."""
        value = orjson.loads(text)
        del value["kind"]
        return cls(**value)
