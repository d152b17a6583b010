"""The limit on the memory of answers."""

import pytest

from strandline.node.query.answer_memory import AnswerMemory, AnswerMemoryFull, AnswerTooLarge

pytestmark = pytest.mark.unit


def test_leased_memory_counts_until_it_is_released() -> None:
    memory = AnswerMemory(100)
    first, second = memory.lease(), memory.lease()
    first.grow(60)
    second.grow(40)
    assert memory.used == 100
    first.release()
    first.release()
    assert memory.used == 40
    second.shrink(30)
    assert (memory.used, second.held) == (10, 10)


def test_beyond_the_limit_a_lease_is_refused_and_the_setting_is_named() -> None:
    memory = AnswerMemory(100)
    memory.lease().grow(60)
    late = memory.lease()
    with pytest.raises(AnswerMemoryFull, match=r"query\.answer_memory"):
        late.grow(41)
    assert (memory.used, late.held) == (60, 0)
    late.grow(40)


def test_an_answer_larger_than_the_limit_has_its_own_error() -> None:
    memory = AnswerMemory(100)
    lease = memory.lease()
    lease.grow(50)
    with pytest.raises(AnswerTooLarge, match=r"query\.answer_memory"):
        lease.grow(51)


def test_memory_that_is_already_used_is_counted_and_never_refused() -> None:
    memory = AnswerMemory(100)
    lease = memory.lease()
    lease.hold(150)
    assert memory.used == 150
    with pytest.raises(AnswerMemoryFull):
        memory.lease().grow(1)


def test_the_callback_runs_once_after_a_high_peak() -> None:
    calls: list[int] = []
    memory = AnswerMemory(1 << 30, lambda: calls.append(1))
    first, second = memory.lease(), memory.lease()
    first.grow(100 << 20)
    second.grow(1)
    first.release()
    assert not calls
    second.release()
    assert calls == [1]
    first.grow(1000)
    first.release()
    assert calls == [1], "a low peak is not worth a trim"
