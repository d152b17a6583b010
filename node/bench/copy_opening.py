"""Measures opening a local copy in a new process, with a cold JVM, as at a restart. Prints the seconds."""

import subprocess
import sys
from pathlib import Path

from strandline.index.bucket_load import load_index
from strandline.index.key_documents import LuceneDocuments
from strandline.index.local_copy import open_copy
from strandline.index.vm import start_vm
from strandline.node.bench.index_policy import EXPIRY, IDENTITY, POLICY
from strandline.node.bench.timing import Stopwatch


def seconds_to_open(copy: Path, series: int, heap_mb: int) -> float:
    """Run this module in a new process, and return the seconds that it prints."""
    command = [sys.executable, "-m", __name__, str(copy), str(series), str(heap_mb)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main(copy: Path, series: int, heap_mb: int) -> None:
    """Open the copy once. Measures the time from a running JVM to a usable key table."""
    start_vm(heap_mb)
    opening = Stopwatch()
    with opening.running():
        lucene, snapshot = open_copy(copy, IDENTITY, POLICY.retention)
        index = load_index(
            POLICY,
            LuceneDocuments(lucene),
            [],
            EXPIRY,
            open_bucket=snapshot.bucket + 1,
            next_part_id=snapshot.next_part_id,
            series_limit=series,
            copy=snapshot,
        )
    if len(index.table) != series:
        raise ValueError(f"the copy has {len(index.table)} keys, not {series}")
    lucene.close()
    sys.stdout.write(f"{opening.seconds}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
