"""Decoding on Spark's executors, with the same kernels as the shards, in Arrow batches of records."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from strandline.wire.decode import Limits, decode_batch

TALLY = "partition int, records long, samples long, faults long"


def tally_records(records: DataFrame, limits: Limits) -> DataFrame:
    """Decode remote-write records where they are read, and count their contents by Kafka partition."""

    def tally(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield _tally_batch(batch, limits)

    counted = records.select("partition", "value").mapInArrow(tally, TALLY)
    sums = {name: f"sum({name})" for name in ("records", "samples", "faults")}
    return (
        counted.groupBy("partition")
        .agg(dict.fromkeys(sums, "sum"))
        .withColumnsRenamed({total: name for name, total in sums.items()})
    )


def _tally_batch(batch: pa.RecordBatch, limits: Limits) -> pa.RecordBatch:
    # A batch has one Kafka partition: each task of the source reads a single range.
    columns = decode_batch(batch.column("value").to_pylist(), limits)
    row = {
        "partition": [batch.column("partition")[0].as_py()],
        "records": [batch.num_rows],
        "samples": [len(columns.time)],
        "faults": [len(columns.faults)],
    }
    types = {"partition": pa.int32()}
    return pa.RecordBatch.from_pydict(row, schema=pa.schema([(name, types.get(name, pa.int64())) for name in row]))
