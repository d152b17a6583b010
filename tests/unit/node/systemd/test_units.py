"""The systemd units: valid, hardened, and adapted to an installation."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.errors import ExitCode
from strandline.node.cli import main as cli
from strandline.node.systemd.units import (
    GATEWAY,
    NODE,
    UnitTarget,
    UnitUnfit,
    fill_template,
    hidden_by_private_tmp,
    private_folders,
    units,
)

pytestmark = pytest.mark.unit

CONF = Path(__file__).parents[4] / "conf" / "systemd"


@pytest.fixture
def installed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert cli.main(["install-units", "--root", str(tmp_path)]) == ExitCode.OK
    capsys.readouterr()
    return tmp_path / "etc" / "systemd" / "system"


def directives(text: str) -> dict[str, list[str]]:
    unit: dict[str, list[str]] = {}
    for line in text.splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            unit.setdefault(name, []).append(value)
    return unit


def analyzed(*arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "SYSTEMD_COLORS": "0"}
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False, env=environ)


@pytest.mark.parametrize("name", [NODE, GATEWAY])
def test_systemd_accepts_the_units(installed: Path, name: str) -> None:
    result = analyzed("verify", str(installed / name))
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_systemd_reports_an_invalid_unit(installed: Path) -> None:
    broken = installed / NODE
    broken.write_text(broken.read_text().replace("OOMPolicy=continue", "OOMPolicy=shrug"))
    assert "shrug" in analyzed("verify", str(broken)).stderr


@pytest.mark.parametrize("name", [NODE, GATEWAY])
def test_the_exposure_of_the_units_is_at_most_3(installed: Path, name: str) -> None:
    result = analyzed("security", "--offline=true", "--no-pager", "--threshold=30", str(installed / name))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Overall exposure level" in result.stdout


@pytest.mark.parametrize("name", [NODE, GATEWAY])
def test_units_allow_compiling_at_run_time(installed: Path, name: str) -> None:
    unit = directives((installed / name).read_text())
    assert "MemoryDenyWriteExecute" not in unit
    assert any(value.startswith("NUMBA_CACHE_DIR=%C/") for value in unit["Environment"])


@pytest.mark.parametrize(("name", "verb"), [(NODE, "node"), (GATEWAY, "gateway")])
def test_units_run_this_installation_with_the_instances_settings(installed: Path, name: str, verb: str) -> None:
    unit = directives((installed / name).read_text())
    program = Path(sys.executable).with_name("strandline")
    assert unit["ExecStart"] == [f"{program} {verb} --config /etc/strandline/%i.toml"]
    assert (unit["Type"], unit["NotifyAccess"], unit["User"]) == (["notify"], ["main"], ["strandline"])
    assert unit["RestartPreventExitStatus"] == [str(int(ExitCode.USAGE))]


def test_node_and_gateway_of_one_name_share_no_folder(installed: Path) -> None:
    texts = [directives((installed / name).read_text()) for name in (NODE, GATEWAY)]
    for kind in ("CacheDirectory", "RuntimeDirectory"):
        assert texts[0][kind] != texts[1][kind]


def test_one_shard_for_which_memory_ran_out_does_not_end_the_node(installed: Path) -> None:
    unit = directives((installed / NODE).read_text())
    assert (unit["OOMPolicy"], unit["KillMode"]) == (["continue"], ["mixed"])


def test_the_units_of_the_checkout_fit_an_installation_in_usr() -> None:
    target = UnitTarget(Path("/usr/bin/strandline"), "strandline")
    for unit in units(target):
        assert (CONF / unit.name).read_text() == unit.text


@pytest.mark.parametrize(
    ("program", "written"),
    [("/opt/x/bin/strandline", "/opt/x/bin/strandline"), ("/opt/a b/100%/s", '"/opt/a b/100%%/s"')],
)
def test_the_programs_path_is_escaped_for_systemd(program: str, written: str) -> None:
    target = UnitTarget(Path(program), "strandline")
    assert fill_template("ExecStart=/usr/bin/strandline node --x\n", target) == f"ExecStart={written} node --x\n"


@pytest.mark.parametrize(
    ("user", "program"), [("a b", "/x"), ("", "/x"), ("root\nExecStart=", "/x"), ("u", "/a'b"), ("u", "x")]
)
def test_values_that_would_break_a_unit_are_refused(user: str, program: str) -> None:
    with pytest.raises(UnitUnfit):
        UnitTarget(Path(program), user)


@pytest.mark.parametrize(
    ("program", "reads", "protect"),
    [
        ("/usr/bin/strandline", "/usr/lib/jvm", "yes"),
        ("/home/ann/venv/bin/strandline", "/usr/lib/jvm", "read-only"),
        ("/opt/x/strandline", "/root", "read-only"),
        ("/homes/x/strandline", "/usr/lib/jvm", "yes"),
    ],
)
def test_home_folders_are_visible_only_to_a_program_in_one(program: str, reads: str, protect: str) -> None:
    target = UnitTarget(Path(program), "u", (Path(reads),))
    assert fill_template("ProtectHome=yes\n", target) == f"ProtectHome={protect}\n"


def test_private_folders_are_found(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "open").mkdir(parents=True)
    (closed / "open" / "program").touch()
    closed.chmod(0o700)
    (closed / "open").chmod(0o755)
    unit = private_folders((closed / "open" / "program",))
    assert closed in unit
    assert closed / "open" not in unit


def test_paths_in_temporary_folders_are_found() -> None:
    visible, hidden, deep = Path("/opt/strandline"), Path("/tmp/strandline"), Path("/var/tmp/jars")
    assert hidden_by_private_tmp((visible, deep, hidden, Path("/tmpfiles"))) == (hidden, deep)


class TestInstalling:
    def test_paths_that_a_service_can_not_see_are_reported(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "executable", "/tmp/strandline/bin/python")
        assert cli.main(["install-units", "--root", str(tmp_path)]) == ExitCode.OK
        printed = capsys.readouterr()
        assert "can't see /tmp/strandline/bin/strandline: install elsewhere" in printed.out + printed.err

    def test_a_dry_run_shows_the_units_and_writes_nothing(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert cli.main(["install-units", "--dry-run", "--root", str(tmp_path), "--user", "metrics"]) == ExitCode.OK
        printed_units = capsys.readouterr().out
        assert "User=metrics\n" in printed_units
        assert "[Service]\n" in printed_units
        assert "systemctl enable --now strandline-gateway@NAME strandline-node@NAME" in printed_units
        assert list(tmp_path.iterdir()) == []

    def test_a_repeated_installation_changes_nothing(self, installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
        before = (installed / NODE).stat().st_mtime_ns
        arguments = ["install-units", "--root", str(installed.parents[2]), "--output", "json"]
        assert cli.main(arguments) == ExitCode.OK
        report = json.loads(capsys.readouterr().out)
        assert [file["state"] for file in report["files"]] == ["unchanged", "unchanged"]
        assert (installed / NODE).stat().st_mtime_ns == before

    def test_changed_units_are_replaced_only_with_confirmation(
        self, installed: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        right = (installed / NODE).read_text()
        (installed / NODE).write_text("changed")
        (installed / GATEWAY).unlink()
        arguments = ["install-units", "--root", str(installed.parents[2])]
        assert cli.main(arguments) == ExitCode.USAGE
        assert "--yes" in capsys.readouterr().err
        assert (installed / NODE).read_text() == "changed"
        assert not (installed / GATEWAY).exists(), "either all units are written or none"
        assert cli.main([*arguments, "--yes"]) == ExitCode.OK
        assert (installed / NODE).read_text() == right
        assert sorted(path.name for path in installed.iterdir()) == sorted([NODE, GATEWAY])

    def test_a_folder_that_can_t_be_written_is_reported(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "etc").write_text("a file")
        assert cli.main(["install-units", "--root", str(tmp_path)]) == ExitCode.FAILED
        assert "can't be written" in capsys.readouterr().err
