"""Paths are relative to the settings file, or to the current folder."""

from pathlib import Path

import pytest

from strandline.node.settings import SettingsError, load_settings

pytestmark = pytest.mark.unit


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    path = tmp_path / "etc" / "secrets" / "cassandra"
    path.parent.mkdir(parents=True)
    path.write_text("me\nmy password\n", encoding="utf-8")
    path.chmod(0o600)
    return path


def test_a_path_in_a_file_is_relative_to_the_file_s_folder(
    tmp_path: Path, credentials: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "etc" / "strandline.toml"
    file.write_text('[cassandra]\ncredentials_file = "secrets/cassandra"\n', encoding="utf-8")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    for path in (file, Path("../etc/strandline.toml")):
        credentials_file = load_settings(path, {}).cassandra.credentials_file
        assert credentials_file is not None
        assert credentials_file.path.samefile(credentials)
        assert credentials_file.path.is_absolute()


def test_a_path_in_the_environment_is_relative_to_the_working_folder(
    tmp_path: Path, credentials: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(credentials.parent)
    file = tmp_path / "etc" / "strandline.toml"
    file.write_text("", encoding="utf-8")
    environ = {"STRANDLINE_CASSANDRA__CREDENTIALS_FILE": "cassandra", "STRANDLINE_STACK__STATE_DIR": "state"}
    settings = load_settings(file, environ)
    assert settings.cassandra.credentials_file is not None
    assert settings.cassandra.credentials_file.path == credentials
    assert settings.stack.state_dir == credentials.parent / "state"


def test_a_missing_file_is_shown_if_it_is_certainly_a_path(credentials: Path) -> None:
    file = credentials.parents[1] / "strandline.toml"
    file.write_text('[cassandra]\ncredentials_file = "secrets/kasandra"\n', encoding="utf-8")
    with pytest.raises(SettingsError) as raised:
        load_settings(file, {})
    (problem,) = raised.value.problems
    assert (problem.value_shown, problem.what) == ('"secrets/kasandra"', "does not exist")
    file.write_text('[cassandra]\ncredentials_file = "kasandra"\n', encoding="utf-8")
    with pytest.raises(SettingsError) as raised:
        load_settings(file, {})
    (problem,) = raised.value.problems
    assert problem.value_shown == "(hidden)"
    assert problem.what == "does not exist (the value is not shown, since it may be a secret itself)"
