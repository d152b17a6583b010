"""The supervisor's thread: its calls, and what it publishes."""

import threading
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from strandline.clock import SystemClock, wait_until
from strandline.errors import ExitCode, Fatal
from strandline.kafka.error_mapping import no_such_topic
from strandline.node.settings import Settings
from strandline.node.shard.log import LogUnreachable
from strandline.node.shard.status import Phase
from strandline.node.status.processes import FRONT, ProcessState
from strandline.node.supervisor import supervisor as supervisor_module
from strandline.node.supervisor.partitions import ListedShardMissing
from strandline.node.supervisor.processes import NodeProcesses
from strandline.node.supervisor.reloading import TakesEffect
from strandline.node.supervisor.supervisor import NoSuchShard, Supervisor

pytestmark = pytest.mark.unit

NODE = {"stop_timeout": "1s", "hang_after": "31s"}


class Kafka:
    """The number of partitions, or the error of counting them."""

    def __init__(self) -> None:
        self.partitions, self.error, self.counted = 2, None, 0

    def count(self, _settings: Settings) -> int:
        self.counted += 1
        if self.error is not None:
            raise self.error
        return self.partitions


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    monkeypatch.setattr(supervisor_module, "_COUNT_RETRY_S", 0.01)
    monkeypatch.setattr(supervisor_module, "_COUNT_INTERVAL_S", 0.02)
    monkeypatch.setattr(supervisor_module, "_LOOP_INTERVAL_S", 0.01)
    return Kafka()


@pytest.fixture
def supervisor(world, kafka: Kafka) -> Iterator[Supervisor]:
    def fetch_report(name, _timeout: float):
        child = world.child(name)
        child.phase = Phase.ACTIVE if isinstance(name, int) else None
        child.turns += 1
        return child.report()

    world.fetch_report = fetch_report

    def processes(settings) -> NodeProcesses:
        return NodeProcesses(world.role, settings, SystemClock(), front=world.role(FRONT))

    supervisor = Supervisor(Settings(node=NODE), processes, SystemClock(), count=kafka.count)
    yield supervisor
    supervisor.stop()


@pytest.fixture
def running(supervisor: Supervisor) -> Supervisor:
    supervisor.start()
    wait_for(lambda: len(active(supervisor)) == 2)
    return supervisor


def wait_for(condition) -> None:
    assert wait_until(condition, timeout=20, clock=SystemClock(), poll=0.005)


def active(supervisor: Supervisor) -> list[int]:
    return [shard.shard for shard in supervisor.shards() if shard.is_active]


def test_it_serves_every_partition_and_stops_all(running: Supervisor, world) -> None:
    assert active(running) == [0, 1]
    running.stop()
    assert running.has_ended
    assert [shard.state for shard in running.shards()] == [ProcessState.STOPPED] * 2
    assert all(child.terminated_at is not None for child in world.launched)


def test_a_shard_that_does_not_end_in_time_is_killed(running: Supervisor, world) -> None:
    world.child(1).ignores_sigterm = True
    running.stop()
    assert world.child(1).code == -9
    assert world.child(0).code == 0


def test_a_second_stop_kills_the_shards_at_once(running: Supervisor, world) -> None:
    for shard in (0, 1):
        world.child(shard).ignores_sigterm = True
    threading.Timer(0.05, running.kill).start()
    running.stop()
    assert [world.child(shard).code for shard in (0, 1)] == [-9, -9]


def test_a_crash_of_one_shard_does_not_affect_the_other(running: Supervisor, world) -> None:
    other = world.child(1)
    world.child(0).code = -11
    wait_for(lambda: running.shards()[0].state is ProcessState.WAITING)
    assert world.child(1) is other
    assert running.shards()[1].is_active


def test_a_shard_is_restarted_on_request(running: Supervisor, world) -> None:
    first = world.child(0)
    running.restart_shard(0)
    wait_for(lambda: world.child(0) is not first and 0 in active(running))
    with pytest.raises(NoSuchShard, match="does not serve shard 7"):
        running.restart_shard(7)


def test_a_listed_shard_without_a_partition_is_an_error_before_any_process_starts(
    supervisor: Supervisor, world
) -> None:
    supervisor._settings = Settings(node={"shards": "0-4"})
    supervisor.start()
    wait_for(lambda: supervisor.has_ended)
    with pytest.raises(ListedShardMissing):
        supervisor.raise_failure()
    assert [child for child in world.launched if child.name != FRONT] == []
    with pytest.raises(ListedShardMissing):
        supervisor.stop()
    supervisor._failure = None


def test_while_kafka_is_unreachable_it_waits_with_a_front_and_then_starts(supervisor: Supervisor, kafka: Kafka) -> None:
    kafka.error = LogUnreachable("no broker answers")
    supervisor.start()
    wait_for(lambda: supervisor.waits_for == "no broker answers")
    assert supervisor.shards() == ()
    wait_for(lambda: [process.state for process in supervisor.processes()] == [ProcessState.RUNNING])
    kafka.error = None
    wait_for(lambda: len(active(supervisor)) == 2)
    assert supervisor.waits_for == ""


def test_a_node_started_before_its_topic_exists_waits_for_it_and_reports_that(
    supervisor: Supervisor, kafka: Kafka
) -> None:
    kafka.error = no_such_topic("metrics")
    with capture_logs() as lines:
        supervisor.start()
        wait_for(lambda: "there is no topic metrics" in supervisor.waits_for)
        wait_for(lambda: kafka.counted > 5)
        assert not supervisor.has_ended
        warnings = [line for line in lines if "can't be counted" in line["event"]]
        assert len(warnings) == 1, "it is logged once a minute"
        assert "kafka-topics.sh --create --topic metrics" in warnings[0]["error"]
    kafka.error = None
    wait_for(lambda: len(active(supervisor)) == 2)
    assert supervisor.waits_for == ""


def test_a_reload_without_the_topic_uses_the_known_partitions(running: Supervisor, kafka: Kafka) -> None:
    kafka.error = no_such_topic("metrics")
    running.reload(Settings(node=NODE))
    assert active(running) == [0, 1]


def test_a_fatal_error_found_while_waiting_for_kafka_ends_the_node(supervisor: Supervisor, kafka: Kafka) -> None:
    kafka.error = LogUnreachable("no broker answers")
    supervisor.start()
    wait_for(lambda: supervisor.waits_for != "")
    kafka.error = Fatal("the password is wrong")
    wait_for(lambda: supervisor.has_ended)
    with pytest.raises(Fatal, match="password"):
        supervisor.raise_failure()
    with pytest.raises(Fatal, match="password"):
        supervisor.stop()
    supervisor._failure = None


def test_partitions_that_are_added_are_served_without_a_reload(running: Supervisor, kafka: Kafka, world) -> None:
    """Scenario 47: until they are active, the node is not ready, and answers name them."""
    kafka.partitions = 4
    wait_for(lambda: running.partitions() == 4)
    wait_for(lambda: active(running) == [0, 1, 2, 3])
    assert len(world.launched) == 5, "a front and four shards, each started once"


def test_a_node_with_a_list_counts_added_partitions_and_does_not_serve_them(
    running: Supervisor, kafka: Kafka, world
) -> None:
    running.reload(Settings(node={**NODE, "shards": "0-1"}))
    kafka.partitions = 4
    wait_for(lambda: running.partitions() == 4)
    assert active(running) == [0, 1]
    assert len(world.launched) == 3


def test_an_answer_that_counts_fewer_partitions_ends_no_shard(running: Supervisor, kafka: Kafka) -> None:
    kafka.partitions = 1
    counted = kafka.counted
    wait_for(lambda: kafka.counted > counted + 1)
    assert (running.partitions(), active(running)) == (2, [0, 1])


def test_a_reload_finds_new_partitions_and_leaves_running_shards_alone(
    running: Supervisor, kafka: Kafka, world
) -> None:
    kafka.partitions = 3
    outcome = running.reload(Settings(node=NODE))
    assert outcome.changes == ()
    wait_for(lambda: active(running) == [0, 1, 2])
    assert len(world.launched) == 4, "a front and three shards"


def test_a_reload_stops_shards_that_are_no_longer_listed(running: Supervisor, world) -> None:
    running.reload(Settings(node={**NODE, "shards": "1"}))
    wait_for(lambda: active(running) == [1])
    assert world.child(0).terminated_at is not None


def test_a_reload_restarts_shards_that_are_down(running: Supervisor, world) -> None:
    world.child(0).code = ExitCode.DATA_LOST
    wait_for(lambda: running.shards()[0].state is ProcessState.DOWN)
    running.reload(Settings(node=NODE))
    wait_for(lambda: active(running) == [0, 1])


def test_a_reload_that_lists_a_missing_partition_changes_nothing(running: Supervisor) -> None:
    before = running.settings
    with pytest.raises(ListedShardMissing):
        running.reload(Settings(node={**NODE, "shards": "5", "restarts": 1}))
    assert running.settings is before
    assert running.shards()[0].is_active


def test_without_kafka_a_reload_uses_the_known_partitions(running: Supervisor, kafka: Kafka) -> None:
    kafka.error = LogUnreachable("no broker answers")
    outcome = running.reload(Settings(node={**NODE, "restarts": 1}, shard={"poll_records": 7}))
    assert outcome.names(TakesEffect.AT_ONCE) == ("node.restarts",)
    assert outcome.names(TakesEffect.WITH_SHARD) == ("shard.poll_records",)
    assert active(running) == [0, 1]


def test_it_publishes_its_own_iterations_and_the_heartbeats_of_its_children(running: Supervisor) -> None:
    before = running.heartbeats()
    wait_for(lambda: running.heartbeats().iterations > before.iterations + 2)
    wait_for(
        lambda: all(
            after.beats > previous.beats
            for previous, after in zip(before.processes, running.heartbeats().processes, strict=True)
        )
    )
    assert all(process.must_iterate for process in running.heartbeats().processes)


def test_a_stop_does_not_wait_for_kafkas_answer(supervisor: Supervisor, world) -> None:
    requested, answered = threading.Event(), threading.Event()

    def hang(_settings: Settings) -> int:
        requested.set()
        answered.wait(60)
        return 2

    supervisor._count = hang
    supervisor.start()
    assert requested.wait(20)
    supervisor.stop()
    answered.set()
    assert [child.name for child in world.launched if child.name != FRONT] == []


def test_each_iteration_calls_the_publish_callback(running: Supervisor) -> None:
    published = threading.Event()
    running.on_publish = published.set
    assert published.wait(20)


def test_a_child_that_ended_is_noticed_before_the_next_iteration_is_due(
    running: Supervisor, world, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "_LOOP_INTERVAL_S", 600.0)
    iterations = running.heartbeats().iterations
    running.wake()
    wait_for(lambda: running.heartbeats().iterations > iterations)
    world.child(FRONT).code = -9
    running.wake()
    wait_for(lambda: running.processes()[0].state is ProcessState.WAITING)


def test_an_internal_error_is_logged_and_ends_it(running: Supervisor) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    running._submit(fail)
    wait_for(lambda: running.has_ended)
    with pytest.raises(ZeroDivisionError):
        running.stop()
    running._failure = None
