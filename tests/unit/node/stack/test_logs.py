"""Logs: the cause of a server's exit, and reading its log."""

import signal
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.node.stack.logs import (
    ADDRESS_IN_USE,
    cause_of_exit,
    follow,
    informative_lines,
    last_lines,
    size_of,
    written_since,
)

pytestmark = pytest.mark.unit

FULL = "its disk is full"
HEAP = "its heap is too small"
TOO_LARGE = "its heap is too large for this machine"
CAUSES = {
    "java.io.IOException: No space left on device": FULL,
    "FSDiskFullWriteError: java.io.IOException: Insufficient disk space to write 526 bytes into the keyspace": FULL,
    "Caused by: java.net.BindException: Address already in use": ADDRESS_IN_USE,
    "java.lang.IllegalStateException: Failed to bind port 9042 on 127.0.0.1.": ADDRESS_IN_USE,
    "ConfigurationException: /127.0.0.1:7000 is in use by another process.": ADDRESS_IN_USE,
    "Terminating due to java.lang.OutOfMemoryError: Java heap space": HEAP,
    "Invalid maximum heap size: -Xmxx": TOO_LARGE,
    "Error occurred during initialization of VM\nCould not reserve enough space": TOO_LARGE,
    "java.lang.UnsupportedClassVersionError: kafka/Kafka": "it does not support this version of Java",
    "java.nio.file.AccessDeniedException: /x": "it has no permission to write its files",
    "java.io.FileNotFoundException: /x (Too many open files)": "its limit of open files is too low",
    "org.apache.kafka.common.config.ConfigException: Invalid value x": "its configuration is invalid",
}


@pytest.mark.parametrize("line", CAUSES)
def test_cause_is_recognised_from_the_log(line: str) -> None:
    log = f"2026-11-16 03:14:28,752 INFO  StorageService starts\n{line}\n\tat java.base/Frame\n"

    assert cause_of_exit(log, 1, "kafka").what == CAUSES[line]


def test_remedy_names_the_setting_of_the_server() -> None:
    assert cause_of_exit("java.lang.OutOfMemoryError", 3, "cassandra").remedy == "Raise stack.cassandra_heap"


def test_killed_server_has_a_remedy_about_the_kernel() -> None:
    cause = cause_of_exit("all is well", -signal.SIGKILL, "kafka")

    assert cause.what == "it was killed"
    assert "dmesg" in cause.remedy


def test_unknown_cause_has_a_remedy_about_the_log() -> None:
    assert "strandline stack logs kafka" in cause_of_exit("", 1, "kafka").remedy


def test_relevant_lines_leave_out_stack_frames() -> None:
    log = (
        "first\nERROR failed\n\tat a.b.C(D.java:1)\n\t... 16 more\nCaused by: x\n\n\t\tat a.b.E(F.java:2)\nWARNING: y\n"
    )

    assert informative_lines(log, 2) == ["ERROR failed", "Caused by: x"]


def test_relevant_lines_are_limited() -> None:
    assert [len(line) for line in informative_lines("x" * 5000, 1)] == [303]


def test_only_text_since_the_position_counts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("old: No space left on device\n", encoding="utf-8")
    position = size_of(log)
    with log.open("a", encoding="utf-8") as file:
        file.write("new\n")

    assert written_since(log, position) == "new\n"


def test_all_of_a_log_that_was_rotated_counts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("short\n", encoding="utf-8")

    assert written_since(log, 1000) == "short\n"


def test_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    missing = tmp_path / "log"

    assert (written_since(missing, 0), last_lines(missing, 5), size_of(missing)) == ("", [], 0)


def test_follow_returns_the_last_lines_and_then_each_new_one_across_a_rotation(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\ntwo\nthree\n")
    lines = follow(log, 2, clock=ManualClock())
    followed = [next(lines), next(lines)]

    with log.open("ab") as file:
        file.write(b"four\nhalf of ")
    followed.append(next(lines))
    with log.open("ab") as file:
        file.write(b"five\n")
    log.rename(tmp_path / "log.1")
    log.write_bytes(b"six\n")
    followed += [next(lines), next(lines)]

    assert followed == ["two", "three", "four", "half of five", "six"]


def test_follow_waits_for_a_log_that_is_not_there_yet(tmp_path: Path) -> None:
    log = tmp_path / "log"
    waited = []

    class AppendingClock(ManualClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            waited.append(seconds)
            if len(waited) == 3:
                log.write_bytes(b"at last\n")

    assert next(follow(log, 5, clock=AppendingClock())) == "at last"
    assert len(waited) == 3


def test_follow_ends_on_request_after_all_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\ntwo\n")

    assert list(follow(log, 10, stop=lambda: True, clock=ManualClock())) == ["one", "two"]
