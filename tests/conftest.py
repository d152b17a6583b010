"""Settings for all tests: the generation of examples, the order of files, and the shared servers."""

import gc
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from strandline.index import vm
from strandline.node.stack import Stack
from strandline.node.stack.process import ProcessIdentity
from support.file_order import FileTimes, longest_first, read_times
from support.shared_servers import end_shared_stack, shared_stack

# No deadline, because the first call of a kernel compiles it, and machines are noisy. In CI the same examples every
# time, so that a failure is caused by the change; elsewhere new ones, to find more faults.
settings.register_profile("strandline", deadline=None, print_blob=True, derandomize=os.environ.get("CI") == "true")
settings.load_profile("strandline")


# Only Java's first compiler: the second one used a third of the processor time for code that hardly runs.
vm.common_options += ("-XX:TieredStopAtLevel=1",)

# A shell starts background jobs with SIGINT ignored, which every process that a test starts would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def is_worker(config: pytest.Config) -> bool:
    """Whether this is one of several processes that pytest-xdist has started."""
    return hasattr(config, "workerinput")


@pytest.fixture(scope="session")
def stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stack:
    """A healthy Kafka and Cassandra, one pair for the whole run. Tests must use their own topics and keyspaces, and
    must not freeze, kill or reconfigure a server.
    """
    folder: Path = tmp_path_factory.getbasetemp()
    if not is_worker(request.config):
        return shared_stack(folder, ProcessIdentity.own())
    controller = ProcessIdentity.of(os.getppid())
    assert controller is not None
    return shared_stack(folder.parent, controller)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-file-times", action="store_true", help="write tests/file_times.json anew")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--record-file-times") and not is_worker(config):
        config.pluginmanager.register(FileTimes())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    longest_first(items, read_times())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    # Modules and tests stay until the end: scanning them for garbage took a third of the processor time of each
    # process' start. Later collections skip frozen objects.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if not is_worker(config):
        end_shared_stack(config._tmp_path_factory.getbasetemp())
