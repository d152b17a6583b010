"""CPU time of Spark's processes."""

import subprocess
import sys

import pytest

from strandline.node.bench.process_cpu import spark_cpu_seconds

pytestmark = pytest.mark.unit

BURN = "import time\nwhile time.process_time() < 0.15: pass\n"
# A process with a child that lives, and one that has ended; each has used 0.15 s.
TREE = f"""
import subprocess, sys
{BURN}
subprocess.run([sys.executable, "-c", {BURN!r}], check=True)
child = subprocess.Popen([sys.executable, "-c", {BURN!r} + "print('done', flush=True)\\ninput()"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print("done", flush=True)
input()
child.communicate(b"\\n")
"""


def test_the_jvm_of_a_session_counts_with_all_processes_below_it() -> None:
    assert spark_cpu_seconds() == 0
    with subprocess.Popen(
        [sys.executable, "-c", TREE, "SparkSubmit"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as jvm:
        assert jvm.stdout is not None
        jvm.stdout.readline()
        # The kernel counts in hundredths of a second.
        assert spark_cpu_seconds() >= 3 * 0.15 - 0.03
        jvm.communicate(b"\n")
    assert spark_cpu_seconds() == 0
