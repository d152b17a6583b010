import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import PySparkRuntimeError

from strandline.disk import DiskFull
from strandline.spark import session
from strandline.spark.java_options import JAVA_OPTIONS
from strandline.spark.session import (
    SparkUnavailable,
    session_properties,
    spark_session,
    with_task_retries,
)

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


def test_the_sources_jars_are_passed_to_spark(jars: Path) -> None:
    made = session_properties({"spark.master": "local[2]"}, jars)
    assert made["spark.jars"] == f"{jars / 'a.jar'},{jars / 'b.jar'}"


def test_python_workers_are_forked_from_a_process_that_has_their_modules(jars: Path) -> None:
    made = session_properties({"spark.master": "spark://master:7077"}, jars)
    daemon, worker = made["spark.python.daemon.module"], "pyspark.worker"
    script = f"import sys; sys.argv = ['', '{worker}']; import {daemon}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert {worker, "numba", "pyarrow", "cassandra.cluster", "strandline.spark.tasks"} <= set(loaded)


def test_a_users_property_wins(jars: Path) -> None:
    made = session_properties({"spark.master": "local[2]", "spark.ui.enabled": "true"}, jars)
    assert made["spark.ui.enabled"] == "true"


def test_a_users_java_options_are_added_to_ours(jars: Path) -> None:
    own_options = session_properties({"spark.master": "local[2]"}, jars)[JAVA_OPTIONS]
    assert "log4j2" in own_options
    made = session_properties({"spark.master": "local[2]", JAVA_OPTIONS: "-Xss2m"}, jars)
    assert made[JAVA_OPTIONS] == f"{own_options} -Xss2m"


def test_missing_jars_are_an_error_before_spark_starts(tmp_path: Path) -> None:
    with pytest.raises(SparkUnavailable, match="make setup"):
        session_properties({"spark.master": "local[2]"}, tmp_path)


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("local", "local[1,4]"),
        ("local[2]", "local[2,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2,7]", "local[2,7]"),
        ("local-cluster[1,1,1024]", "local-cluster[1,1,1024]"),
        ("spark://master:7077", "spark://master:7077"),
        ("yarn", "yarn"),
    ],
)
def test_a_local_master_tries_a_failed_task_again_as_a_cluster_does(given: str, used: str) -> None:
    assert with_task_retries(given) == used


class Gone:
    """A session whose JVM is gone by its end."""

    builder: "Gone"

    def appName(self, _name: str) -> "Gone":  # noqa: N802 - as PySpark has it
        return self

    def config(self, _key: str, _value: str) -> "Gone":
        return self

    def getOrCreate(self) -> "Gone":  # noqa: N802
        return self

    def getActiveSession(self) -> None:  # noqa: N802
        return None

    def stop(self) -> None:
        raise ConnectionRefusedError(111, "Connection refused")


def test_what_a_block_raises_is_not_hidden_by_a_session_that_is_gone(
    jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = Gone()
    gone.builder = gone
    monkeypatch.setattr(session, "SparkSession", gone)
    monkeypatch.setattr(session.os, "environ", {})
    with (
        pytest.raises(ZeroDivisionError),
        spark_session("tests", {"spark.master": "local[2]"}, jars=jars, java_home=jars),
    ):
        raise ZeroDivisionError


class Unstarted(Gone):
    """A session whose JVM does not start."""

    def getOrCreate(self) -> "Gone":  # noqa: N802
        raise PySparkRuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")


@pytest.mark.parametrize("full", [True, False])
def test_a_session_that_can_t_start_on_a_full_disk_names_the_folder(
    jars: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    unstarted = Unstarted()
    unstarted.builder = unstarted
    monkeypatch.setattr(session, "SparkSession", unstarted)
    monkeypatch.setattr(session.os, "environ", {"SPARK_LOCAL_DIRS": "/scratch/a,/scratch/b"})
    monkeypatch.setattr(session, "is_nearly_full", lambda path: full and path == Path("/scratch/a"))
    expected = (
        pytest.raises(DiskFull, match="/scratch/a")
        if full
        else pytest.raises(SparkUnavailable, match=r"local\[2\].*exited before")
    )
    with expected, spark_session("tests", {"spark.master": "local[2]"}, jars=jars, java_home=jars):
        pytest.fail("there is no session")


def test_a_session_has_the_master_that_tries_again(jars: Path) -> None:
    assert session_properties({"spark.master": "local[2]"}, jars)["spark.master"] == "local[2,4]"
