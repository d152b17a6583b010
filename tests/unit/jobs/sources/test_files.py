"""Files by URI and pattern, their identity, and what can't be read."""

import os
from pathlib import Path

import pytest

from strandline.jobs.exporting.target import Target
from strandline.jobs.sources.files import file_system, find_files, find_folders, identify, open_file, require_unchanged
from strandline.jobs.sources.source_errors import SourceChanged, SourceUnusable
from strandline.jobs.sources.uris import require_no_credentials

pytestmark = pytest.mark.unit


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.csv", "b.csv", "c.txt", "deep/er/d.csv"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def names(folder: Path, *uris: str) -> list[str]:
    return [file.uri.removeprefix(f"{folder}/") for file in find_files(uris)]


def test_a_pattern_stays_within_a_folder_unless_it_has_two_stars(folder: Path) -> None:
    assert names(folder, f"{folder}/*.csv") == ["a.csv", "b.csv"]
    assert names(folder, f"{folder}/**/*.csv") == ["a.csv", "b.csv", "deep/er/d.csv"]
    assert names(folder, f"{folder}/[ac].*") == ["a.csv", "c.txt"]
    assert names(folder, f"{folder}/deep/*/d.csv") == ["deep/er/d.csv"]


def test_a_file_that_is_named_twice_is_read_once(folder: Path) -> None:
    assert names(folder, f"{folder}/a.csv", f"{folder}/*.csv", f"{folder}/a.csv") == ["a.csv", "b.csv"]


def test_folders_are_found_by_pattern_too(folder: Path) -> None:
    (folder / "deep" / "other").mkdir()
    found = find_folders([f"{folder}/deep/*", f"{folder}/deep/er", f"{folder}/d*p"])
    assert [uri.removeprefix(f"{folder}/") for uri in found] == ["deep", "deep/er", "deep/other"]
    with pytest.raises(SourceUnusable, match="no folder matches"):
        find_folders([f"{folder}/*.csv"])


def test_a_path_may_be_relative_and_a_uri_may_have_a_scheme(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert names(folder, "a.csv") == names(folder, "[a].csv") == ["a.csv"]
    (file,) = find_files([f"file://{folder}/a.csv"])
    assert file.uri == f"file://{folder}/a.csv"
    (matched,) = find_files([f"file://{folder}/a*.csv"])
    assert matched == file
    with open_file(file) as content:
        assert content.read() == b"a.csv"


def test_wildcards_in_the_name_of_the_current_folder_are_literal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "[1]").mkdir()
    (tmp_path / "[1]" / "a.csv").write_text("a")
    monkeypatch.chdir(tmp_path / "[1]")
    assert names(tmp_path, "*.csv") == ["[1]/a.csv"]
    assert names(tmp_path, f"file://{tmp_path}/%5B1%5D/*.csv")[0].endswith("/%5B1%5D/a.csv")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("missing.csv", "there is no file"),
        ("deep", "is a directory"),
        ("*.parquet", "no file matches"),
        ("missing/*", "no file matches"),
    ],
)
def test_a_path_that_is_not_a_file_is_refused_by_name(folder: Path, name: str, what: str) -> None:
    with pytest.raises(SourceUnusable, match=what) as caught:
        find_files([f"{folder}/{name}"])
    assert name in str(caught.value)


def test_a_scheme_that_pyarrow_does_not_know_is_refused() -> None:
    with pytest.raises(SourceUnusable, match="gopher"):
        find_files(["gopher://somewhere/file.csv"])


@pytest.mark.parametrize(
    "uri",
    [
        "s3://hunter:pass@bucket/out/a.csv",
        "s3://hunter:pass@bucket/out/*.csv",
        "s3://hunter:pa*ss@bucket/out",
        "s3://hunter:pa/ss@bucket/out",
        "hdfs://hunter@host:8020/out",
    ],
)
def test_a_uri_with_credentials_is_refused_without_repeating_them(uri: str) -> None:
    for use in (
        lambda: find_files([uri]),
        lambda: find_folders([uri]),
        lambda: file_system(uri),
        lambda: Target(uri).write("a", b""),
    ):
        with pytest.raises(SourceUnusable, match="holds a user or a password") as refused:
            use()
        assert not any(part in str(refused.value) for part in ("hunter", "pa*ss", "pa/ss", "pass@"))
        assert "AWS_SECRET_ACCESS_KEY" in str(refused.value.remedy)


@pytest.mark.parametrize(
    "uri", ["s3://bucket/metrics@5m/a:b.csv", "hdfs://host:8020/a@b", "hdfs://[::1]:8020/a", "/data/KEY:SECRET@x"]
)
def test_a_path_may_have_any_characters(uri: str) -> None:
    require_no_credentials(uri)


@pytest.mark.parametrize("offset", [0, 100_000, 199_999])
def test_a_file_that_changed_is_refused(tmp_path: Path, offset: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(200_000))
    file = identify(str(path))
    require_unchanged(file)
    data = bytearray(200_000)
    data[offset] = 1
    path.write_bytes(data)
    with pytest.raises(SourceChanged, match="has changed since the job was planned"):
        require_unchanged(file)


@pytest.mark.parametrize("offset", [0, 50_000, 150_000, 199_999])
def test_a_change_in_the_first_or_last_bytes_is_detected_although_size_and_time_are_the_same(
    tmp_path: Path, offset: int
) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(200_000))
    file, written = identify(str(path)), path.stat().st_mtime_ns
    data = bytearray(200_000)
    data[offset] = 1
    path.write_bytes(data)
    os.utime(path, ns=(written, written))
    with pytest.raises(SourceChanged, match="its size is the same"):
        require_unchanged(file)


def test_a_file_that_grew_is_refused_with_both_sizes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"1234")
    file = identify(str(path))
    path.write_bytes(b"12345")
    with pytest.raises(SourceChanged, match="was 4 and is 5"):
        require_unchanged(file)
