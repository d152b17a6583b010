"""The phases of a shard."""

import pytest

from strandline.node.shard.status import Phase, Status

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("ended", [Phase.FENCED, Phase.FAILED, Phase.STOPPED])
def test_an_ended_shard_enters_no_other_phase(ended: Phase) -> None:
    """The storing thread finds that the shard is fenced while the reading thread is about to make it active."""
    status = Status(phase=ended)
    status.enter(Phase.ACTIVE, 1)
    assert status.phase is ended
    assert status.entered == {}


def test_the_time_of_each_phase_of_a_start_is_recorded() -> None:
    status = Status()
    status.enter(Phase.ACQUIRING, 10)
    status.enter(Phase.RECOVERING_INDEX, 20, 0.0)
    status.enter(Phase.RECOVERING_INDEX, 25, 0.5)
    assert (status.entered, status.fraction) == ({"acquiring": 10, "recovering-index": 20}, 0.5)
