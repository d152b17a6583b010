"""The Spark data source `strandline`: stored samples as a data frame, and a data frame into the dataset.

    spark.dataSource.register(StrandlineDataSource)
    spark.read.format("strandline").option("match", 'up{job="node"}').option("start", "2026-11-15").load()

Spark makes the source in a Python process of its own and keeps it as it was made: so rows are pinned when it is made,
and every action on the frame reads one state. Executors get their task and what opens the store; they need this
package, but no settings. The module lies below `strandline.node`, and takes settings from there when it is used.
"""

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cramjam
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from strandline.clock import SystemClock
from strandline.errors import ExitCode, Fatal
from strandline.jobs.reading.arrow_batches import SampleColumns, plain_batches
from strandline.jobs.reading.resolving import resolve_series
from strandline.jobs.reading.series_reading import read_slices
from strandline.jobs.reading.series_task import SeriesTask
from strandline.jobs.reading.task_division import divide_into_tasks
from strandline.jobs.sources.files import require_no_credentials
from strandline.spark.executor_store import StoreOpener, kept_store
from strandline.spark.staging import StagedFile, is_importing, mark_importing, remove_staged, stage

if TYPE_CHECKING:
    from strandline.node.bulk.spark_source import PinnedRead

SCHEMA = "metric string, labels map<string, string>, time timestamp, value double"
_ROWS_A_BATCH = 1 << 16


class WriteRefused(Fatal):
    """A data frame can't be written as it is."""

    exit_code = ExitCode.USAGE


class StrandlineDataSource(DataSource):
    """Reading: `match` and `start`, and `end`, `not_ready`, `task_samples`. Writing: `staging`. Both: `config`, the
    settings' file, and settings themselves, such as `cassandra.contact_points`.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._pinned: PinnedRead | None = None
        if "match" in options:
            from strandline.node.bulk.spark_source import pin_read  # noqa: PLC0415 - not on executors

            self._pinned = pin_read(options, SystemClock())

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "strandline"

    def schema(self) -> str:
        """The columns, which are always these."""
        return SCHEMA

    def reader(self, schema: StructType) -> "StoredReader":
        """For a frame that is read."""
        del schema
        if self._pinned is None:
            raise WriteRefused("there is no option match", remedy="Give a selector: .option('match', 'up')")
        return StoredReader(self._pinned, self.options)

    def writer(self, schema: StructType, overwrite: bool) -> "StagingWriter":
        """For a frame that is written. Raises `WriteRefused` for one that can't be."""
        if overwrite:
            raise WriteRefused(
                "strandline can't overwrite: samples expire, and are replaced one by one",
                remedy='Use .mode("append"): a sample of the same series and time is replaced',
            )
        if missing := [name for name in ("metric", "labels", "time", "value") if name not in schema.names]:
            raise WriteRefused(f"the frame has no column {', '.join(missing)}", remedy=f"It must have {SCHEMA}")
        if not self.options.get("staging"):
            raise WriteRefused(
                "there is no option staging", remedy="Name a folder that executors can write and this process can read"
            )
        require_no_credentials(self.options["staging"])
        return StagingWriter(self.options)


class StoredPartition(InputPartition):
    """A task and what opens the store, packed: label sets of many series compress well."""

    def __init__(self, task: SeriesTask, opener: StoreOpener) -> None:
        super().__init__(None)
        self.packed = bytes(cramjam.zstd.compress(pickle.dumps((task, opener)), level=3))

    def unpacked(self) -> tuple[SeriesTask, StoreOpener]:
        """What it was made from."""
        found: tuple[SeriesTask, StoreOpener] = pickle.loads(bytes(cramjam.zstd.decompress(self.packed)))  # noqa: S301
        return found


class StoredReader(DataSourceReader):
    """Reads what was pinned."""

    def __init__(self, pinned: "PinnedRead", options: Mapping[str, str]) -> None:
        self._pinned, self._options = pinned, dict(options)

    def partitions(self) -> Sequence[InputPartition]:
        """One for each task."""
        from strandline.node.bulk.spark_source import opener_of  # noqa: PLC0415 - not on executors

        opener = opener_of(self._options)
        read = self._pinned
        resolved = resolve_series(kept_store(opener), read.pins, read.matchers)
        return [
            StoredPartition(task, opener)
            for task in divide_into_tasks(read.pins, resolved, read.times, read.task_samples)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The samples of a task, in batches."""
        if not isinstance(partition, StoredPartition):
            # Spark asks for one without a task if there is none.
            return
        task, opener = partition.unpacked()
        for part in read_slices(kept_store(opener), task, SystemClock()):
            yield from plain_batches(SampleColumns.of(part), _ROWS_A_BATCH)


@dataclass
class StagedMessage(WriterCommitMessage):
    """What a task has staged; None if it had no rows."""

    file: StagedFile | None


class StagingWriter(DataSourceArrowWriter):
    """Stages rows as Parquet files, and imports these once all are there: a partition that Spark computes again may
    have other rows, and only the files of tasks that count are imported.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)
        self._folder = self._options["staging"]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedMessage:
        """On an executor: one partition into one file."""
        return StagedMessage(stage(self._folder, iterator))

    def commit(self, messages: list[Any]) -> None:
        """Import what was staged. Raises if not all of it has landed; its job needs the staged files then."""
        from strandline.node.bulk.spark_source import import_staged  # noqa: PLC0415 - not on executors

        files = _staged(messages)
        if files:
            mark_importing(files)
            import_staged(self._options, [file.uri for file in files], SystemClock())
        remove_staged(files)

    def abort(self, messages: list[Any]) -> None:
        """Remove what was staged. Spark calls this after a commit that failed, too: then a job may need the files."""
        files = _staged(messages)
        if not is_importing(files):
            remove_staged(files)


def _staged(messages: Sequence[StagedMessage | None]) -> list[StagedFile]:
    return [message.file for message in messages if message is not None and message.file is not None]
