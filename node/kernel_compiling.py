"""`python -m strandline.node.kernel_compiling`: compile the kernels that a node calls in its first minutes. Set-up runs
it, so that neither the first start nor the first query of a new installation waits for the compiler.
"""

import multiprocessing
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from strandline.node.http.api.kernel_loading import load_kernels
from strandline.node.shard.warm_up import warm_up


def _of_a_shard() -> None:
    with tempfile.TemporaryDirectory() as folder:
        warm_up(Path(folder) / "shard")


def main() -> int:
    """Compile those of a shard and those of the front at the same time."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes:
        for compiled in [processes.submit(_of_a_shard), processes.submit(load_kernels)]:
            compiled.result()
    return 0


if __name__ == "__main__":
    sys.exit(main())
