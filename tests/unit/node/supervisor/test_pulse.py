"""Signs of life, and how long a shard's process may be without one."""

import pytest

from strandline.node.shard.status import Phase
from strandline.node.supervisor.pulse import STARTS_MAY_BE_SILENT, Pulse, Signs

pytestmark = pytest.mark.unit

STARTS = (None, Phase.ACQUIRING, Phase.RECOVERING_INDEX)
BEHIND = (Phase.REPLAYING, Phase.CATCHING_UP)
ENDS = (Phase.FENCED, Phase.FAILED, Phase.STOPPED)


@pytest.mark.parametrize("phase", [*BEHIND, Phase.ACTIVE])
def test_a_turn_is_a_sign_of_life(phase: Phase) -> None:
    pulse = Pulse(0.0, phase, 7).felt(Signs(phase, 8), 10.0)
    assert (pulse.at, pulse.turns, pulse.beats) == (10.0, 8, 1)


def test_a_new_phase_is_a_sign_of_life() -> None:
    assert Pulse(0.0, Phase.ACQUIRING, 0).felt(Signs(Phase.RECOVERING_INDEX, 0), 10.0).at == 10.0


def test_the_same_word_again_is_none() -> None:
    assert Pulse(0.0, Phase.ACTIVE, 7, 1.0).felt(Signs(Phase.ACTIVE, 7, 1.0), 10.0).at == 0.0


@pytest.mark.parametrize("phase", [*STARTS, *BEHIND])
def test_work_is_a_sign_of_life_until_a_shard_is_active(phase: Phase | None) -> None:
    assert Pulse(0.0, phase, 7, 1.0).felt(Signs(phase, 7, 1.5), 10.0).at == 10.0


@pytest.mark.parametrize("phase", [Phase.ACTIVE, *ENDS])
def test_a_shard_that_spins_without_turning_is_not_alive(phase: Phase) -> None:
    assert Pulse(0.0, phase, 7, 1.0).felt(Signs(phase, 7, 11.0), 10.0).at == 0.0


def test_the_idling_of_clients_threads_is_no_work() -> None:
    assert Pulse(0.0, None, None, 1.0).felt(Signs(cpu_seconds=1.1), 10.0).at == 0.0


def test_work_begins_to_count_with_the_first_look() -> None:
    pulse = Pulse(0.0).felt(Signs(cpu_seconds=5.0), 2.0)
    assert (pulse.at, pulse.cpu_seconds) == (0.0, 5.0)
    assert pulse.felt(Signs(cpu_seconds=6.0), 4.0).at == 4.0


@pytest.mark.parametrize("phase", STARTS)
def test_a_start_may_be_silent_for_longer(phase: Phase | None) -> None:
    assert not Pulse(0.0, phase).is_lost(60.0 * STARTS_MAY_BE_SILENT - 1, 60.0)
    assert Pulse(0.0, phase).is_lost(60.0 * STARTS_MAY_BE_SILENT, 60.0)


@pytest.mark.parametrize("phase", [*BEHIND, Phase.ACTIVE, *ENDS])
def test_any_other_may_not(phase: Phase) -> None:
    assert not Pulse(0.0, phase).is_lost(59.0, 60.0)
    assert Pulse(0.0, phase).is_lost(60.0, 60.0)


def test_time_in_which_nobody_looked_is_not_held_against_it() -> None:
    assert not Pulse(0.0, Phase.ACTIVE).excused(3600.0).is_lost(3630.0, 60.0)
