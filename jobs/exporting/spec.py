"""The spec of an export, and of each of its parts, as stored."""

from dataclasses import asdict, dataclass

import orjson


@dataclass(frozen=True, slots=True)
class ExportSpec:
    """Exports the samples of a selector from `start` to `end` (exclusive) to the folder `to`. Its subfolder `plan` has
    the plan, with the series and rows of each day.
    """

    to: str
    dataset: str
    selector: str
    start: int
    end: int
    plan: str
    days: tuple[str, ...]

    def to_json(self) -> str:
        """The text for the job's row."""
        return orjson.dumps(asdict(self)).decode()

    @classmethod
    def from_json(cls, text: str) -> "ExportSpec":
        """Parse the result of `to_json`."""
        value = orjson.loads(text)
        return cls(**{**value, "days": tuple(value["days"])})


@dataclass(frozen=True, slots=True)
class ExportPart:
    """A range of a day's series: its index in the plan, its number of series, and the expected number of samples. `uri`
    is the URI of the day's folder.
    """

    uri: str
    day: str
    range: int
    series: int
    expected: int

    def to_json(self) -> str:
        """The text for the part's row."""
        return orjson.dumps({"kind": "export", **asdict(self)}).decode()

    @classmethod
    def from_json(cls, text: str) -> "ExportPart":
        """Parse the result of `to_json`."""
        value = orjson.loads(text)
        del value["kind"]
        return cls(**value)
