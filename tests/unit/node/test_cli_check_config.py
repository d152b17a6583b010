import json
import os
from pathlib import Path

import pytest

from strandline.node.cli.main import main
from strandline.node.settings import load
from strandline.node.settings.sources import section_models
from support import pem_samples

pytestmark = pytest.mark.unit

SECRET = "hunter2-s3cr3t"
CONF = Path(__file__).parents[3] / "conf" / "strandline.toml"


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(load, "DEFAULT_FILE", tmp_path / "none.toml")
    for name in [name for name in os.environ if name.startswith("STRANDLINE_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def secure(tmp_path: Path) -> Path:
    """A settings file with all kinds of secrets."""
    contents = {
        "kafka-login": f"kafka-user\n{SECRET}\n",
        "cassandra-login": f"cassandra-user\n{SECRET}-too\n",
        "certificate.pem": pem_samples.CERTIFICATE,
        "key.pem": pem_samples.ENCRYPTED_KEY,
        "key-password": pem_samples.KEY_PASSWORD,
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o600)
    tls = """\
tls_ca_file = "certificate.pem"
tls_certificate_file = "certificate.pem"
tls_key_file = "key.pem"
tls_key_password_file = "key-password"
"""
    file = tmp_path / "strandline.toml"
    file.write_text(
        f"""\
[kafka]
security_protocol = "SASL_SSL"
sasl_mechanism = "SCRAM-SHA-512"
credentials_file = "kafka-login"
{tls}
[kafka.client]
fetch.min.bytes = 65536

[cassandra]
credentials_file = "cassandra-login"
tls = true
{tls}""",
        encoding="utf-8",
    )
    return file


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["check-config", *arguments])
    captured = capsys.readouterr()
    for secret in (SECRET, pem_samples.KEY_PASSWORD, *pem_samples.ENCRYPTED_KEY.splitlines()):
        assert secret not in captured.out + captured.err
    return code, captured.out, captured.err


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in table.splitlines()]


def test_valid_settings_are_shown_with_their_sources(
    secure: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRANDLINE_LOG__LEVEL", "WARNING")
    code, out, err = check(capsys, "--config", str(secure))
    assert (code, err) == (0, "")
    captured = rows(out)
    assert captured[0] == [f"The settings are valid ({secure})."]
    for row in (
        ["setting", "value", "from"],
        ["log.level", "warning", "environment variable STRANDLINE_LOG__LEVEL"],
        ["log.format", "auto", "default"],
        ["dataset.name", "metrics", "default"],
        ["dataset.retention", "7d", "default"],
        ["dataset.margin", "(none)", "default"],
        ["shard.first_start", "earliest", "default"],
        ["shard.flush_spread", "0.8", "default"],
        ["store.kind", "cassandra", "default"],
        ["kafka.bootstrap_servers", "localhost:9092", "default"],
        ["kafka.sasl_mechanism", "SCRAM-SHA-512", "strandline.toml line 3"],
        ["kafka.credentials_file", str(secure.parent / "kafka-login"), "strandline.toml line 4"],
        ["kafka.client.fetch.min.bytes", "65536", "strandline.toml line 11"],
        ["cassandra.tls", "true", "strandline.toml line 15"],
        ["cassandra.tls_key_file", str(secure.parent / "key.pem"), "strandline.toml line 18"],
        ["spark.properties", "(none)", "default"],
        ["stack.kafka_heap", "512m", "default"],
    ):
        assert row in captured


def test_valid_settings_are_one_json_document(
    secure: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRANDLINE_LOG__LEVEL", "WARNING")
    code, out, err = check(capsys, "--config", str(secure), "--output", "json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["file"] == str(secure)
    settings = {each.pop("setting"): each for each in document["settings"]}
    expected = {f"{section}.{name}" for section, model in section_models().items() for name in model.model_fields}
    assert set(settings) == expected - {"kafka.client"} | {"kafka.client.fetch.min.bytes"}
    assert settings["log.level"] == {
        "value": "warning",
        "origin": "environment",
        "where": "environment variable STRANDLINE_LOG__LEVEL",
    }
    assert settings["kafka.client.fetch.min.bytes"]["value"] == 65536
    assert settings["kafka.bootstrap_servers"] == {"value": ["localhost:9092"], "origin": "default", "where": "default"}
    assert settings["cassandra.tls"] == {"value": True, "origin": "file", "where": "strandline.toml line 15"}
    assert settings["shard.flush_spread"]["value"] == 0.8
    assert settings["stack.start_timeout"]["value"] == "1m"
    assert settings["stack.java_home"]["value"] == ""


def test_without_a_file_the_defaults_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = check(capsys)
    assert code == 0
    assert out.startswith("The settings are valid (no settings file).\n")
    assert {row[2] for row in rows(out)[3:] if row} == {"default"}


def test_the_documented_file_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, "--config", str(CONF))[0] == 0


WRONG = f"""\
[kafka]
security_protocol = "SASL_SSL"
sasl_mechanisms = "PLAIN"
request_timeout = "soon"

[kafka.client]
sasl.password = "{SECRET}"
"""


def test_invalid_settings_are_a_table_of_all_problems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "strandline.toml"
    file.write_text(WRONG, encoding="utf-8")
    code, out, err = check(capsys, "--config", str(file))
    assert (code, out) == (2, "")
    assert rows(err) == [
        ["error: 5 settings are wrong"],
        ["Nothing has been done"],
        [],
        ["setting", "value", "where", "what is wrong", "what would be right"],
        [
            "kafka.request_timeout",
            '"soon"',
            "strandline.toml line 4",
            "is not a duration",
            'Write an integer and one of ms, s, m, h, d, such as "30s" or "5m"',
        ],
        [
            "kafka.client.sasl.password",
            "(hidden)",
            "strandline.toml line 7",
            "is a secret, and secrets are not allowed here",
            "Put it on line 2 of the file that kafka.credentials_file names",
        ],
        [
            "kafka.sasl_mechanisms",
            "(hidden)",
            "strandline.toml line 3",
            "is not a setting",
            'Did you mean "sasl_mechanism"?',
        ],
        [
            "kafka.sasl_mechanism",
            "strandline.toml line 2",
            "is needed with security_protocol SASL_SSL",
            "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512",
        ],
        [
            "kafka.credentials_file",
            "strandline.toml line 2",
            "is needed with security_protocol SASL_SSL",
            "The path of a file",
        ],
    ]


def test_invalid_settings_are_one_json_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "strandline.toml"
    file.write_text(WRONG, encoding="utf-8")
    code, out, err = check(capsys, "--config", str(file), "--output", "json")
    assert (code, err) == (2, "")
    error = json.loads(out)["error"]
    assert (error["type"], error["message"], error["exit_code"]) == ("SettingsError", "5 settings are wrong", 2)
    assert len(error["problems"]) == 5
    assert error["problems"][1] == {
        "setting": "kafka.client.sasl.password",
        "value_shown": "(hidden)",
        "where": "strandline.toml line 7",
        "what": "is a secret, and secrets are not allowed here",
        "remedy": "Put it on line 2 of the file that kafka.credentials_file names",
    }


def test_a_file_that_is_not_toml_is_refused_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "strandline.toml"
    file.write_text(f'[kafka]\npassword = "{SECRET}\n', encoding="utf-8")
    code, _, err = check(capsys, "--config", str(file))
    assert code == 2
    assert "strandline.toml line 2, column 27" in err
    assert "is not TOML: Illegal character" in err


def test_inconsistent_durations_are_refused_with_a_remedy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRANDLINE_DATASET__RETENTION", "3650d")
    monkeypatch.setenv("STRANDLINE_SHARD__JAVA_HEAP", "64m")
    monkeypatch.setenv("STRANDLINE_SHARD__LUCENE_BUFFER", "33m")
    code, _, err = check(capsys)
    assert code == 2
    assert [row[:3] for row in rows(err)[4:]] == [
        ["dataset.retention", '"3650d"', "environment variable STRANDLINE_DATASET__RETENTION"],
        ["shard.lucene_buffer", '"33m"', "environment variable STRANDLINE_SHARD__LUCENE_BUFFER"],
    ]
    assert "Raise flush_interval, or lower groups, retention or history" in err
