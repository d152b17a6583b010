"""From settings to the jobs of a dataset: the board in its store, and a worker with everything that it needs."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager

from strandline.clock import Clock
from strandline.jobs.board import BulkBoard
from strandline.jobs.breaker import BreakerRules
from strandline.jobs.counts import AttemptCounts
from strandline.jobs.importing.import_kind import IMPORT, ImportKind
from strandline.jobs.landing.kafka_part_log import kafka_part_log
from strandline.jobs.rate import RateLimit
from strandline.jobs.sending.send_kind import SEND
from strandline.jobs.worker import BulkWorker, JobKind, WorkerRules
from strandline.node.bulk.send_opening import CompletionOpener, SendKindOpener
from strandline.node.settings.clients import librdkafka_options
from strandline.node.settings.sections import Settings
from strandline.node.shard.assembling import open_store
from strandline.recovery.leasing import LeasePolicy
from strandline.recovery.worker_identity import Processes
from strandline.store.bulk_jobs import BulkPart

_RENEWALS_A_LEASE = 6
# How often a worker that waits for its rate looks whether it is to stop.
_LOOK_S = 0.5


@contextmanager
def opened_board(settings: Settings, environ: Mapping[str, str], clock: Clock) -> Iterator[BulkBoard]:
    """The jobs of the settings' dataset."""
    lease = settings.jobs.lease.milliseconds
    policy = LeasePolicy(lease, lease // _RENEWALS_A_LEASE, settings.jobs.failures_allowed)
    with closing(open_store(settings, settings.shard.data_folder(environ), clock)) as store:
        yield BulkBoard(store, settings.dataset.name, clock, policy, Processes().is_gone)


def offset_retention_ms(settings: Settings, clock: Clock) -> int:
    """How long the brokers remember how much of a part has landed."""
    log = kafka_part_log(librdkafka_options(settings.kafka), settings.dataset.topic_name, clock)
    with closing(log):
        return log.offset_retention_ms()


def worker(
    settings: Settings,
    board: BulkBoard,
    clock: Clock,
    *,
    rate: float | None = None,
    stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[BulkPart, AttemptCounts], None] = lambda _part, _counts: None,
) -> BulkWorker:
    """A worker in this process, which lands at most `rate` samples a second."""
    kafka, limit = librdkafka_options(settings.kafka), RateLimit(rate, clock)

    def pace(samples: int, check: Callable[[], None]) -> None:
        # The lease is renewed meanwhile.
        while not limit.acquire(samples, clock.monotonic() + _LOOK_S):
            check()
            clock.sleep(_LOOK_S)

    completion = CompletionOpener.of(settings)(clock)
    imports = ImportKind(lambda: kafka_part_log(kafka, settings.dataset.topic_name, clock), clock, pace, completion)
    kinds: dict[str, JobKind] = {IMPORT: imports, SEND: SendKindOpener.of(settings)(clock, pace)}
    rules = WorkerRules(BreakerRules(settings.jobs.error_rate, settings.jobs.error_minimum))
    name = Processes().this_worker()
    return BulkWorker(board, kinds, clock, name, rules, stop=stop, on_progress=on_progress)
