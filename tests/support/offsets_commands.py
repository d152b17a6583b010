"""Commands about offsets and hours over an in-memory world instead of real servers."""

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
    """The `Topic` of worlds, one for each partition."""

    def __init__(self, *partitions: World, retention_ms: int | None = None) -> None:
        self.partitions, self.retention_ms = partitions, retention_ms

    def now(self) -> TopicNow:
        return TopicNow(self.partitions[0].log.topic_id(), len(self.partitions), self.retention_ms)

    def ends(self, partition: int) -> LogEnds:
        return self.partitions[partition].log.ends()

    def close(self) -> None:
        pass


class Commands:
    """`strandline offsets` and `strandline ready`, with a world's store and topic."""

    def __init__(self, world: World, capsys: pytest.CaptureFixture[str]) -> None:
        self.world, self.topic = world, MemoryTopic(world)
        self.openings = 0
        self._capsys = capsys

    @contextmanager
    def open_deployment(self, settings: Settings, environment: Mapping[str, str], clock: Clock) -> Iterator[Deployment]:
        """Replaces the real function; the clock is the world's."""
        del environment, clock
        self.openings += 1
        changed = settings.dataset.model_copy(update={"grace": Duration(self.world.options.grace)})
        yield Deployment.of(changed, self.world.store, self.topic, self.world.clock)  # type: ignore[arg-type]  # a store behind hooks

    def text(self, *arguments: str) -> tuple[int, str, str]:
        """The exit code, stdout and stderr, without earlier log lines of a shard."""
        self._capsys.readouterr()
        code = cli.main(arguments)
        said = self._capsys.readouterr()
        return code, said.out, said.err

    def json(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """The exit code and the JSON document."""
        code, out, _ = self.text(*arguments, "--output", "json")
        return code, json.loads(out)


def commands_over(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    """Commands that use a world until the end of the test."""
    made = Commands(world, capsys)
    for module in (offsets, ready):
        monkeypatch.setattr(module, "open_deployment", made.open_deployment)
    return made
