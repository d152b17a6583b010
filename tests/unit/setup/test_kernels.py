import io
import os
from pathlib import Path

import pytest

from strandline.node import kernel_compiling
from strandline.setup.build_context import BuildContext
from strandline.setup.cache import Cache
from strandline.setup.kernels import COMPILING, NOTE, compile_kernels, keep_kernels, kernel_sources, restore_kernels
from strandline.setup.progress import Progress

pytestmark = pytest.mark.unit

REPOSITORY = Path(__file__).parents[3]
CODE = Path("wire/kernels/__pycache__/walk.nbc")
INDEX = Path("src/strandline/kernels/__pycache__/words.nbi")


@pytest.fixture
def context(tmp_path: Path) -> BuildContext:
    return BuildContext(Cache(tmp_path / "cache"), Progress(1, io.StringIO()), Path("/no-java"), {})


def make_checkout(folder: Path) -> Path:
    """A fresh checkout with two kernels, without compiled ones."""
    for name in ("wire/kernels/records.py", "wire/plain.py", "src/strandline/kernels/words.py"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\n")
    (folder / "src" / "strandline" / "wire").symlink_to("../../wire")
    (folder / "conf" / "python").mkdir(parents=True)
    (folder / "conf" / "python" / "requirements.lock").write_text("numba==1\n")
    (folder / ".venv").mkdir()
    return folder


def compile_in(checkout: Path) -> None:
    for path in (CODE, INDEX):
        (checkout / path).parent.mkdir(exist_ok=True)
        (checkout / path).write_bytes(b"code")


@pytest.fixture
def tested(context: BuildContext, tmp_path: Path) -> Path:
    """A checkout whose tests have passed."""
    checkout = make_checkout(tmp_path / "tested")
    restore_kernels(context, checkout)
    compile_in(checkout)
    keep_kernels(context, checkout)
    return checkout


def is_compiled(checkout: Path) -> bool:
    found = {(checkout / path).exists() for path in (CODE, INDEX)}
    assert len(found) == 1
    return found.pop()


def change(path: Path) -> None:
    path.write_text(path.read_text() + "# changed\n")


def test_a_second_checkout_of_the_same_kernels_has_them_compiled(
    tested: Path, context: BuildContext, tmp_path: Path
) -> None:
    second = make_checkout(tmp_path / "second")
    assert restore_kernels(context, second)
    assert is_compiled(second)
    assert (second / CODE).read_bytes() == (tested / CODE).read_bytes()


def test_without_a_cache_entry_set_up_compiles_the_kernels_of_a_node(context: BuildContext, tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "checkout")
    assert not restore_kernels(context, checkout)
    python = checkout / ".venv" / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\necho "$@" > {checkout}/arguments\n')
    python.chmod(0o700)
    compile_kernels(context, checkout)
    assert (checkout / "arguments").read_text() == f"-m {COMPILING}\n"
    assert kernel_compiling.__name__ == COMPILING
    # The compiler is a stand-in here.
    compile_in(checkout)
    assert restore_kernels(context, checkout)


@pytest.mark.parametrize("name", ["wire/kernels/records.py", "conf/python/requirements.lock"])
def test_other_kernels_or_packages_are_compiled_again(
    name: str, tested: Path, context: BuildContext, tmp_path: Path
) -> None:
    second = make_checkout(tmp_path / "second")
    change(second / name)
    restore_kernels(context, second)
    assert not is_compiled(second)
    assert is_compiled(tested)


def test_compiled_kernels_stay_until_any_kernel_changes(tested: Path, context: BuildContext) -> None:
    change(tested / "wire" / "plain.py")
    restore_kernels(context, tested)
    assert is_compiled(tested)
    # It may be inlined in the others.
    change(tested / "src/strandline/kernels/words.py")
    restore_kernels(context, tested)
    assert not is_compiled(tested)


def test_a_kernel_that_was_changed_for_a_while_leaves_nothing_compiled(context: BuildContext, tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "checkout")
    restore_kernels(context, checkout)
    compile_in(checkout)
    source = checkout / "wire/kernels/records.py"
    later = (checkout / ".venv" / NOTE).stat().st_mtime_ns + 1
    os.utime(source, ns=(later, later))
    keep_kernels(context, checkout)
    second = make_checkout(tmp_path / "second")
    restore_kernels(context, second)
    assert not is_compiled(second)
    restore_kernels(context, checkout)
    assert not is_compiled(checkout)


def test_every_module_with_compiled_functions_is_among_the_sources() -> None:
    sources = set(kernel_sources(REPOSITORY))
    packages = ("wire", "index", "store", "recovery", "promql", "jobs", "spark", "node", "src")
    found = {
        path
        for package in packages
        for path in (REPOSITORY / package).rglob("*.py")
        if "@njit" in path.read_text(encoding="utf-8")
    }
    assert found
    assert found <= sources
