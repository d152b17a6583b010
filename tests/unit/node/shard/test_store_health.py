"""Whether a store answers, by the shard's regular calls."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.errors import Retryable
from strandline.node.shard.store_health import NOT_ANSWERING_S, StoreFigures, StoreHealth, watched
from strandline.store.protocol import Fenced, StoreUnavailable
from strandline.store.rows import IndexBucketOf, Lifetime, ShardId
from strandline.store.sqlite import open_sqlite_store

pytestmark = pytest.mark.unit

SHARD = ShardId("metrics", 0)


class ModelStore:
    """A store with a configurable failure, which takes a second of the clock for each call and row."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.failure: Exception | None = None

    def dataset(self, _name: str) -> None:
        self.clock.sleep(1)
        if self.failure is not None:
            raise self.failure

    def index_bucket(self, _where: object) -> Iterator[bytes]:
        for row in (b"a", b"b"):
            self.dataset("")
            yield row


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(0)


@pytest.fixture
def health(clock: ManualClock) -> StoreHealth:
    return StoreHealth("a store", clock)


@pytest.fixture
def model(clock: ManualClock) -> ModelStore:
    return ModelStore(clock)


def call_store(model: ModelStore, health: StoreHealth) -> None:
    watched(model, health).dataset("a")  # type: ignore[arg-type]


def test_an_unused_store_is_healthy(health: StoreHealth, clock: ManualClock) -> None:
    clock.sleep(1000)
    assert health.figures() == StoreFigures("a store")
    assert health.figures().is_answering


def test_a_store_that_answers_has_no_unanswered_time_between_calls(
    health: StoreHealth, model: ModelStore, clock: ManualClock
) -> None:
    call_store(model, health)
    clock.sleep(1000)
    assert health.figures().unanswered_s == 0


def test_the_time_runs_from_the_first_call_that_failed_until_one_is_answered(
    health: StoreHealth, model: ModelStore, clock: ManualClock
) -> None:
    call_store(model, health)
    model.failure = StoreUnavailable("no answer")
    for _ in range(4):
        with pytest.raises(StoreUnavailable):
            call_store(model, health)
        clock.sleep(9)
    assert health.figures() == StoreFigures("a store", 40.0, 4)
    assert not health.figures().is_answering
    model.failure = None
    call_store(model, health)
    assert health.figures() == StoreFigures("a store")


def test_a_call_that_hangs_counts_while_it_hangs(health: StoreHealth, clock: ManualClock) -> None:
    with health.call():
        clock.sleep(NOT_ANSWERING_S)
        assert not health.figures().is_answering
        # Another call is answered meanwhile: only this call hangs, not the store.
        with health.call():
            clock.sleep(1)
        assert health.figures().unanswered_s == 0
        clock.sleep(2)
        assert health.figures().unanswered_s == 2
    assert health.figures().unanswered_s == 0


@pytest.mark.parametrize("error", [Fenced("another owner"), ValueError("nonsense")])
def test_an_error_returned_by_the_store_is_an_answer(health: StoreHealth, model: ModelStore, error: Exception) -> None:
    model.failure = error
    with pytest.raises(type(error)):
        call_store(model, health)
    assert health.figures() == StoreFigures("a store")


def test_each_row_is_a_call_and_the_time_between_rows_is_the_readers(
    health: StoreHealth, model: ModelStore, clock: ManualClock
) -> None:
    rows = watched(model, health).index_bucket(IndexBucketOf(SHARD, 1, "a"))  # type: ignore[arg-type]
    assert next(rows) == b"a"
    clock.sleep(1000)
    assert health.figures().unanswered_s == 0
    model.failure = StoreUnavailable("no answer")
    with pytest.raises(Retryable):
        next(rows)
    assert health.figures() == StoreFigures("a store", 1.0, 1)


def test_a_started_read_is_no_answer(health: StoreHealth, model: ModelStore, clock: ManualClock) -> None:
    """A query of a hanging store must not make the store look as if it answered."""
    where = IndexBucketOf(SHARD, 1, "a")
    watched(model, health).index_bucket(where)  # type: ignore[arg-type]
    clock.sleep(100)
    assert health.figures() == StoreFigures("a store"), "no row was read yet"
    with health.call():
        clock.sleep(40)
        watched(model, health).index_bucket(where)  # type: ignore[arg-type]
        assert health.figures().unanswered_s == 40
    model.failure = StoreUnavailable("no answer")
    with pytest.raises(StoreUnavailable):
        call_store(model, health)
    watched(model, health).index_bucket(where)  # type: ignore[arg-type]
    assert health.figures() == StoreFigures("a store", 1.0, 1)


def test_a_wrapped_store_behaves_like_the_store(tmp_path: Path, health: StoreHealth, clock: ManualClock) -> None:
    store = watched(open_sqlite_store(tmp_path / "store", clock), health)
    where = IndexBucketOf(SHARD, 1, "a")
    assert store.write_index_bucket(where, [b"one", b"two"], Lifetime(10**9, 10**12)) == 2
    assert list(store.index_bucket(where)) == [b"one", b"two"]
    assert list(store.index_bucket(where)) == [b"one", b"two"]
    assert store.state(SHARD) is None
    store.close()
    assert health.figures() == StoreFigures("a store")
