"""The roles of child processes."""

from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.node.supervisor.role import shard_role

pytestmark = pytest.mark.unit


class RecordingLauncher:
    """Records how shards are started."""

    def __init__(self) -> None:
        self.takes: list[bool] = []

    def shard(self, _shard: int, _socket: Path, *, take: bool) -> None:
        self.takes.append(take)


@pytest.mark.parametrize("take", [False, True])
def test_only_the_first_start_of_a_shard_takes_it_from_a_live_owner(take: bool) -> None:
    """Otherwise later starts would take it back from an owner that took it over in the meantime, forever."""
    launcher = RecordingLauncher()
    role = shard_role(0, launcher, Path("/run/x"), ManualClock(), take=take)  # type: ignore[arg-type]
    for _ in range(3):
        role.launch()
    assert launcher.takes == [take, False, False]
