"""Reading a token from a file."""

import os
from pathlib import Path

import pytest

from strandline.errors import ExitCode
from strandline.node.client.tokens import BadTokenFile, read_token

pytestmark = pytest.mark.unit


def written(folder: Path, content: bytes, mode: int = 0o600) -> Path:
    path = folder / "token"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_the_only_line_is_the_token(tmp_path: Path) -> None:
    assert read_token(written(tmp_path, b"abc-DEF.123=\n")) == "abc-DEF.123="


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(BadTokenFile, match="accessible to other users") as refused:
        read_token(written(tmp_path, b"hunter2\n", mode))
    assert "chmod 600" in refused.value.remedy
    assert refused.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"hunter2\nmore\n", b"hunter2\r\nX-Injected: 1", b"hunter\x002", b"\xff"]
)
def test_a_token_with_invalid_characters_is_refused_and_not_shown(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(BadTokenFile, match="contains no valid token") as refused:
        read_token(written(tmp_path, content))
    assert "hunter" not in str(refused.value)


def test_a_path_that_is_not_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadTokenFile, match="can't be read: No such file"):
        read_token(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadTokenFile, match="is not a regular file"):
        read_token(tmp_path / "pipe")
