import fcntl
import os
import shutil
from pathlib import Path

import pytest

from strandline.setup.cache import LISTING, UNUSED_AFTER_DAYS, Cache, Recipe, default_root, find_fault

pytestmark = pytest.mark.unit

RECIPE = Recipe("jars", values=("one",))


def write_two_files(folder: Path) -> None:
    (folder / "a.jar").write_bytes(b"a" * 1000)
    (folder / "deep").mkdir()
    (folder / "deep" / "b.jar").write_bytes(b"b" * 1000)
    (folder / "link").symlink_to("a.jar")


def forbidden(_: Path) -> None:
    pytest.fail("an intact entry was built again")


@pytest.fixture
def notices() -> list[str]:
    return []


@pytest.fixture
def cache(tmp_path: Path, notices: list[str]) -> Cache:
    return Cache(tmp_path / "cache", notices.append)


def test_an_intact_entry_is_used_unchanged(cache: Cache) -> None:
    entry, built = cache.entry(RECIPE, write_two_files)
    assert built
    again, built_again = cache.entry(RECIPE, forbidden)
    assert again == entry
    assert not built_again


def flip_a_byte(entry: Path) -> None:
    content = bytearray((entry / "deep" / "b.jar").read_bytes())
    content[500] ^= 1
    (entry / "deep" / "b.jar").write_bytes(content)


def truncate(entry: Path) -> None:
    (entry / "a.jar").write_bytes(b"a" * 999)


def lose_a_file(entry: Path) -> None:
    (entry / "a.jar").unlink()


def point_a_link_elsewhere(entry: Path) -> None:
    (entry / "link").unlink()
    (entry / "link").symlink_to("deep/b.jar")


def lose_the_listing(entry: Path) -> None:
    (entry / LISTING).unlink()


def cut_the_listing(entry: Path) -> None:
    text = (entry / LISTING).read_text()
    (entry / LISTING).write_text(text[: len(text) // 2])


def empty_the_folder(entry: Path) -> None:
    shutil.rmtree(entry)
    entry.mkdir()


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (flip_a_byte, "deep/b.jar is altered"),
        (truncate, "a.jar is altered"),
        (lose_a_file, "a.jar is missing"),
        (point_a_link_elsewhere, "link is altered"),
        (lose_the_listing, "listing"),
        (cut_the_listing, "listing"),
        (empty_the_folder, "listing"),
    ],
)
def test_a_damaged_entry_is_built_again_and_the_fault_is_named(cache: Cache, notices: list[str], damage, named) -> None:
    entry, _ = cache.entry(RECIPE, write_two_files)
    damage(entry)
    _, built = cache.entry(RECIPE, write_two_files)
    assert built
    assert find_fault(entry) is None
    assert len(notices) == 1
    assert named in notices[0]


def test_a_failed_build_leaves_no_entry(cache: Cache) -> None:
    def fail_half_way(folder: Path) -> None:
        write_two_files(folder)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        cache.entry(RECIPE, fail_half_way)
    assert [path.name for path in cache.root.iterdir()] == ["locks"]
    _, built = cache.entry(RECIPE, write_two_files)
    assert built


def test_byte_code_written_later_does_not_invalidate_an_entry(cache: Cache) -> None:
    def build(folder: Path) -> None:
        (folder / "__pycache__").mkdir()
        (folder / "__pycache__" / "x.pyc").write_bytes(b"first")
        (folder / "x.py").write_text("x = 1")

    entry, _ = cache.entry(RECIPE, build)
    (entry / "__pycache__" / "x.pyc").write_bytes(b"second")
    cache.entry(RECIPE, forbidden)


def test_every_input_changes_the_key(tmp_path: Path) -> None:
    first, second = tmp_path / "first.xml", tmp_path / "second.xml"
    first.write_text("1")
    second.write_text("1")
    keys = {
        Recipe("a").key(),
        Recipe("b").key(),
        Recipe("a", values=("1",)).key(),
        Recipe("a", values=("1", "2")).key(),
        Recipe("a", values=("12",)).key(),
        Recipe("a", files=(first,)).key(),
        Recipe("a", files=(second,)).key(),
    }
    first.write_text("2")
    keys.add(Recipe("a", files=(first,)).key())
    assert len(keys) == 8


def test_the_path_of_the_checkout_does_not_change_the_key(tmp_path: Path) -> None:
    keys = set()
    for checkout in ("one", "two"):
        pom = tmp_path / checkout / "pom.xml"
        pom.parent.mkdir()
        pom.write_text("<project/>")
        keys.add(Recipe("jars", files=(pom,)).key())
    assert len(keys) == 1


def test_a_set_up_that_must_wait_reports_the_entry(cache: Cache, notices: list[str]) -> None:
    def release_on_notice(text: str) -> None:
        notices.append(text)
        fcntl.flock(holder, fcntl.LOCK_UN)

    with cache.lock("maven-repository"):
        pass
    with (cache.root / "locks" / "maven-repository").open("w") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with Cache(cache.root, release_on_notice).lock("maven-repository"):
            assert notices == ["another set-up is busy with maven-repository; waiting for it"]


def test_only_entries_unused_for_a_long_time_are_dropped(cache: Cache) -> None:
    old, _ = cache.entry(Recipe("old"), write_two_files)
    used, _ = cache.entry(Recipe("used"), write_two_files)
    long_ago = (old / LISTING).stat().st_mtime - (UNUSED_AFTER_DAYS + 1) * 86_400
    for entry in (old, used):
        os.utime(entry / LISTING, (long_ago, long_ago))
    cache.entry(Recipe("used"), forbidden)
    assert cache.drop_unused() == [old.name]
    assert not old.exists()
    assert find_fault(used) is None


def test_the_environment_determines_the_folder_of_the_cache() -> None:
    assert default_root({"STRANDLINE_CACHE": "/a", "XDG_CACHE_HOME": "/b"}) == Path("/a")
    assert default_root({"XDG_CACHE_HOME": "/b"}) == Path("/b/strandline")
    assert default_root({}) == Path("~/.cache/strandline").expanduser()
