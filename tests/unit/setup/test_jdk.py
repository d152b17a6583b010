from pathlib import Path

import pytest

from strandline.setup.jdk import NoJdk, find_jdk

pytestmark = pytest.mark.unit


def make_jdk(home: Path, version: str, *, compiler: bool = True) -> Path:
    for name in ("bin/java", "lib/server/libjvm.so") + (("bin/javac",) if compiler else ()):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).touch()
    (home / "release").write_text(f'IMPLEMENTOR="Debian"\nJAVA_VERSION="{version}"\n')
    return home


def test_java_home_is_taken_when_it_is_version_17(tmp_path: Path) -> None:
    own = make_jdk(tmp_path / "own", "17.0.2")
    make_jdk(tmp_path / "jvm" / "java-17-openjdk-amd64", "17.0.15")
    assert find_jdk({"JAVA_HOME": str(own)}, tmp_path / "jvm") == own


def test_a_java_home_of_another_version_is_skipped(tmp_path: Path) -> None:
    newer = make_jdk(tmp_path / "newer", "25.0.1")
    debian = make_jdk(tmp_path / "jvm" / "java-17-openjdk-amd64", "17.0.15")
    assert find_jdk({"JAVA_HOME": str(newer)}, tmp_path / "jvm") == debian


def test_every_candidate_is_named_with_its_fault(tmp_path: Path) -> None:
    newer = make_jdk(tmp_path / "newer", "25.0.1")
    make_jdk(tmp_path / "jvm" / "java-17-openjdk-amd64", "17.0.15", compiler=False)
    with pytest.raises(NoJdk) as caught:
        find_jdk({"JAVA_HOME": str(newer)}, tmp_path / "jvm")
    assert "newer: it is Java 25, not 17" in str(caught.value)
    assert "java-17-openjdk-amd64: bin/javac is missing" in str(caught.value)
    assert "openjdk-17-jdk-headless" in caught.value.remedy


def test_without_java_the_package_to_install_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoJdk, match="openjdk-17-jdk-headless"):
        find_jdk({}, tmp_path)
