"""CPU time by stage."""

import threading
from collections.abc import Callable

import pytest

from strandline.node.shard import stages as module
from strandline.node.shard.stages import Stage, Stages

pytestmark = pytest.mark.unit

Work = Callable[[float], None]


class ThreadTime(threading.local):
    """CPU time that passes only where a test simulates work, separately in each thread."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def thread_time(self) -> float:
        return self.seconds

    def work(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    clock = ThreadTime()
    monkeypatch.setattr(module, "time", clock)
    return clock.work


def spent(stages: Stages) -> dict[Stage, float]:
    return {stage: seconds for stage, seconds in stages.seconds.items() if seconds}


def test_every_stage_exists_from_the_beginning() -> None:
    assert Stages().seconds == dict.fromkeys(Stage, 0.0)


def test_time_inside_a_stage_counts_for_it_and_time_outside_for_none(work: Work) -> None:
    stages = Stages()
    work(4)
    for seconds in (1, 2):
        with stages.timing(Stage.DECODE):
            work(seconds)
        work(8)
    assert spent(stages) == {Stage.DECODE: 3}


def test_a_stage_inside_another_counts_for_itself_only(work: Work) -> None:
    stages = Stages()
    with stages.timing(Stage.STORE):
        work(1)
        with stages.timing(Stage.ENCODE):
            work(2)
        work(4)
        with stages.timing(Stage.ENCODE):
            work(8)
    assert spent(stages) == {Stage.STORE: 5, Stage.ENCODE: 10}


def test_stages_nest_to_any_depth(work: Work) -> None:
    stages = Stages()
    with stages.timing(Stage.CUT):
        work(1)
        with stages.timing(Stage.STORE):
            work(2)
            with stages.timing(Stage.ENCODE):
                work(4)
            work(8)
        work(16)
    assert spent(stages) == {Stage.CUT: 17, Stage.STORE: 10, Stage.ENCODE: 4}


def test_time_measured_before_a_stage_is_not_subtracted_from_it(work: Work) -> None:
    stages = Stages()
    with stages.timing(Stage.SNAPPY):
        work(5)
    with stages.timing(Stage.DECODE):
        work(3)
    assert spent(stages) == {Stage.SNAPPY: 5, Stage.DECODE: 3}


def test_a_stage_within_itself_counts_once(work: Work) -> None:
    stages = Stages()
    with stages.timing(Stage.ENCODE):
        work(1)
        with stages.timing(Stage.ENCODE):
            work(2)
    assert spent(stages) == {Stage.ENCODE: 3}


def test_the_time_of_a_failed_stage_counts(work: Work) -> None:
    stages = Stages()

    def fail() -> None:
        with stages.timing(Stage.ENCODE):
            work(2)
            raise RuntimeError

    with stages.timing(Stage.STORE):
        with pytest.raises(RuntimeError):
            fail()
        work(1)
    assert spent(stages) == {Stage.ENCODE: 2, Stage.STORE: 1}


def test_another_threads_time_counts_for_its_own_stages(work: Work) -> None:
    stages = Stages()

    def store() -> None:
        with stages.timing(Stage.STORE):
            work(7)

    with stages.timing(Stage.CONSUME):
        work(1)
        thread = threading.Thread(target=store)
        thread.start()
        thread.join(60)
        work(2)
    assert spent(stages) == {Stage.CONSUME: 3, Stage.STORE: 7}
