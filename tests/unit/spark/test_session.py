from pathlib import Path

import pytest

from strandline.spark.session import SparkUnavailable, session_properties

pytestmark = pytest.mark.unit


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    for name in ("b.jar", "a.jar", "notes.txt"):
        (tmp_path / name).touch()
    return tmp_path


def test_a_local_driver_listens_on_loopback_only(jars: Path) -> None:
    local = session_properties({"spark.master": "local[2]"}, jars)
    assert local["spark.driver.host"] == local["spark.driver.bindAddress"] == "127.0.0.1"
    cluster = session_properties({"spark.master": "spark://master:7077"}, jars)
    assert "spark.driver.host" not in cluster


def test_the_sources_jars_are_handed_over(jars: Path) -> None:
    made = session_properties({"spark.master": "local[2]"}, jars)
    assert made["spark.jars"] == f"{jars / 'a.jar'},{jars / 'b.jar'}"


def test_a_users_property_wins(jars: Path) -> None:
    made = session_properties({"spark.master": "local[2]", "spark.ui.enabled": "true"}, jars)
    assert made["spark.ui.enabled"] == "true"


def test_missing_jars_are_an_error_before_spark_starts(tmp_path: Path) -> None:
    with pytest.raises(SparkUnavailable, match="make setup"):
        session_properties({"spark.master": "local[2]"}, tmp_path)
