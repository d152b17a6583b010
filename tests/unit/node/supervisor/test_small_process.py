"""The supervisor's process stays small: it does not import what only its children need."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.unit

HEAVY = (
    "aiohttp",
    "cassandra",
    "lucene",
    "llvmlite",
    "numba",
    "pandas",
    "pcodec",
    "prometheus_client",
    "pyarrow",
    "pyroaring",
    "pyspark",
)
# Most of the 70 MB are pydantic, Kafka's client and numpy. The front uses three times as much before its first request.
MOST_RESIDENT_KB = 110_000


def test_strandline_node_imports_no_large_modules_and_uses_little_memory() -> None:
    code = (
        "import sys, strandline.node.cli.main, strandline.node.cli.node\n"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules])\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmRSS')))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported, resident_kb = result.stdout.splitlines()
    assert imported == ""
    assert int(resident_kb) < MOST_RESIDENT_KB
