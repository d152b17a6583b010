"""A client that writes through the real gateway, and a fake of the producer behind it."""

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
    """For a loop in which no task waits for a socket or for time: the producer answers at once."""

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        assert timeout == 0, "a request waits for something that never comes"
        return []


class _Loop(asyncio.SelectorEventLoop):
    """A loop without system calls: all its events are in its own thread."""

    call_soon_threadsafe = asyncio.SelectorEventLoop.call_soon


# One loop for all simulations of a process: creating one takes longer than a history's writes.
_LOOP = _Loop(_NothingToSelect())


class _Producer:
    """Appends to the log, unless the brokers are unreachable. The acknowledgement of an append may be lost."""

    def __init__(self, ledger: Ledger, compared: BrokerClock) -> None:
        self._ledger, self._compared = ledger, compared
        self.samples: Sequence[Sample] = ()
        """The samples of the record that is sent now."""
        self.away = self.loses_answer = False

    def send(self, records: Sequence[Record], on_done: OnDone) -> None:
        sent = self._compared.now()
        if self.away:
            on_done(NotDelivered("the brokers are away"))
            return
        for record in records:
            # A request without series only returns the broker's time.
            samples = self.samples if len(record.value) > _EMPTY_LENGTH else ()
            time = self._ledger.append(record.value, samples, times_checked=True)
            if not self.loses_answer:
                self._compared.acknowledged(sent, time)
        on_done(NotDelivered("the answer was lost") if self.loses_answer else None)

    def await_partitions(self, partitions: int) -> None:
        """Does nothing."""

    def renew(self) -> None:
        """Does nothing."""

    def counts(self) -> ProducerCounts:
        return ProducerCounts()

    def close(self, timeout: float) -> None:
        """Does nothing."""


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
        """Send a request, and resend those that failed before."""
        self._pending.append(_Pending(tuple(samples)))
        self.send_again(random)

    def send_again(self, random: Random) -> None:
        """Retry each failed request once."""
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
        """The status of the answer. Samples that are not in `kept` are too old or too new by the gateway's clock."""
        self.producer.samples = kept
        data = body_of(samples)
        body = Body(1 << 20, lambda: None)
        body.feed(data)
        body.complete()
        request = Request("POST", "/api/v1/write", _HEADERS, body, self._memory.lease())
        return _LOOP.run_until_complete(self._gateway.write(request)).status

    def _check_refusal(self, refused: Sequence[Sample]) -> None:
        """Only samples that are too old or too new by a correct clock may be refused for good."""
        times = self._limits.times_in(self._time.now_ms)
        for one in refused:
            if times.first + _TOLERANCE <= one.time <= times.last - _TOLERANCE:
                raise Violation("the gateway refused a sample for good which is in time")
