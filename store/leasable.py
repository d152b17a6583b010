"""The interface of what a worker leases: a replay job or a part of a bulk job. Both are frozen dataclasses."""

from collections.abc import Hashable
from dataclasses import Field
from typing import Any, ClassVar, Protocol

from strandline.store.jobs import JobState


class Leasable(Protocol):
    """A unit of work under a lease.

    `epoch` rises with each lease, which identifies a worker whose lease was lost. `renewals` rises with each renewal,
    so that watchers need not compare clocks.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def state(self) -> JobState: ...

    @property
    def epoch(self) -> int: ...

    @property
    def worker(self) -> str: ...

    @property
    def leased_until(self) -> int: ...

    @property
    def renewals(self) -> int: ...

    @property
    def failures(self) -> int: ...

    @property
    def reason(self) -> str: ...

    @property
    def key(self) -> Hashable:
        """Identifies the unit of work. A unit of another plan under the same primary key has another key."""
        ...

    @property
    def name(self) -> str:
        """The name in messages: "the job for bucket 8 of metrics/3"."""
        ...

    @property
    def detail(self) -> str:
        """What messages and reasons add to the name ("offsets [100, 150)"); may be empty."""
        ...
