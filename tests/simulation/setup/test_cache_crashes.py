"""Set-ups that are killed at every step of building an entry, and set-ups that run at the same time."""

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from strandline.setup.cache import Cache, Recipe, find_fault

pytestmark = pytest.mark.simulation

# Builds an entry of three files and kills itself with SIGKILL at the given call into the file system.
# `sys.addaudithook` sees every such call, also those inside the standard library.
BUILDER = """
import json, os, signal, sys
from pathlib import Path
from strandline.setup.cache import Cache, Recipe

root, die_at = Path(sys.argv[1]), int(sys.argv[2])
calls = 0

def count(event, arguments):
    global calls
    touches = event in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.utime")
    if touches and str(root) in repr(arguments) or event == "fcntl.flock":
        calls += 1
        if calls == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

def build(folder):
    (root.parent / f"built-{os.getpid()}").touch()
    for name in "abc":
        (folder / name).write_text(name * 100)

sys.addaudithook(count)
place, built = Cache(root).entry(Recipe("thing"), build)
print(json.dumps({"calls": calls, "built": built, "place": str(place)}))
"""


def run_builder(root: Path, die_at: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BUILDER, root, str(die_at)], capture_output=True, text=True, check=False
    )


def build_thing(folder: Path) -> None:
    for name in "abc":
        (folder / name).write_text(name * 100)


def test_a_set_up_killed_at_any_step_leaves_a_cache_that_the_next_set_up_completes(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    steps = json.loads(run_builder(tmp_path / "whole" / "cache", 0).stdout)["calls"]
    assert steps > 10, "the kill would not reach the steps of a build"
    for step in range(1, steps + 1):
        root = tmp_path / str(step) / "cache"
        root.parent.mkdir()
        assert run_builder(root, step).returncode == -signal.SIGKILL
        place, _ = Cache(root).entry(Recipe("thing"), build_thing)
        assert find_fault(place) is None, f"after a kill at step {step}"
        assert sorted(path.name for path in root.iterdir()) == ["locks", place.name], f"after a kill at step {step}"


def test_set_ups_at_the_same_time_build_an_entry_once(tmp_path: Path) -> None:
    root = tmp_path / "cache"
    builders = [
        subprocess.Popen([sys.executable, "-c", BUILDER, root, "0"], stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    results = [json.loads(builder.communicate()[0]) for builder in builders]
    assert Counter(result["built"] for result in results) == {True: 1, False: 5}
    assert len({result["place"] for result in results}) == 1
    assert len(list(tmp_path.glob("built-*"))) == 1
    assert find_fault(Path(results[0]["place"])) is None
