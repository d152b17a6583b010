"""Files that settings name, with keys, certificates and secrets."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from strandline.node.settings.problems import located
from strandline.node.settings.section import Section
from support import pem_samples


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def pem_files(folder: Path) -> dict[str, Path]:
    """Files with a matching key and certificate, the key in other formats, and an unrelated key and certificate."""
    return {
        "certificate": write(folder / "certificate.pem", pem_samples.CERTIFICATE, 0o644),
        "key": write(folder / "key.pem", pem_samples.KEY),
        "encrypted_key": write(folder / "encrypted_key.pem", pem_samples.ENCRYPTED_KEY),
        "old_key": write(folder / "old_key.pem", pem_samples.KEY_NOT_PKCS8),
        "other_key": write(folder / "other_key.pem", pem_samples.OTHER_KEY),
        "key_password": write(folder / "key_password", f"{pem_samples.KEY_PASSWORD}\n"),
        "wrong_password": write(folder / "wrong_password", "open up\n"),
        "credentials": write(folder / "credentials", "me\nmy password\n"),
        "text": write(folder / "text", "one line\n"),
    }


def refused(section: Callable[..., Section], **values: Any) -> list[tuple[str, str]]:
    """The findings: setting and text."""
    with pytest.raises(ValidationError) as raised:
        section(**values)
    return [(each.setting, each.finding.what) for each in located(raised.value)]
