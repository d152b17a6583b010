"""Datasets: the properties that are fixed at their creation.

Compare-and-sets are decided by the servers of one data centre (LOCAL_SERIAL), so that no other data centre needs to be
up. Nodes connected to two data centres would each have their own owners. So a dataset belongs to the data centre of its
first start, and clients of another one are rejected. Only that assignment is decided by all data centres, once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from strandline.store.cassandra import statements
from strandline.store.cassandra.requests import Requests
from strandline.store.protocol import StoreRefused
from strandline.store.rows import DatasetShape


@dataclass(frozen=True, slots=True)
class Datasets:
    """The table of datasets, for a client that is connected to `data_centre`."""

    requests: Requests
    data_centre: str
    _checked: set[str] = field(default_factory=set)

    def create(self, shape: DatasetShape) -> DatasetShape:
        """Create a dataset unless it exists. Return the stored shape. Raises `StoreRefused` if it belongs to another
        data centre.
        """
        # After a lost answer it is sufficient to repeat this: it then finds what it wrote.
        found = self.requests.retries.run(lambda: self._find_or_make(shape))
        self._check(found)
        return _shape(found)

    def read(self, name: str) -> DatasetShape | None:
        """Return the shape of a dataset, if it exists. Raises `StoreRefused` if it belongs to another data centre."""
        found = self._find(name)
        if found is None:
            return None
        self._check(found)
        return _shape(found)

    def check(self, name: str) -> None:
        """Raise `StoreRefused` if a dataset belongs to another data centre. The result is cached, because it never
        changes.
        """
        if name not in self._checked and (found := self._find(name)) is not None:
            self._check(found)

    def _find(self, name: str) -> Mapping[str, Any] | None:
        rows = self.requests.read(f"read the dataset {name}", statements.DATASET, (name,))
        return rows[0]._asdict() if rows else None

    def _find_or_make(self, shape: DatasetShape) -> Mapping[str, Any]:
        found, name = self._find(shape.dataset), shape.dataset
        if found is None:
            values = (name, shape.flush_interval, shape.groups, shape.key_hash, shape.partitions, self.data_centre)
            answer = self.requests.compare_and_set(f"make the dataset {name}", statements.CREATE_DATASET, values)
            if answer.applied:
                return {field: getattr(shape, field) for field in DatasetShape.__slots__} | {
                    "data_centre": self.data_centre
                }
            found = answer.found
        if found["data_centre"] is None:
            # Created by a node of schema version 2.
            what = f"set the data centre of the dataset {name}"
            answer = self.requests.compare_and_set(what, statements.SET_DATA_CENTRE, (self.data_centre, name))
            is_ours = answer.applied
            found = {**found, "data_centre": self.data_centre if is_ours else answer.found["data_centre"]}
        return found

    def _check(self, found: Mapping[str, Any]) -> None:
        name, theirs = found["dataset"], found["data_centre"]
        if theirs not in (None, self.data_centre):
            raise StoreRefused(
                f"the owners of dataset {name!r} are decided in the data centre {theirs!r}, and this process is"
                f" connected to {self.data_centre!r}",
                remedy=f"Set cassandra.local_datacenter to {theirs!r}, or see docs/storage.md on how to move a dataset",
            )
        if theirs is not None:
            self._checked.add(name)


def _shape(found: Mapping[str, Any]) -> DatasetShape:
    return DatasetShape(**{name: found[name] for name in DatasetShape.__slots__})
