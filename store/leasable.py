"""What a worker leases: a replay job, or a part of a bulk job. Both are frozen dataclasses with these fields."""

from collections.abc import Hashable
from dataclasses import Field
from typing import Any, ClassVar, Protocol

from strandline.store.jobs import JobState


class Leasable(Protocol):
    """A unit of work under a lease.

    `epoch` rises with each lease, so that a worker whose lease was lost is known by it, and `renewals` with each
    renewal, so that a watcher sees it without comparing clocks.
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
        """Which unit of work it is. One that another plan puts into its place has another key."""
        ...

    @property
    def name(self) -> str:
        """What it is called in messages: "the job for bucket 8 of metrics/3"."""
        ...

    @property
    def detail(self) -> str:
        """What messages and reasons say beside the name ("offsets [100, 150)"), or nothing."""
        ...
