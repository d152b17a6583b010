"""Spark's process that forks Python workers, with everything imported that the tasks of replays and bulk jobs need.

Spark's own daemon imports almost nothing, so each forked worker would import numba, pyarrow, the clients of Kafka and
Cassandra, and our packages: a second of CPU time before its first task. Spark starts this module instead, by
`spark.python.daemon.module`.
"""

import gc

from pyspark.daemon import manager

from strandline.jobs.importing import opener as _preloaded_imports  # noqa: F401 - as below
from strandline.spark import part_task as _preloaded_parts  # noqa: F401 - as below
from strandline.spark import tasks as _preloaded  # noqa: F401 - inherited by the forked workers


def main() -> None:
    """Serve the executor that started this process, until it closes our standard input."""
    # Workers collect garbage after each task. Frozen objects are skipped, so their memory stays shared.
    gc.collect()
    gc.freeze()
    manager()  # type: ignore[no-untyped-call]  # untyped in PySpark


if __name__ == "__main__":
    main()
