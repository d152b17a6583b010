"""Datasets: what belongs to one from its making on, whoever made it."""

from dataclasses import dataclass

from strandline.store.cassandra import statements
from strandline.store.cassandra.requests import Requests
from strandline.store.rows import DatasetShape


@dataclass(frozen=True, slots=True)
class Datasets:
    """The table of datasets."""

    requests: Requests

    def create(self, shape: DatasetShape) -> DatasetShape:
        """Make a dataset unless there is one; the shape that is stored."""
        values = (shape.dataset, shape.flush_interval, shape.groups, shape.key_hash, shape.partitions)

        def attempt() -> DatasetShape:
            # One that was not answered needs no other care than to be repeated: it then finds what it wrote.
            answer = self.requests.compare_and_set(
                f"make the dataset {shape.dataset}", statements.CREATE_DATASET, values
            )
            if answer.applied:
                return shape
            return DatasetShape(**{name: answer.found[name] for name in DatasetShape.__slots__})

        return self.requests.retries.run(attempt)

    def read(self, name: str) -> DatasetShape | None:
        """The shape of a dataset, if it was made."""
        rows = self.requests.read(f"read the dataset {name}", statements.DATASET, (name,))
        return DatasetShape(*rows[0]) if rows else None
