"""Commands about offsets and hours over a world in memory, in the place of real servers."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from strandline.clock import Clock
from strandline.node.cli import main as cli
from strandline.node.cli import offsets, ready
from strandline.node.offsets.deployment import Deployment
from strandline.node.offsets.topic import TopicNow
from strandline.node.settings.sections import Settings
from strandline.node.settings.units import Duration
from strandline.recovery.log_ends import LogEnds
from support.shard_world import World


class MemoryTopic:
    """The `Topic` of worlds, one a partition."""

    def __init__(self, *partitions: World, retention_ms: int | None = None) -> None:
        self.partitions, self.retention_ms = partitions, retention_ms

    def now(self) -> TopicNow:
        return TopicNow(self.partitions[0].log.topic_id(), len(self.partitions), self.retention_ms)

    def ends(self, partition: int) -> LogEnds:
        return self.partitions[partition].log.ends()

    def close(self) -> None:
        pass


class Commands:
    """`strandline offsets` and `strandline ready`, with a world's store and its topic behind them."""

    def __init__(self, world: World, capsys: pytest.CaptureFixture[str]) -> None:
        self.world, self.topic = world, MemoryTopic(world)
        self.asked = 0
        self._capsys = capsys

    @contextmanager
    def open_deployment(self, settings: Settings, environment: Mapping[str, str], clock: Clock) -> Iterator[Deployment]:
        """In place of the real one; the clock is the world's."""
        del environment, clock
        self.asked += 1
        changed = settings.dataset.model_copy(update={"grace": Duration(self.world.options.grace)})
        yield Deployment.of(changed, self.world.store, self.topic, self.world.clock)  # type: ignore[arg-type]  # a store behind hooks

    def text(self, *arguments: str) -> tuple[int, str, str]:
        """Its exit code, and what it says on both streams. What a shard has logged before is none of that."""
        self._capsys.readouterr()
        code = cli.main(arguments)
        said = self._capsys.readouterr()
        return code, said.out, said.err

    def json(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Its exit code, and its one document."""
        code, out, _ = self.text(*arguments, "--output", "json")
        return code, json.loads(out)


def commands_over(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    """Commands for a test, which go to a world until its end."""
    made = Commands(world, capsys)
    for module in (offsets, ready):
        monkeypatch.setattr(module, "open_deployment", made.open_deployment)
    return made
