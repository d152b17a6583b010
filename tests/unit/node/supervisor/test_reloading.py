"""Which new settings a running node applies."""

from pathlib import Path

import pytest

from strandline.node.settings import Settings
from strandline.node.supervisor.reloading import Reload, TakesEffect, reloaded
from support.certificates import make_certificates

pytestmark = pytest.mark.unit


def token(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text + "\n")
    path.chmod(0o600)
    return str(path)


def names(outcome: Reload) -> dict[str, TakesEffect]:
    return {change.name: change.takes_effect for change in outcome.changes}


def test_unchanged_settings_change_nothing() -> None:
    outcome = reloaded(Settings(), Settings())
    assert outcome == Reload(Settings())


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("log", "level", "debug"),
        ("node", "shards", "0-2"),
        ("node", "restarts", 9),
        ("node", "hang_after", "2m"),
        ("query", "timeout", "5s"),
        ("query", "max_series", 7),
    ],
)
def test_reloadable_settings_are_applied_at_once(section: str, name: str, value: object) -> None:
    read = Settings(**{section: {name: value}})
    outcome = reloaded(Settings(), read)
    assert names(outcome) == {f"{section}.{name}": TakesEffect.AT_ONCE}
    assert outcome.settings == read


@pytest.mark.parametrize(
    ("section", "name", "value", "when"),
    [
        ("shard", "buffer_memory", "1g", TakesEffect.WITH_SHARD),
        ("kafka", "request_timeout", "9s", TakesEffect.WITH_SHARD),
        ("cassandra", "keyspace", "other", TakesEffect.WITH_SHARD),
        ("dataset", "name", "other", TakesEffect.WITH_SHARD),
        ("store", "kind", "sqlite", TakesEffect.WITH_SHARD),
        ("replay", "threshold", 7, TakesEffect.WITH_SHARD),
        ("spark", "master", "local[3]", TakesEffect.WITH_SHARD),
        ("query", "result_cache", "1m", TakesEffect.WITH_SHARD),
        ("http", "node_address", "127.0.0.1:1", TakesEffect.WITH_NODE),
        ("http", "connections", 7, TakesEffect.WITH_NODE),
        ("log", "format", "json", TakesEffect.WITH_NODE),
        ("gateway", "max_series", 7, TakesEffect.ELSEWHERE),
        ("stack", "kafka_port", 7, TakesEffect.ELSEWHERE),
    ],
)
def test_other_settings_are_named_and_not_applied(section: str, name: str, value: object, when: TakesEffect) -> None:
    outcome = reloaded(Settings(), Settings(**{section: {name: value}}))
    assert names(outcome) == {f"{section}.{name}": when}
    assert outcome.settings == Settings()
    assert outcome.names(when) == (f"{section}.{name}",)


def test_shards_that_still_wait_for_longer_are_not_killed_by_a_shorter_limit() -> None:
    """They get the new `kafka.request_timeout` when they are restarted."""
    read = Settings(node={"hang_after": "10s", "restarts": 9}, kafka={"request_timeout": "5s"})
    outcome = reloaded(Settings(), read)
    assert names(outcome) == {
        "node.restarts": TakesEffect.AT_ONCE,
        "node.hang_after": TakesEffect.WITH_NODE,
        "kafka.request_timeout": TakesEffect.WITH_SHARD,
    }
    assert (outcome.settings.node.restarts, outcome.settings.node.hang_after) == (9, Settings().node.hang_after)


def test_another_token_in_the_same_file_is_applied(tmp_path: Path) -> None:
    before = Settings(http={"read_token_file": token(tmp_path, "read", "a" * 20)})
    after = Settings(http={"read_token_file": token(tmp_path, "read", "b" * 20)})
    outcome = reloaded(before, after)
    assert names(outcome) == {"http.read_token_file": TakesEffect.AT_ONCE}
    assert outcome.settings.http.read_token_file == after.http.read_token_file


def test_a_token_is_not_removed_while_the_address_that_it_protects_is_still_open(tmp_path: Path) -> None:
    before = Settings(http={"node_address": "0.0.0.0:9460", "read_token_file": token(tmp_path, "read", "a" * 20)})
    outcome = reloaded(before, Settings())
    assert outcome.settings.http == before.http
    assert set(names(outcome).values()) == {TakesEffect.WITH_NODE}


def with_certificate(folder: Path) -> Settings:
    """TLS with a certificate of a new authority in a folder."""
    certificates = make_certificates(folder).ca.parent
    return Settings(
        http={
            "tls_certificate_file": str(certificates / "server.pem"),
            "tls_key_file": str(certificates / "server.key"),
        }
    )


def test_another_certificate_is_applied_if_tls_is_on(tmp_path: Path) -> None:
    before, after = with_certificate(tmp_path / "a"), with_certificate(tmp_path / "b")
    outcome = reloaded(before, after)
    assert names(outcome) == {
        "http.tls_certificate_file": TakesEffect.AT_ONCE,
        "http.tls_key_file": TakesEffect.AT_ONCE,
    }
    assert outcome.settings == after
    assert reloaded(outcome.settings, after).changes == (), "a change is reported once"


def test_tls_is_not_switched_on_or_off_by_a_reload(tmp_path: Path) -> None:
    encrypted = with_certificate(tmp_path / "ca")
    for before, after in ((Settings(), encrypted), (encrypted, Settings())):
        outcome = reloaded(before, after)
        assert set(names(outcome).values()) == {TakesEffect.WITH_NODE}
        assert outcome.settings == before
