"""The validation of files that settings name: TLS files, tokens and credentials."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from strandline.node.settings import CassandraSettings, KafkaSettings
from strandline.node.settings.http_sections import HttpSettings
from strandline.node.settings.problems import located
from strandline.node.settings.section import Section
from support import pem_samples
from support.settings_files import pem_files, refused, write

pytestmark = pytest.mark.unit


@pytest.fixture
def pem(tmp_path: Path) -> dict[str, Path]:
    return pem_files(tmp_path)


def secure_kafka(**values: Any) -> Section:
    return KafkaSettings(security_protocol="SSL", **values)


def secure_cassandra(**values: Any) -> Section:
    return CassandraSettings(tls=True, **values)


both = pytest.mark.parametrize("secure", [secure_kafka, secure_cassandra])


@pytest.mark.parametrize(("section", "switch"), [(KafkaSettings, "security_protocol"), (CassandraSettings, "tls")])
def test_tls_files_are_refused_while_tls_is_off(pem: dict[str, Path], section: type[Section], switch: str) -> None:
    off = f"is given, but {switch} leaves TLS off"
    assert refused(section, tls_ca_file=pem["certificate"]) == [("tls_ca_file", off)]
    assert refused(section, tls_certificate_file=pem["certificate"], tls_key_file=pem["key"]) == [
        ("tls_certificate_file", off),
        ("tls_key_file", off),
    ]


@both
def test_a_certificate_and_key_that_fit_are_accepted(pem: dict[str, Path], secure: Callable[..., Section]) -> None:
    certificate = pem["certificate"]
    secure(tls_ca_file=certificate, tls_certificate_file=certificate, tls_key_file=pem["key"])
    secure(
        tls_certificate_file=certificate,
        tls_key_file=pem["encrypted_key"],
        tls_key_password_file=pem["key_password"],
    )


@both
@pytest.mark.parametrize(
    ("given", "setting", "what"),
    [
        ({"certificate": "certificate"}, "tls_key_file", "is needed with tls_certificate_file"),
        ({"key": "key"}, "tls_certificate_file", "is needed with tls_key_file"),
        ({"key_password": "key_password"}, "tls_key_password_file", "is given without a private key"),
        (
            {"certificate": "certificate", "key": "other_key"},
            "tls_key_file",
            "does not match tls_certificate_file",
        ),
        (
            {"certificate": "certificate", "key": "encrypted_key"},
            "tls_key_password_file",
            "is needed with an encrypted tls_key_file",
        ),
        (
            {"certificate": "certificate", "key": "encrypted_key", "key_password": "wrong_password"},
            "tls_key_password_file",
            "does not decrypt the private key",
        ),
    ],
)
def test_tls_files_that_do_not_belong_together_are_refused(
    pem: dict[str, Path], secure: Callable[..., Section], given: dict[str, str], setting: str, what: str
) -> None:
    values = {f"tls_{name}_file": pem[file] for name, file in given.items()}
    assert refused(secure, **values) == [(setting, what)]


@both
def test_a_damaged_authority_is_refused(tmp_path: Path, secure: Callable[..., Section]) -> None:
    damaged = write(tmp_path / "ca.pem", pem_samples.CERTIFICATE.replace("MII", "XXX"))
    assert refused(secure, tls_ca_file=damaged) == [("tls_ca_file", "contains an invalid certificate")]


def test_a_key_that_spark_can_not_read_is_refused_for_kafka_alone(pem: dict[str, Path]) -> None:
    pair = {"tls_certificate_file": pem["certificate"], "tls_key_file": pem["old_key"]}
    CassandraSettings(tls=True, **pair)
    assert refused(KafkaSettings, security_protocol="SSL", **pair) == [
        ("tls_key_file", "is not in PKCS#8 format, the only one that Spark's Kafka client reads")
    ]


@pytest.mark.parametrize(
    ("name", "file", "what"),
    [
        ("tls_ca_file", "text", "contains no certificate"),
        ("tls_certificate_file", "key", "contains no certificate"),
        ("tls_key_file", "certificate_only", "contains no private key"),
        ("tls_key_password_file", "credentials", "does not have exactly one line"),
        ("tls_key_password_file", "empty", "does not have exactly one line"),
        ("credentials_file", "text", "does not have exactly two lines"),
        ("credentials_file", "three_lines", "does not have exactly two lines"),
        ("credentials_file", "no_user", "does not have exactly two lines"),
        ("credentials_file", "binary", "is not a text file"),
        ("credentials_file", "huge", "is too large for such a file"),
        ("credentials_file", "missing", "does not exist"),
        ("credentials_file", "folder", "can't be read: it is not a regular file"),
        ("credentials_file", "readable_by_group", "is accessible by others than its owner (mode 640)"),
        ("credentials_file", "readable_by_all", "is accessible by others than its owner (mode 604)"),
        ("tls_key_file", "readable_by_all", "is accessible by others than its owner (mode 604)"),
        ("tls_key_password_file", "readable_by_group", "is accessible by others than its owner (mode 640)"),
    ],
)
def test_a_file_with_the_wrong_content_is_refused(
    tmp_path: Path, pem: dict[str, Path], name: str, file: str, what: str
) -> None:
    files = {
        **pem,
        "certificate_only": write(tmp_path / "certificate_only.pem", pem_samples.CERTIFICATE),
        "empty": write(tmp_path / "empty", ""),
        "three_lines": write(tmp_path / "three_lines", "a\nb\nc\n"),
        "no_user": write(tmp_path / "no_user", "\npassword\n"),
        "huge": write(tmp_path / "huge", "x" * ((4 << 20) + 1)),
        "missing": tmp_path / "missing",
        "folder": tmp_path,
        "readable_by_group": write(tmp_path / "readable_by_group", "a\nb\n", 0o640),
        "readable_by_all": write(tmp_path / "readable_by_all", "a\nb\n", 0o604),
        "binary": tmp_path / "binary",
    }
    files["binary"].write_bytes(b"\xff\xfe\x00")
    files["binary"].chmod(0o600)
    assert (name, what) in refused(CassandraSettings, tls=True, **{name: files[file]})


FIRST, SECOND = "first-token-0123456789", "second-token-0123456789"


@pytest.mark.parametrize(
    ("content", "tokens"),
    [
        (f"{FIRST}\n", [FIRST]),
        (f"{FIRST}\n{SECOND}", [FIRST, SECOND]),
        (f"\n{FIRST}\r\n \n\n{SECOND}\n\n", [FIRST, SECOND]),
        (f"{FIRST}\n{FIRST}\n", [FIRST, FIRST]),
    ],
)
def test_each_line_of_a_token_file_that_is_not_blank_is_a_token_and_a_secret(
    tmp_path: Path, content: str, tokens: list[str]
) -> None:
    settings = HttpSettings(write_token_file=write(tmp_path / "tokens", content))
    assert settings.write_token_file is not None
    assert [token.get_secret_value() for token in settings.write_token_file.tokens] == tokens
    assert list(settings.secrets()) == tokens
    assert FIRST not in repr(settings)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "contains no token"),
        ("\n \n", "contains no token"),
        ("too-short\n", "contains an invalid token"),
        (f"{FIRST}\ntoo-short\n", "contains an invalid token in token 2 of 2"),
        (f"{FIRST} {SECOND}\n", "contains an invalid token"),
        (f"# old\n{FIRST}\n", "contains an invalid token in token 1 of 2"),
        (f"{FIRST}\n" * 17, "contains 17 tokens"),
    ],
)
def test_a_token_file_with_other_content_is_refused(tmp_path: Path, content: str, what: str) -> None:
    assert refused(HttpSettings, write_token_file=write(tmp_path / "tokens", content)) == [("write_token_file", what)]


def test_no_token_of_one_file_may_be_in_another(tmp_path: Path) -> None:
    files = {
        "read_token_file": write(tmp_path / "read", f"{FIRST}\n"),
        "write_token_file": write(tmp_path / "write", f"{SECOND}\n{FIRST}\n"),
    }
    assert refused(HttpSettings, **files) == [
        ("admin_token_file", "contains a token that another setting's file also contains")
    ]


def test_a_file_that_may_not_be_opened_is_refused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, pem: dict[str, Path]
) -> None:
    """As root, every file can be opened, so the error is injected."""

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.open", refuse)
    assert refused(CassandraSettings, credentials_file=pem["credentials"]) == [
        ("credentials_file", "can't be read: Permission denied")
    ]


def test_a_file_that_others_can_access_gets_the_chmod_command_as_remedy(tmp_path: Path) -> None:
    path = write(tmp_path / "open", "a\nb\n", 0o644)
    with pytest.raises(ValidationError) as raised:
        CassandraSettings(credentials_file=path)
    (problem,) = located(raised.value)
    assert problem.finding.remedy == f"Run `chmod 600 {path}`"


def test_credentials_are_two_lines_that_are_read_unchanged(tmp_path: Path) -> None:
    path = write(tmp_path / "credentials", 'us er\r\n pa"ss\\w\x0bö\u2028rd \r\n\n')
    credentials = CassandraSettings(credentials_file=path).credentials_file
    assert credentials is not None
    assert credentials.username == "us er"
    assert credentials.password.get_secret_value() == ' pa"ss\\w\x0bö\u2028rd '
