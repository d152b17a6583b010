"""A client that writes through the real gateway, and the twin of the producer behind it."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from selectors import SelectorKey, SelectSelector

from strandline.index.sample_limits import SampleLimits
from strandline.node.gateway.broker_clock import BrokerClock
from strandline.node.gateway.figures import ProducerCounts
from strandline.node.gateway.gateway import Gateway
from strandline.node.gateway.options import GatewayOptions
from strandline.node.gateway.producer import NotDelivered, OnDone, Record
from strandline.node.http.headers import Headers
from strandline.node.http.requests import Body, Request
from strandline.node.query.answer_memory import AnswerMemory
from support.gateways import FakeTopic
from support.seeded.clocks import MachineClock, TrueTime
from support.seeded.ledger import Ledger, Sample, body_of
from support.seeded.violations import Violation

_HEADERS = Headers({"content-encoding": "snappy", "content-type": "application/x-protobuf"})
_TOLERANCE = 60_000
_WRITTEN, _REFUSED = 204, 400
_EMPTY_LENGTH = len(body_of(()))


class _NothingToSelect(SelectSelector):
    """For a loop in which nothing waits for a socket, nor for time: the producer answers at once."""

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        assert timeout == 0, "a request waits for something that never comes"
        return []


class _Loop(asyncio.SelectorEventLoop):
    """A loop that makes no system call: all that concerns it happens in its own thread."""

    call_soon_threadsafe = asyncio.SelectorEventLoop.call_soon


# One loop for all simulations of a process: to make one takes longer than a history's writes.
_LOOP = _Loop(_NothingToSelect())


class _Producer:
    """Appends to the log, unless the brokers are away. An acknowledgement may be lost behind the append."""

    def __init__(self, ledger: Ledger, compared: BrokerClock) -> None:
        self._ledger, self._compared = ledger, compared
        self.samples: Sequence[Sample] = ()
        """What a record holds that is sent now."""
        self.away = self.loses_answer = False

    def send(self, records: Sequence[Record], on_done: OnDone) -> None:
        sent = self._compared.now()
        if self.away:
            on_done(NotDelivered("the brokers are away"))
            return
        for record in records:
            # A request without a series only brings the broker's time back.
            samples = self.samples if len(record.value) > _EMPTY_LENGTH else ()
            time = self._ledger.append(record.value, samples, times_checked=True)
            if not self.loses_answer:
                self._compared.acknowledged(sent, time)
        on_done(NotDelivered("the answer was lost") if self.loses_answer else None)

    def await_partitions(self, partitions: int) -> None:
        """There is one."""

    def renew(self) -> None:
        """Nothing is kept."""

    def counts(self) -> ProducerCounts:
        return ProducerCounts()

    def close(self, timeout: float) -> None:
        """Nothing is under way."""


@dataclass
class _Pending:
    samples: tuple[Sample, ...]
    tries: int = 0


class Client:
    """Sends requests until they are acknowledged or refused for good, as Prometheus does."""

    def __init__(self, time: TrueTime, clock: MachineClock, ledger: Ledger, limits: SampleLimits) -> None:
        self._time, self._clock, self._ledger, self._limits = time, clock, ledger, limits
        compared = BrokerClock(clock)
        self.producer = _Producer(ledger, compared)
        self._gateway = Gateway(GatewayOptions(sample_limits=limits), self.producer, FakeTopic(1), clock, compared)
        self._memory = AnswerMemory(1 << 20)
        self._pending: deque[_Pending] = deque()

    def write(self, samples: Sequence[Sample], random: Random) -> None:
        """Send a request, and those again that were put off before."""
        self._pending.append(_Pending(tuple(samples)))
        self.send_again(random)

    def send_again(self, random: Random) -> None:
        """Try each request that waits once."""
        for _ in range(len(self._pending)):
            one = self._pending.popleft()
            one.tries += 1
            self.producer.loses_answer = random.random() < 0.03
            times = self._limits.times_in(self._clock.now_ms())
            kept = [sample for sample in one.samples if times.first <= sample.time <= times.last]
            status = self._send(one.samples, kept)
            if status == _WRITTEN:
                self._ledger.acknowledged += one.samples
            elif status == _REFUSED:
                self._check_refusal([sample for sample in one.samples if sample not in kept])
            else:
                self._pending.append(one)

    def _send(self, samples: Sequence[Sample], kept: Sequence[Sample]) -> int:
        """The status of the answer. Samples that are not in `kept` are out of time by the gateway's clock."""
        self.producer.samples = kept
        data = body_of(samples)
        body = Body(1 << 20, lambda: None)
        body.feed(data)
        body.complete()
        request = Request("POST", "/api/v1/write", _HEADERS, body, self._memory.lease())
        return _LOOP.run_until_complete(self._gateway.write(request)).status

    def _check_refusal(self, refused: Sequence[Sample]) -> None:
        """Only what is out of time by a right clock may be refused for good."""
        times = self._limits.times_in(self._time.now_ms)
        for one in refused:
            if times.first + _TOLERANCE <= one.time <= times.last - _TOLERANCE:
                raise Violation("the gateway refused a sample for good which is in time")
