"""The process of Spark that forks its Python workers, with all imported that the tasks of replays and bulk jobs need.

Spark's own daemon has next to nothing imported, so each worker it forks imports numba, pyarrow, the clients of Kafka
and Cassandra and our packages by itself: a second of processor time before its first task. Spark starts this module
instead, by `spark.python.daemon.module`.
"""

import gc

from pyspark.daemon import manager

from strandline.jobs.importing import opener as _preloaded_imports  # noqa: F401 - as below
from strandline.spark import part_task as _preloaded_parts  # noqa: F401 - as below
from strandline.spark import tasks as _preloaded  # noqa: F401 - for the workers, which have it from the fork


def main() -> None:
    """Serve the executor that started this process until it closes our standard input."""
    # A worker collects garbage after each task. What it has inherited is none, and stays shared if it is not visited.
    gc.collect()
    gc.freeze()
    manager()  # type: ignore[no-untyped-call]  # of PySpark, which has no type there


if __name__ == "__main__":
    main()
