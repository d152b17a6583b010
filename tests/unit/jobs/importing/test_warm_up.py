"""After a warm-up, an import of CSV files finds all kernels compiled, so its first chunk waits for none."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.jobs.importing.warm_up import warm_up

pytestmark = pytest.mark.unit

SUPPORT = Path(__file__).parents[3]
# In another process, because other tests have called kernels in this one.
IMPORT = """
import gc, json, sys
from pathlib import Path
from numba.core.dispatcher import Dispatcher
from strandline.jobs.importing.planning import ImportOptions
from strandline.jobs.importing.warm_up import warm_up
from strandline.jobs.importing.spec import Format
from support.job_worlds import JobWorld

def at_hand():
    kernels = [one for one in gc.get_objects() if isinstance(one, Dispatcher)]
    return {f"{one.py_func.__module__}.{one.py_func.__name__}{kinds}" for one in kernels for kinds in one.signatures}

folder = Path(sys.argv[1])
imported = at_hand()
warm_up(folder)
warmed_up = at_hand()
world = JobWorld(folder)
mapping = {
    "metric": {"column": "name"},
    "values": ["a", {"column": "b", "metric": "other"}],
    "time": {"column": "at", "format": "rfc3339"},
    "labels": ["host"],
    "constants": {"env": "prod"},
}
lines = ["at,host,name,a,b"]
for row in range(300):
    other = "?" if row % 9 == 0 else row / 8
    lines.append(f'2026-11-15T{row % 24:02}:00:00Z,"host {row % 5}",m{row % 3},{row},{other}')
options = ImportOptions(Format.CSV, mapping, part_bytes=4_000, chunk_bytes=1_000, max_record=500)
world.planned("\\n".join(lines).encode(), options)
assert world.work()
assert world.board.job("job").state == "done"
print(json.dumps([sorted(warmed_up - imported), sorted(at_hand() - warmed_up)]))
"""


def test_an_import_finds_all_its_kernels_after_a_warm_up(tmp_path: Path) -> None:
    command = [sys.executable, "-c", IMPORT, str(tmp_path)]
    path = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
    environ = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    by_warm_up, by_import = json.loads(done.stdout.splitlines()[-1])
    assert by_import == []
    assert len(by_warm_up) > 5, "without it, the import would have found none of these"


def test_it_leaves_no_file(tmp_path: Path) -> None:
    warm_up(tmp_path)
    assert list(tmp_path.iterdir()) == []
