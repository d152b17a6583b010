"""The Spark data source `strandline`: reads stored samples as a data frame, and writes a data frame to the dataset.

    spark.dataSource.register(StrandlineDataSource)
    spark.read.format("strandline").option("match", 'up{job="node"}').option("start", "2026-11-15").load()

Spark creates the source in a separate Python process and keeps it. Rows are pinned when it is created, so every action
on the frame reads the same state. Executors receive their task and what opens the store; they need this package, but no
settings. This module is below `strandline.node`, and imports settings from there only when it is used.
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
from strandline.jobs.sources.uris import require_no_credentials
from strandline.spark.executor_store import StoreOpener, cached_store
from strandline.spark.staging import StagedFile, is_importing, mark_importing, remove_staged, stage

if TYPE_CHECKING:
    from strandline.node.bulk.spark_source import PinnedRead

SCHEMA = "metric string, labels map<string, string>, time timestamp, value double"
_ROWS_PER_BATCH = 1 << 16


class WriteRefused(Fatal):
    """A data frame can't be written as it is."""

    exit_code = ExitCode.USAGE


class StrandlineDataSource(DataSource):
    """Options for reading: `match`, `start`, `end`, `not_ready`, `task_samples`. For writing: `staging`. For both:
    `config`, the settings file, and single settings such as `cassandra.contact_points`.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._pinned: PinnedRead | None = None
        if "match" in options:
            from strandline.node.bulk.spark_source import pin_read  # noqa: PLC0415 - not on executors

            self._pinned = pin_read(options, SystemClock())

    @classmethod
    def name(cls) -> str:
        """The name to pass to `format`."""
        return "strandline"

    def schema(self) -> str:
        """The columns, which are always the same."""
        return SCHEMA

    def reader(self, schema: StructType) -> "StoredReader":
        """The reader of a frame."""
        del schema
        if self._pinned is None:
            raise WriteRefused("the option match is missing", remedy="Give a selector: .option('match', 'up')")
        return StoredReader(self._pinned, self.options)

    def writer(self, schema: StructType, overwrite: bool) -> "StagingWriter":
        """The writer of a frame. Raises `WriteRefused` if the frame can't be written."""
        if overwrite:
            raise WriteRefused(
                "strandline can't overwrite: samples expire, and are replaced one by one",
                remedy='Use .mode("append"): a sample of the same series and time is replaced',
            )
        if missing := [name for name in ("metric", "labels", "time", "value") if name not in schema.names]:
            raise WriteRefused(f"the frame has no column {', '.join(missing)}", remedy=f"It must have {SCHEMA}")
        if not self.options.get("staging"):
            raise WriteRefused(
                "the option staging is missing",
                remedy="Name a folder that executors can write and this process can read",
            )
        require_no_credentials(self.options["staging"])
        return StagingWriter(self.options)


class StoredPartition(InputPartition):
    """A task and what opens the store, compressed: label sets of many series compress well."""

    def __init__(self, task: SeriesTask, opener: StoreOpener) -> None:
        super().__init__(None)
        self.packed = bytes(cramjam.zstd.compress(pickle.dumps((task, opener)), level=3))

    def unpacked(self) -> tuple[SeriesTask, StoreOpener]:
        """The inverse of packing."""
        found: tuple[SeriesTask, StoreOpener] = pickle.loads(bytes(cramjam.zstd.decompress(self.packed)))  # noqa: S301
        return found


class StoredReader(DataSourceReader):
    """Reads the pinned rows."""

    def __init__(self, pinned: "PinnedRead", options: Mapping[str, str]) -> None:
        self._pinned, self._options = pinned, dict(options)

    def partitions(self) -> Sequence[InputPartition]:
        """One partition per task."""
        from strandline.node.bulk.spark_source import opener_of  # noqa: PLC0415 - not on executors

        opener = opener_of(self._options)
        read = self._pinned
        resolved = resolve_series(cached_store(opener), read.pins, read.matchers)
        return [
            StoredPartition(task, opener)
            for task in divide_into_tasks(read.pins, resolved, read.times, read.task_samples)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The samples of a task, in batches."""
        if not isinstance(partition, StoredPartition):
            # Spark passes an empty partition if there are no tasks.
            return
        task, opener = partition.unpacked()
        for part in read_slices(cached_store(opener), task, SystemClock()):
            yield from plain_batches(SampleColumns.of(part), _ROWS_PER_BATCH)


@dataclass
class StagedMessage(WriterCommitMessage):
    """The file that a task has staged; None if it had no rows."""

    file: StagedFile | None


class StagingWriter(DataSourceArrowWriter):
    """Stages rows as Parquet files, and imports them once all are staged. Spark may compute a partition again with
    other rows; only the files of the committed tasks are imported.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)
        self._folder = self._options["staging"]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedMessage:
        """On an executor: write one partition to one file."""
        return StagedMessage(stage(self._folder, iterator))

    def commit(self, messages: list[Any]) -> None:
        """Import the staged files. Raises if not everything has landed; the import job still needs the staged files
        then.
        """
        from strandline.node.bulk.spark_source import import_staged  # noqa: PLC0415 - not on executors

        files = _staged(messages)
        if files:
            mark_importing(files)
            import_staged(self._options, [file.uri for file in files], SystemClock())
        remove_staged(files)

    def abort(self, messages: list[Any]) -> None:
        """Remove the staged files. Spark also calls this after a failed commit, in which case a job may still need the
        files.
        """
        files = _staged(messages)
        if not is_importing(files):
            remove_staged(files)


def _staged(messages: Sequence[StagedMessage | None]) -> list[StagedFile]:
    return [message.file for message in messages if message is not None and message.file is not None]
