"""The Debian step, with fake dpkg-query, id and apt-get in its PATH."""

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

SCRIPT = Path(__file__).parents[3] / "setup" / "debian.sh"
RUN_PACKAGES = ["openjdk-17-jdk-headless", "maven", "g++", "python3-dev", "python3-venv"]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "tmp").mkdir()
    return tmp_path


def put(machine: Path, name: str, script: str) -> None:
    path = machine / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def run(
    machine: Path, mode: str, *, installed: list[str], uid: int, apt: str = "exit 0"
) -> subprocess.CompletedProcess[str]:
    names = "|".join(installed) or "none"
    put(machine, "dpkg-query", f'for last; do :; done\ncase "$last" in {names}) printf installed;; *) exit 1;; esac')
    put(machine, "id", f"echo {uid}")
    put(machine, "apt-get", f'echo "$@" >> {machine}/apt.log\n{apt}')
    environment = {"PATH": f"{machine}/bin:{os.defpath}", "TMPDIR": str(machine / "tmp")}
    return subprocess.run([SCRIPT, mode], env=environment, capture_output=True, text=True, check=False)


def apt_calls(machine: Path) -> list[str]:
    log = machine / "apt.log"
    return log.read_text().splitlines() if log.exists() else []


def test_nothing_is_printed_or_done_when_all_packages_are_installed(machine: Path) -> None:
    done = run(machine, "run", installed=RUN_PACKAGES, uid=1000)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert apt_calls(machine) == []


def test_an_ordinary_user_gets_one_line_to_copy_and_nothing_is_installed(machine: Path) -> None:
    done = run(machine, "run", installed=[p for p in RUN_PACKAGES if p not in ("maven", "g++")], uid=1000)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "sudo apt-get install --yes --no-install-recommends maven g++"
    assert apt_calls(machine) == []


def test_root_installs_only_what_is_missing(machine: Path) -> None:
    done = run(machine, "run", installed=[p for p in RUN_PACKAGES if p != "maven"], uid=0)
    assert done.returncode == 0
    update, install = apt_calls(machine)
    assert update.startswith("update")
    assert install.startswith("install")
    assert install.endswith(" maven")


def test_the_tests_need_a_browser_as_well(machine: Path) -> None:
    assert run(machine, "run", installed=RUN_PACKAGES, uid=1000).returncode == 0
    done = run(machine, "test", installed=RUN_PACKAGES, uid=1000)
    assert done.returncode == 1
    assert "chromium" in done.stderr.splitlines()[-1]


def test_a_failing_apt_get_shows_its_output(machine: Path) -> None:
    done = run(machine, "run", installed=[], uid=0, apt='echo "E: Unable to locate package maven"; exit 100')
    assert done.returncode == 1
    assert "Unable to locate package maven" in done.stderr
    assert "apt-get failed" in done.stderr
