"""Checking the Java version before a server is started."""

from pathlib import Path

import pytest

from strandline.node.stack import java
from strandline.node.stack.errors import WrongJava

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("shown", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6-Debian)', 17),
        ('openjdk version "17" 2021-09-14', 17),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "11.0.21" 2023-10-17', 11),
        ("command not understood", None),
        ("", None),
    ],
)
def test_feature_release_is_read_from_what_java_prints(shown: str, major: int | None) -> None:
    assert java.major_version(shown) == major


def fake_jdk(folder: Path, script: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    return folder


def test_java_of_another_version_is_refused_and_named(tmp_path: Path) -> None:
    jdk = fake_jdk(tmp_path, """echo 'openjdk version "21.0.2" 2024-01-16' >&2""")

    with pytest.raises(WrongJava) as caught:
        java.checked_java(jdk)

    assert caught.value.message == f"{jdk}/bin/java is Java 21; Cassandra and Kafka require Java 17"
    assert "stack.java_home" in caught.value.remedy


def test_java_of_the_right_version_is_taken(tmp_path: Path) -> None:
    jdk = fake_jdk(tmp_path, """echo 'openjdk version "17.0.9" 2023-10-17' >&2""")

    assert java.checked_java(jdk) == jdk / "bin" / "java"


def test_missing_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongJava, match=f"there is no Java at {tmp_path}/bin/java"):
        java.checked_java(tmp_path)


def test_java_that_fails_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongJava, match="can't be run"):
        java.checked_java(fake_jdk(tmp_path, "exit 3"))


def test_environment_variables_that_change_a_jvm_are_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH"):
        monkeypatch.setenv(name, "-Xmx1k")
    monkeypatch.setenv("TZ", "UTC")

    passed = java.environment()

    assert "-Xmx1k" not in passed.values()
    assert passed["TZ"] == "UTC"


def test_argument_file_quotes_what_java_would_split() -> None:
    assert java.argument_file(["-cp", "/a folder/b.jar", 'say "x"', "back\\slash"]) == (
        '"-cp"\n"/a folder/b.jar"\n"say \\"x\\""\n"back\\\\slash"\n'
    )


def test_jvm_uses_c2_only_with_the_option() -> None:
    def arguments(*, optimise: bool) -> list[str]:
        return java.jvm_arguments("1g", temporary=Path("/t"), crash_log=Path("/c"), optimise=optimise)

    assert "-XX:TieredStopAtLevel=1" in arguments(optimise=False)
    assert "-XX:TieredStopAtLevel=1" not in arguments(optimise=True)
    assert "-Xmx1g" in arguments(optimise=False)
