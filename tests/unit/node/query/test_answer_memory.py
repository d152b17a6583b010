"""How much memory answers may take."""

import pytest

from strandline.node.query.answer_memory import AnswerMemory, AnswerMemoryFull, AnswerTooLarge

pytestmark = pytest.mark.unit


def test_leased_memory_counts_until_it_is_released() -> None:
    memory = AnswerMemory(100)
    one, other = memory.lease(), memory.lease()
    one.grow(60)
    other.grow(40)
    assert memory.used == 100
    one.release()
    one.release()
    assert memory.used == 40
    other.shrink(30)
    assert (memory.used, other.held) == (10, 10)


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
    told: list[int] = []
    memory = AnswerMemory(1 << 30, lambda: told.append(1))
    one, other = memory.lease(), memory.lease()
    one.grow(100 << 20)
    other.grow(1)
    one.release()
    assert not told
    other.release()
    assert told == [1]
    one.grow(1000)
    one.release()
    assert told == [1], "little is not worth it"
