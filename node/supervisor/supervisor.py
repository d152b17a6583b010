"""The supervisor: a thread that keeps the processes of a node's shards.

Its thread is the one that starts them, and the kernel ties each to it: however the node ends, they end, too. All that
others ask of it is done by that thread at its next turn; what it knows it publishes after each.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic

import structlog

from strandline.clock import Clock
from strandline.errors import Fatal, Retryable, StrandlineError
from strandline.node.settings.sections import Settings
from strandline.node.supervisor.child import Launcher
from strandline.node.supervisor.crew import Crew, ShardVital
from strandline.node.supervisor.keeper import KeepingRules, ShardKeeper
from strandline.node.supervisor.links import Link, LinkFactory
from strandline.node.supervisor.partitions import CountPartitions, count_partitions, served_shards, serves_all
from strandline.node.supervisor.reloading import Reload, TakesEffect, reloaded
from strandline.node.supervisor.socket_folder import socket_path
from strandline.node.supervisor.standing import ShardStanding

_LOG = structlog.get_logger(__name__)
_TURN_S, _STOPPING_TURN_S = 0.5, 0.05
# How often the topic's partitions are counted again, and how soon if Kafka was out of reach when the node started.
_COUNT_AGAIN_S, _COUNT_SOON_S = 300.0, 5.0


class NoSuchShard(Fatal):
    """The node does not serve the shard."""


@dataclass(frozen=True, slots=True)
class Vitals:
    """Signs of life: of the supervisor's own thread, and of each shard's process."""

    turns: int = 0
    shards: tuple[ShardVital, ...] = ()


class Supervisor(Generic[Link]):
    """One process a shard, kept. It is a `NodeStanding`, and any thread may call any method of it.

    Put together by `assembled_supervisor`; tests give it other launchers and links.
    """

    def __init__(
        self,
        settings: Settings,
        launcher: Launcher,
        links: LinkFactory[Link],
        *,
        folder: Path,
        clock: Clock,
        count: CountPartitions = count_partitions,
    ) -> None:
        """`folder` is for the shards' sockets. Nothing happens before `start`."""
        self._settings, self._links_of, self._folder = settings, links, folder
        self._clock, self._count = clock, count
        self._crew: Crew[Link] = Crew(self._keeper, KeepingRules.of(settings.node), clock)
        self._launcher = launcher
        self._links: Mapping[int, Link] = {}
        self._partitions: int | None = None
        self._unreachable = ""
        # What was asked of the thread, and what it knows: the first under the lock, the second replaced as a whole.
        self._lock, self._wake = threading.Lock(), threading.Event()
        self._asked: deque[Callable[[], None]] = deque()
        self._standings: tuple[ShardStanding, ...] = ()
        self._vitals = Vitals()
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="supervisor")
        self._counter = threading.Thread(target=self._keep_counting, name="partitions", daemon=True)

    @property
    def settings(self) -> Settings:
        """Those in force: as given, with what reloads have changed."""
        return self._settings

    @property
    def waits_for(self) -> str:
        """Why the shards are not known yet: Kafka can't be asked; empty once they are."""
        return self._unreachable

    def start(self) -> None:
        """Begin. Raises what is wrong with the settings (`ListedShardMissing`, `TopicUnfit`); while Kafka is out of
        reach it goes on asking, and starts the shards once it knows them.
        """
        try:
            self._serve(self._count(self._settings))
            # Before there is a thread: whoever asks from now on finds the shards.
            self._do_asked()
            self._publish()
        except Retryable as error:
            self._unreachable = str(error)
            _LOG.warning("the shards are not known yet", error=str(error), again_in_s=_COUNT_SOON_S)
        self._thread.start()
        self._counter.start()

    def stop(self) -> None:
        """Ask all processes to end, at the same time, kill those that don't within `node.stop_timeout`, and return when
        all are gone. Raises what ended the supervisor, if it had ended before. A second call only waits.
        """
        self._stopping.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join()
        for link in self.clients().values():
            link.close()
        self.raise_failure()

    def kill(self) -> None:
        """Stop without waiting for anybody: an operator has lost patience."""
        self._ask(self._crew.kill)
        self._stopping.set()

    def raise_failure(self) -> None:
        """Raise what has ended the supervisor, if anything has. The shards are gone then."""
        if self._failure is not None:
            raise self._failure

    @property
    def has_ended(self) -> bool:
        """Whether its thread has ended, for whatever reason."""
        return self._ended.is_set()

    def reload(self, read: Settings) -> Reload:
        """Take over what can be taken over from new settings, look for new partitions, and start what is down. The
        outcome is logged, and returned. Raises as `start` does, with nothing changed. It may take as long as an answer
        of Kafka; without one the partitions are those that were known.
        """
        outcome = reloaded(self._settings, read)
        partitions = self._partitions
        try:
            partitions = self._count(outcome.settings)
        except Retryable as error:
            _LOG.warning("the topic's partitions can't be counted", error=str(error))
        if partitions is not None:
            served_shards(outcome.settings, partitions)
        self._settings = outcome.settings
        rules = KeepingRules.of(outcome.settings.node)
        self._ask(lambda: self._crew.follow(rules))
        if partitions is not None:
            self._serve(partitions)
        self._ask(self._crew.revive)
        _tell(outcome)
        return outcome

    def restart_shard(self, shard: int) -> None:
        """A new process for a shard, also for one that is down. Raises `NoSuchShard`. It is done soon, not now."""
        if shard not in self._links:
            served = ", ".join(map(str, sorted(self._links))) or "none yet"
            raise NoSuchShard(f"this node does not serve shard {shard}", remedy=f"It serves {served}")
        _LOG.info("a person wants a shard started again", shard=shard)
        self._ask(lambda: self._crew.restart(shard))

    def shards(self) -> tuple[ShardStanding, ...]:
        """How they stand, in the order of their numbers."""
        return self._standings

    def vitals(self) -> Vitals:
        """Signs of life, for the service manager."""
        return self._vitals

    def clients(self) -> Mapping[int, Link]:
        """The links to the shards that are served, by number. They stay the same while processes come and go."""
        return self._links

    def _ask(self, what: Callable[[], None]) -> None:
        with self._lock:
            self._asked.append(what)
        self._wake.set()

    def _serve(self, partitions: int) -> None:
        """Serve what the settings list."""
        shards = served_shards(self._settings, partitions)
        with self._lock:
            before = self._links
            # Replaced as a whole, since any thread may be looking at it.
            self._links = links = {
                shard: before[shard] if shard in before else self._links_of(shard, socket_path(self._folder, shard))
                for shard in shards
            }
            gone = [before[shard] for shard in before.keys() - links.keys()]
        self._partitions, self._unreachable = partitions, ""
        self._ask(lambda: self._crew.serve(links))
        for link in gone:
            link.close()

    def _keeper(self, shard: int, link: Link, rules: KeepingRules) -> ShardKeeper:
        socket = socket_path(self._folder, shard)
        return ShardKeeper(shard, self._launcher, link, socket=socket, rules=rules, clock=self._clock)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._turn()
                self._wake.wait(_TURN_S)
                self._wake.clear()
            self._do_asked()
            self._crew.leave()
            while not self._crew.is_gone:
                self._turn()
                self._clock.sleep(_STOPPING_TURN_S)
            self._publish()
        except BaseException as error:  # noqa: BLE001 - told to whoever asks how the supervisor is
            self._failure = error
            _LOG.exception("the supervisor has failed, and the shards end with it")
        finally:
            self._ended.set()

    def _turn(self) -> None:
        self._do_asked()
        self._crew.look()
        self._publish()

    def _do_asked(self) -> None:
        while True:
            with self._lock:
                if not self._asked:
                    return
                what = self._asked.popleft()
            what()

    def _publish(self) -> None:
        self._standings = self._crew.standings()
        self._vitals = Vitals(self._vitals.turns + 1, self._crew.vitals())

    def _keep_counting(self) -> None:
        """Ask Kafka now and then how many partitions there are: an answer may take half a minute, so not in the thread
        that watches.
        """
        while not self._stopping.wait(_COUNT_AGAIN_S if self._partitions is not None else _COUNT_SOON_S):
            try:
                found = self._count(self._settings)
                if self._partitions is None:
                    self._serve(found)
                elif found > self._partitions and serves_all(self._settings):
                    _LOG.warning("the topic has new partitions, which are served after a reload", partitions=found)
            except Retryable as error:
                _LOG.warning("the topic's partitions can't be counted", error=str(error))
            except StrandlineError as error:
                _LOG.exception("the topic can't be served")
                if self._partitions is None:
                    self._failure = error
                    self._ended.set()
                    return


def _tell(outcome: Reload) -> None:
    for takes_effect in TakesEffect:
        if names := outcome.names(takes_effect):
            _LOG.info("settings have changed", count=takes_effect.value, names=", ".join(names))
    if not outcome.changes:
        _LOG.info("settings are read again, and none has changed")
