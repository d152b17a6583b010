"""`python -m strandline.node.kernel_compiling`: compiles the kernels that a node calls in its first minutes, and those
of an import of CSV files. Set-up runs it, so that the first start, query and import of a new installation do not wait
for the compiler.
"""

import multiprocessing
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from strandline.jobs.importing.warm_up import warm_up as warm_up_import
from strandline.node.http.api.kernel_loading import load_kernels
from strandline.node.shard.warm_up import warm_up


def _compile_shard_kernels() -> None:
    with tempfile.TemporaryDirectory() as folder:
        warm_up(Path(folder) / "shard")


def _compile_import_kernels() -> None:
    with tempfile.TemporaryDirectory() as folder:
        warm_up_import(Path(folder))


def main() -> int:
    """Compile the kernels of a shard, of the front and of an import, in two processes."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes:
        for compiled in [
            processes.submit(one) for one in (_compile_shard_kernels, load_kernels, _compile_import_kernels)
        ]:
            compiled.result()
    return 0


if __name__ == "__main__":
    sys.exit(main())
