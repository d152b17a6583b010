"""The options of Kafka's client that no setting can change."""

from types import SimpleNamespace

import pytest

from strandline.node.shard import kafka_log
from strandline.node.shard.kafka_log import KafkaLog

pytestmark = pytest.mark.unit


def test_no_setting_can_change_isolation_level_or_offset_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Live reading and a replay must see the same records, and the manifest decides where to read from."""
    created: list[dict[str, object]] = []
    monkeypatch.setattr(kafka_log, "create_client", lambda _kind, options: created.append(options))
    monkeypatch.setattr(kafka_log, "KafkaAdmin", lambda _options, topic: SimpleNamespace(topic=topic))
    overridden = {"isolation.level": "read_uncommitted", "auto.offset.reset": "earliest", "enable.auto.commit": True}
    KafkaLog(overridden, dataset="metrics", topic="metrics", partition=0)
    (options,) = created
    assert options["isolation.level"] == "read_committed"
    assert options["auto.offset.reset"] == "error"
    assert options["enable.auto.commit"] is False
