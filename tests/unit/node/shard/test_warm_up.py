"""After a warm-up, a shard calls no kernel that is not loaded: its loop never waits for a compiler."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from strandline.clock import Clock
from strandline.node.shard.warm_up import WarmUp, warm_up
from strandline.store.protocol import Store
from strandline.store.sqlite import open_sqlite_store
from strandline.wire.encoding import encode_request

pytestmark = pytest.mark.unit

SUPPORT = Path(__file__).parents[3]
# In a separate process: in this one, other tests may have called the kernels already.
LIFE = """
import gc, json, sys
from pathlib import Path
from numba.core.dispatcher import Dispatcher
from strandline.clock import Clock
from strandline.node.shard.warm_up import warm_up
from support.query_worlds import LuceneWorld

def at_hand():
    kernels = [one for one in gc.get_objects() if isinstance(one, Dispatcher)]
    return {f"{one.py_func.__module__}.{one.py_func.__name__}{kinds}" for one in kernels for kinds in one.signatures}

folder = Path(sys.argv[1])
imported = at_hand()
warm_up(folder / "warm-up")
warmed = at_hand()
world = LuceneWorld(folder, buffer_bytes=1 << 12)
for _ in range(2):
    world.start()
    for hour in range(8):
        now = world.clock.now_ms()
        world.produce(*[("metric", f"{hour}-{number}", now, float(number)) for number in range(100)])
        world.produce(("metric", "kept", now, 1.0), late=60_000)
        world.pass_hours(1)
    world.crash()
world.close()
print(json.dumps([sorted(warmed - imported), sorted(at_hand() - warmed)]))
"""


def test_after_a_warm_up_a_shard_compiles_no_kernel(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIFE, str(tmp_path)]
    path = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
    environ = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ, timeout=300)
    by_warm_up, by_life = json.loads(done.stdout.splitlines()[-1])
    assert by_life == []
    assert len(by_warm_up) > 10, "the shard needs kernels"


def test_it_leaves_no_files_and_removes_those_of_a_killed_warm_up(tmp_path: Path) -> None:
    folder = tmp_path / "warm-up"
    folder.mkdir()
    (folder / "store.sqlite").write_text("half of one")
    warm_up(folder)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_warm_up_is_logged_and_does_not_prevent_the_start(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_series: object) -> bytes:
        raise OSError("no space is left")

    monkeypatch.setattr(f"{warm_up.__module__}.{encode_request.__name__}", fail)
    monkeypatch.setattr(f"{warm_up.__module__}._COMPILED", threading.Event())
    with WarmUp(tmp_path / "warm-up") as warming:
        warming.wait()
    # The destination of the log depends on the tests that ran before in this process.
    captured = capsys.readouterr()
    logged = captured.out + captured.err + caplog.text
    assert "the shard starts without it" in logged
    assert "no space is left" in logged
    assert list(tmp_path.iterdir()) == []


def test_a_process_warms_up_once_and_not_for_a_start_that_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled, opened_paths = threading.Event(), list[Path]()
    monkeypatch.setattr(f"{warm_up.__module__}._COMPILED", compiled)
    open_store = open_sqlite_store

    def record(path: Path, clock: Clock) -> Store:
        opened_paths.append(path)
        return open_store(path, clock)

    monkeypatch.setattr(f"{warm_up.__module__}.{open_sqlite_store.__name__}", record)
    warm_up(tmp_path / "given up", lambda: True)
    assert not compiled.is_set()
    for _ in range(2):
        with WarmUp(tmp_path / "warm-up") as warming:
            warming.wait()
    assert compiled.is_set()
    assert opened_paths == [tmp_path / "given up" / "store.sqlite", tmp_path / "warm-up" / "store.sqlite"]
