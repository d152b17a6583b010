"""The store of a Python process on an executor."""

from dataclasses import dataclass

import pytest

from strandline.spark import executor_store
from strandline.spark.executor_store import cached_store

pytestmark = pytest.mark.unit

OPENED: list["Opened"] = []


class Opened:
    def __init__(self, name: str) -> None:
        self.name = name
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


@dataclass(frozen=True)
class Opener:
    name: str

    def __call__(self) -> Opened:
        if self.name == "unreachable":
            raise ConnectionError
        OPENED.append(Opened(self.name))
        return OPENED[-1]


@pytest.fixture(autouse=True)
def _nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor_store, "_CACHE", executor_store._StoreCache())
    monkeypatch.setattr(executor_store.pickle, "dumps", repr)  # A module that pytest imports can't be pickled.
    OPENED.clear()


def test_equal_openers_share_a_store() -> None:
    first = cached_store(Opener("a"))
    assert cached_store(Opener("a")) is first
    assert len(OPENED) == 1


def test_another_opener_closes_the_store_before() -> None:
    first = cached_store(Opener("a"))
    second = cached_store(Opener("b"))
    assert (first.is_closed, second.is_closed) == (True, False)
    assert cached_store(Opener("a")) is not first


def test_a_store_that_could_not_be_opened_is_tried_again() -> None:
    cached_store(Opener("a"))
    with pytest.raises(ConnectionError):
        cached_store(Opener("unreachable"))
    assert cached_store(Opener("a")) is OPENED[1]
