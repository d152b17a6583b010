"""CPU time of Spark's processes."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.unit

BURN = "import time\nwhile time.process_time() < 0.15: pass\n"
# A process with a running child and an ended one; each has used 0.15 s.
JVM = f"""
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
# The session is in a separate process, because the process of the tests may have another session.
DRIVER = f"""
import subprocess, sys
from strandline.node.bench.process_cpu import spark_cpu_seconds
print(spark_cpu_seconds())
with subprocess.Popen([sys.executable, "-c", {JVM!r}, "SparkSubmit"],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE) as jvm:
    jvm.stdout.readline()
    print(spark_cpu_seconds())
    jvm.communicate(b"\\n")
print(spark_cpu_seconds())
"""


def test_the_jvm_of_a_session_counts_with_all_processes_below_it() -> None:
    printed = subprocess.run([sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, check=True, text=True).stdout
    before, during, after = map(float, printed.split())
    assert before == after == 0
    # The kernel counts in hundredths of a second.
    assert during >= 3 * 0.15 - 0.03
