import json
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.setup.python_env import STAMP, find_environment_fault

pytestmark = pytest.mark.unit

MADE_FROM = {"python": "3.11", "wheels": ["wheelhouse-1", "pylucene-1"]}


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    site = tmp_path / "lib" / "python3.11" / "site-packages"
    record = site / "thing-1.dist-info" / "RECORD"
    record.parent.mkdir(parents=True)
    (site / "thing.py").write_text("x = 1\n")
    record.write_text("thing.py,sha256=abc,6\nthing-1.dist-info/RECORD,,\n")
    (tmp_path / STAMP).write_text(json.dumps(MADE_FROM))
    return tmp_path


def test_an_environment_with_all_its_files_is_kept(venv: Path) -> None:
    assert find_environment_fault(venv, MADE_FROM) is None


def test_an_environment_without_its_stamp_was_never_finished(venv: Path) -> None:
    (venv / STAMP).unlink()
    assert find_environment_fault(venv, MADE_FROM) == "it is not complete"


def test_changed_inputs_are_named(venv: Path) -> None:
    fault = find_environment_fault(venv, {**MADE_FROM, "wheels": ["wheelhouse-2", "pylucene-1"]})
    assert fault == "changed since: wheels"


def test_a_missing_or_truncated_file_is_named(venv: Path) -> None:
    module = venv / "lib" / "python3.11" / "site-packages" / "thing.py"
    module.write_text("x = ")
    assert find_environment_fault(venv, MADE_FROM) == "thing.py has another size"
    module.unlink()
    assert find_environment_fault(venv, MADE_FROM) == "thing.py is missing"


def test_set_up_has_compiled_all_packages_that_a_shard_imports() -> None:
    """A service must not write to its installation, and would compile them at each start."""
    program = """
import strandline.node.cli.shard, sys
for module in list(sys.modules.values()):
    if getattr(module, "__cached__", None):
        print(module.__cached__)
"""
    listed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    compiled = [Path(line) for line in listed.splitlines() if "site-packages" in line]
    assert len(compiled) > 300
    assert [path for path in compiled if not path.exists()] == []
