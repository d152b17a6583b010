"""The metric families of a node. Pure."""

from prometheus_client.core import Metric as Family

from strandline.node.http.connection import SLOW_READER, TIMED_OUT
from strandline.node.job_watch.figures import JobsFigures
from strandline.node.metrics import node_metrics as node
from strandline.node.metrics.catalogue import NODE_METRICS
from strandline.node.metrics.families import Families, in_seconds
from strandline.node.metrics.front_figures import FrontFigures
from strandline.node.metrics.job_families import put_jobs
from strandline.node.metrics.readiness_watch import ReadinessFigures
from strandline.node.metrics.shard_families import put_shard
from strandline.node.status.processes import ProcessState
from strandline.node.supervisor.node_state import NodeState
from strandline.recovery.periods import HOUR


def node_families(
    state: NodeState,
    state_age_s: float,
    front: FrontFigures,
    readiness: ReadinessFigures | None,
    now: int,
    *,
    jobs: JobsFigures | None = None,
    monotonic: float = 0.0,
) -> tuple[Family, ...]:
    """All families of a node: from the supervisor's state and its age, the front's counters, and, if they are read, the
    readiness of the dataset and its bulk jobs. `monotonic` is the current time for jobs' progress.
    """
    families = Families(NODE_METRICS)
    families.put_build()
    families.put(node.SHARDS, len(state.shards))
    families.put(node.PARTITIONS, state.partitions)
    families.put(node.ACTIVE_SHARDS, sum(shard.is_active for shard in state.shards))
    _put_supervisor(families, state, state_age_s)
    _put_front(families, front)
    if readiness is not None:
        _put_readiness(families, readiness, now)
    if jobs is not None:
        put_jobs(families, jobs, now, monotonic)
    for shard in state.shards:
        put_shard(families, shard, now)
    return families.all()


def _put_supervisor(families: Families, state: NodeState, state_age_s: float) -> None:
    families.put(node.STARTED, state.started_at / 1000)
    families.put(node.STATE_AGE, state_age_s)
    families.put(node.WATCHDOG_FEEDS, state.watchdog_feeds)
    if state.supervisor is not None:
        families.put(node.SUPERVISOR_CPU, state.supervisor.cpu_seconds)
        families.put(node.SUPERVISOR_RESIDENT, state.supervisor.resident_bytes)
    for process in state.processes:
        families.put(node.PROCESS_RESTARTS, process.restarts, process.name)
        for one in ProcessState:
            families.put(node.PROCESS_STATE, int(one is process.state), process.name, one.value)


def _put_front(families: Families, front: FrontFigures) -> None:
    counts = front.counts()
    families.put(node.NODE_CPU, counts.process.cpu_seconds)
    families.put(node.NODE_RESIDENT, counts.process.resident_bytes)
    for (handler, code), count in sorted(counts.requests.items()):
        families.put(node.HTTP_REQUESTS, count, handler, code)
    for handler, seconds in sorted(counts.seconds.items()):
        families.put_distribution(node.HTTP_SECONDS, seconds, handler)
    families.put(node.HTTP_IN_FLIGHT, counts.in_flight)
    for (ask, outcome), count in sorted(counts.queries.items()):
        families.put(node.QUERIES, count, ask, outcome)
    for reason in (SLOW_READER, TIMED_OUT):
        families.put(node.CUT_OFF_ANSWERS, counts.cut_off.get(reason, 0), reason)
    families.put(node.ANSWER_MEMORY, front.answer_memory.used)
    families.put(node.ANSWER_MEMORY_LIMIT, front.answer_memory.limit)
    families.put(node.QUERY_SERIES, counts.series)
    families.put(node.QUERY_SAMPLES, counts.samples)


def _put_readiness(families: Families, readiness: ReadinessFigures, now: int) -> None:
    families.put(node.READINESS_FAILURES, readiness.failures)
    looked_at = readiness.looked_at if readiness.looked_at is not None else readiness.began_at
    families.put(node.READINESS_AGE, max(0, now - looked_at) / 1000 if looked_at is not None else None)
    if readiness.looked_at is None:
        return
    hour = readiness.newest_ready_hour
    families.put(node.READY_HOUR_END, (hour + 1) * HOUR / 1000 if hour is not None else None)
    families.put(node.DATASET_FLUSH_INTERVAL, in_seconds(readiness.flush_interval))
    families.put(node.TOPIC_RETENTION, in_seconds(readiness.kafka_retention))
    families.put(node.UNREAD_PARTITIONS, sum(one.stored_until is None for one in readiness.partitions))
    for one in readiness.partitions:
        if one.stored_until is not None:
            families.put(node.STORED_UNTIL, one.stored_until / 1000, str(one.shard))
            # As of the scrape, so that it keeps rising if reads fail.
            families.put(node.BEHIND, max(0, now - one.stored_until) / 1000, str(one.shard))
