"""A gateway with a controllable fake Kafka, and clients of it over real HTTP."""

import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp

from strandline.clock import Clock, SystemClock
from strandline.errors import StrandlineError
from strandline.node.gateway.broker_clock import BrokerClock, OwnTime
from strandline.node.gateway.figures import ProducerCounts
from strandline.node.gateway.gateway import Gateway
from strandline.node.gateway.options import GatewayOptions
from strandline.node.gateway.producer import NotDelivered, OnDone, Record
from strandline.node.http.server import HttpServer
from strandline.node.settings.http_sections import HttpSettings
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress
from support.decoding import rows_of
from support.http_servers import eventually

HEADERS = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}


def body_of(*series: Series) -> bytes:
    return compress(encode_request(series))


def up(number: int, time: int = 1, value: float = 1.0) -> Series:
    return Series([("__name__", "up"), ("instance", f"host-{number}")], [(time, value)])


class FakeProducer:
    """A fake of Kafka's producer, with partitions in memory. Records are delivered immediately, unless `holding`: then
    batches wait until the test delivers or fails them.
    """

    def __init__(self, partitions: int = 4, clock: BrokerClock | None = None) -> None:
        """`clock` is compared with the system's, which is the brokers'."""
        self.partitions = partitions
        self.clock = clock or BrokerClock(SystemClock())
        self.log: dict[int, list[bytes]] = defaultdict(list)
        self.holding = False
        self.held: list[HeldBatch] = []
        self.renewals = 0
        self._closed = False
        self._lock = threading.Lock()

    def send(self, records: Sequence[Record], on_done: OnDone) -> None:
        batch = HeldBatch(self, tuple(records), on_done)
        if self._closed:
            batch.settle(0, NotDelivered("the producer is closed"))
        elif any(record.partition >= self.partitions for record in records):
            batch.settle(0, NotDelivered("there is no such partition"))
        elif self.holding:
            with self._lock:
                self.held.append(batch)
        else:
            batch.deliver()

    def await_partitions(self, partitions: int) -> None:
        if partitions > self.partitions:
            raise NotDelivered(f"the brokers know of {self.partitions} partitions, not {partitions}")

    def renew(self) -> None:
        self.renewals += 1

    def counts(self) -> ProducerCounts:
        return ProducerCounts(renewals=self.renewals)

    def close(self, timeout: float) -> None:
        self._closed = True
        for batch in list(self.held):
            batch.deliver() if timeout > 0 else batch.fail()

    def append(self, record: Record) -> None:
        with self._lock:
            self.log[record.partition].append(record.value)

    def settled(self, batch: "HeldBatch") -> None:
        with self._lock:
            if batch in self.held:
                self.held.remove(batch)


@dataclass(eq=False)
class HeldBatch:
    producer: FakeProducer
    records: tuple[Record, ...]
    on_done: OnDone
    sent: OwnTime = field(init=False)

    def __post_init__(self) -> None:
        self.sent = self.producer.clock.now()

    def deliver(self) -> None:
        self.settle(len(self.records), None)

    def fail(self, delivered: int = 0) -> None:
        """Fail the batch after `delivered` of its records."""
        self.settle(delivered, NotDelivered("Kafka did not take it: the test says so"))

    def settle(self, delivered: int, error: NotDelivered | None) -> None:
        for record in self.records[:delivered]:
            self.producer.append(record)
            self.producer.clock.acknowledged(self.sent, SystemClock().now_ms())
        self.producer.settled(self)
        self.on_done(error)


@dataclass
class FakeTopic:
    partitions: int = 4
    trouble: StrandlineError | None = None
    refresh_requests: int = 0

    def refresh_soon(self) -> None:
        self.refresh_requests += 1


@dataclass(frozen=True)
class Answer:
    status: int
    text: str
    headers: Mapping[str, str]


class InProcessGateway:
    """A gateway behind the real HTTP server."""

    def __init__(
        self, options: GatewayOptions | None = None, *, partitions: int = 4, clock: Clock | None = None
    ) -> None:
        self.options, clock = options or GatewayOptions(), clock or SystemClock()
        broker_clock = BrokerClock(clock)
        self.producer, self.topic = FakeProducer(partitions, broker_clock), FakeTopic(partitions)
        self.gateway = Gateway(self.options, self.producer, self.topic, clock, broker_clock)
        self.session: aiohttp.ClientSession
        self.url = ""

    async def write(self, body: bytes | aiohttp.Payload, headers: Mapping[str, str | None] | None = None) -> Answer:
        sent = {name: value for name, value in {**HEADERS, **(headers or {})}.items() if value is not None}
        async with self.session.post(
            f"{self.url}/api/v1/write", data=body, headers=sent, skip_auto_headers=("Content-Type",)
        ) as response:
            return Answer(response.status, await response.text(), response.headers)

    async def get(self, path: str) -> Answer:
        async with self.session.get(f"{self.url}{path}") as response:
            return Answer(response.status, await response.text(), response.headers)

    def written(self) -> list[tuple[int, bytes, list[tuple[int, float]]]]:
        """The content of Kafka: partition, labels, samples."""
        return decoded(self.producer.log)


@asynccontextmanager
async def serving(
    options: GatewayOptions | None = None,
    *,
    partitions: int = 4,
    http: Mapping[str, object] | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[InProcessGateway]:
    test = InProcessGateway(options, partitions=partitions, clock=clock)
    settings = HttpSettings(**(http or {}))
    server = HttpServer(
        test.gateway.routes(),
        settings,
        "127.0.0.1:0",
        max_body=test.options.max_body,
        observer=test.gateway.observer,
    )
    bound = await server.start()
    test.url = bound.url
    connector = aiohttp.TCPConnector(limit=0)
    try:
        async with aiohttp.ClientSession(connector=connector) as test.session:
            yield test
    finally:
        await server.stop(1.0)
        await test.gateway.close(1.0)


def decoded(log: Mapping[int, Iterable[bytes]]) -> list[tuple[int, bytes, list[tuple[int, float]]]]:
    found = []
    for partition, values in sorted(log.items()):
        columns = decode_batch(list(values), Limits())
        assert columns.faults == ()
        found += [(partition, labels, samples) for _, labels, samples in rows_of(columns)]
    return found


@dataclass
class Deliveries:
    """The delivery reports of a producer, batch by batch."""

    outcomes: list[NotDelivered | None] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def on_done(self) -> OnDone:
        def done(error: NotDelivered | None) -> None:
            with self._changed:
                self.outcomes.append(error)
                self._changed.notify_all()

        return done

    def wait(self, count: int, timeout: float = 30) -> list[NotDelivered | None]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.outcomes) >= count, timeout)
            return list(self.outcomes)


eventually_in_loop = eventually
