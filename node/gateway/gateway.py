"""Handles remote-write requests and counts them.

All code here runs in one event loop. Decompressing, splitting and compressing run in a few threads, and deliveries are
reported by the producer's thread. A request's bytes count as in flight from before its body is read until Kafka has
acknowledged or failed its records, even if the client has disconnected. Records that were already handed to the
producer are still sent then.
"""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import structlog

from strandline.clock import Clock
from strandline.node.gateway.broker_clock import BrokerClock, OwnTime
from strandline.node.gateway.figures import GatewayCounters, GatewayFigures, GatewayStage, Outcome
from strandline.node.gateway.headers import check_headers
from strandline.node.gateway.in_flight import InFlight, NoRoom, Reservation
from strandline.node.gateway.options import GatewayOptions
from strandline.node.gateway.packing import Packed, loss_error, pack
from strandline.node.gateway.producer import NotDelivered, Record, RecordProducer
from strandline.node.gateway.rejections import (
    WriteRejected,
    clocks_disagree,
    kafka_unavailable,
    put_off,
    refused,
    stopping,
    too_large,
    too_slow,
)
from strandline.node.gateway.throttle import Throttle
from strandline.node.gateway.topic import Topic
from strandline.node.http.errors import Refused, SlowRequest
from strandline.node.http.requests import Request
from strandline.node.http.responses import Response
from strandline.node.http.routes import Access, Route
from strandline.node.http.server import RequestObserver
from strandline.time_range import TimeRange
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import BadBlock, compress, unpacked_length
from strandline.wire.splitting import BadRequest

log = structlog.get_logger(__name__)

RECORD_OVERHEAD = 1 << 10
"""The approximate memory of a record, or of a request, in addition to its bytes."""

_MAX_THREADS = 4
_TOO_LARGE = 413
# A request whose unpacked size is below this takes about 2 ms. Using a thread would cost up to a fifth more CPU time.
_MIN_BYTES_FOR_THREAD = 1 << 20
# A request without series, which is sent to get the broker's time with its acknowledgement.
_EMPTY_RECORD = Record(0, compress(b""))


class Gateway:
    """Handles remote-write requests. Call `close` after the HTTP server has been stopped."""

    def __init__(
        self,
        options: GatewayOptions,
        producer: RecordProducer,
        topic: Topic,
        clock: Clock,
        broker_clock: BrokerClock,
    ) -> None:
        """`broker_clock` must be the one that the producer updates."""
        self._options, self._producer, self._topic, self._clock = options, producer, topic, clock
        self._broker_clock = broker_clock
        self._in_flight = InFlight(options.max_in_flight)
        self._counters = GatewayCounters()
        self._version_2_logging = Throttle(clock)
        # The unacknowledged requests, with the time when each was given to the producer.
        self._sent_at: dict[asyncio.Future[NotDelivered | None], float] = {}
        self._threads = ThreadPoolExecutor(min(_MAX_THREADS, os.cpu_count() or 1), thread_name_prefix="packing")
        self._is_stopping = False

    def routes(self) -> tuple[Route, ...]:
        """The HTTP routes."""
        return (
            Route(("POST",), "/api/v1/write", self.write, Access.WRITE),
            Route(("GET",), "/-/healthy", self.healthy, Access.OPEN),
            Route(("GET",), "/-/ready", self.ready, Access.OPEN),
        )

    @property
    def observer(self) -> RequestObserver:
        """The observer that counts responses that the HTTP server sends before the gateway gets the request."""
        return self._counters

    def figures(self) -> GatewayFigures:
        """A snapshot of the statistics. Any thread may call this."""
        compared = self._broker_clock.newest
        return self._counters.figures(
            in_flight=self._in_flight.used,
            limit=self._in_flight.limit,
            arriving=self._in_flight.usage.arriving_bytes,
            unacknowledged_s=self._unacknowledged_s(),
            waiting=self._in_flight.waiting,
            partitions=self._topic.partitions,
            kafka=self._producer.counts(),
            clock_difference_ms=compared.difference_ms if compared is not None else None,
        )

    def trouble(self) -> str:
        """Why nothing can be written now; empty if writing works."""
        if self._is_stopping:
            return "the gateway is being stopped"
        return str(self._topic.trouble or "")

    async def healthy(self, _request: Request) -> Response:
        """`GET /-/healthy`. It does not depend on Kafka, because a restart of the gateway would not help."""
        return Response.text("The gateway is healthy.\n")

    async def ready(self, _request: Request) -> Response:
        """`GET /-/ready`: whether a remote-write request would be accepted."""
        if trouble := self.trouble():
            return Response.text(f"Not ready: {trouble}\n", status=503)
        return Response.text("The gateway is ready.\n")

    async def write(self, request: Request) -> Response:
        """`POST /api/v1/write`."""
        began, outcome = self._clock.monotonic(), Outcome.FAILED
        try:
            await self._handle_write(request)
        except WriteRejected as error:
            outcome = error.outcome
            if outcome is Outcome.REMOTE_WRITE_2 and self._version_2_logging.is_due():
                log.warning("remote write 2.0 is refused, and its sender drops the samples", sender=request.remote)
            return error.response()
        except (asyncio.CancelledError, ConnectionError):
            outcome = Outcome.CLIENT_GONE
            raise
        else:
            outcome = Outcome.WRITTEN
            return Response(status=204)
        finally:
            self._counters.answered(outcome, self._clock.monotonic() - began)

    def begin_stop(self) -> None:
        """Accept no more requests. Those that are being processed continue."""
        self._is_stopping = True

    async def close(self, timeout: float) -> None:
        """Wait up to `timeout` seconds until Kafka has acknowledged all records, and give up the others."""
        self.begin_stop()
        await asyncio.get_running_loop().run_in_executor(None, self._producer.close, timeout)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def warm_up(self) -> None:
        """Load the compiled kernels, which takes some tenths of a second, before the first request needs them."""
        body = compress(encode_request([Series([("a", "b")], [(1, 1.0), (9, 1.0)]), Series([], [(1, 1.0)])]))
        pack(body, 2, self._options, TimeRange(0, 5))

    async def _handle_write(self, request: Request) -> None:
        """Process a request. Returns when Kafka has acknowledged all of it, and raises `WriteRejected` otherwise."""
        options, length = self._options, request.content_length
        if self._is_stopping:
            raise stopping()
        check_headers(request.headers)
        if length is not None and length > options.max_body:
            raise too_large(str(length), options.max_body)
        self._require_kafka()
        reservation = await self._reserve(RECORD_OVERHEAD)
        try:
            body = await self._read(request, reservation)
        except BaseException:
            reservation.release()
            raise
        self._counters.bytes_in += len(body)
        await self._write_to_kafka(body, reservation)

    def _require_kafka(self) -> None:
        """Reject a request before its body is read while brokers don't answer."""
        if (trouble := self._topic.trouble) is not None:
            raise kafka_unavailable(trouble)

    async def _reserve(self, size: int) -> Reservation:
        try:
            return await self._in_flight.reserve(size, self._options.queue_timeout_s)
        except NoRoom:
            raise self._no_room() from None

    def _no_room(self) -> WriteRejected:
        # If the room is used up because the brokers don't answer, that is the reason to report.
        if (trouble := self._topic.trouble) is not None:
            return kafka_unavailable(trouble)
        return put_off(self._options.queue_timeout_s, self._in_flight.usage, self._unacknowledged_s())

    def _unacknowledged_s(self) -> float:
        """How long the oldest request has waited for Kafka; 0 if none does."""
        sent_at = list(self._sent_at.values())
        return self._clock.monotonic() - min(sent_at) if sent_at else 0.0

    async def _read(self, request: Request, reservation: Reservation) -> bytes:
        """Read the body. Room is reserved for bytes as they arrive, not for the announced length, so that a slow client
        reserves little.
        """
        body, limit, chunks = request.body, self._options.max_body, []
        try:
            while chunk := await body.next_chunk():
                if body.received > limit:
                    raise too_large(f"more than {limit}", limit)
                await reservation.grow(len(chunk), self._options.queue_timeout_s)
                chunks.append(chunk)
        except SlowRequest:
            raise too_slow() from None
        except Refused as error:
            if error.status == _TOO_LARGE:
                raise too_large(f"more than {limit}", limit) from None
            raise refused(error) from error
        except NoRoom:
            raise self._no_room() from None
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def _write_to_kafka(self, body: bytes, reservation: Reservation) -> None:
        """Write a body to Kafka. In any case, including a cancellation because the client disconnects, the reservation
        is released when nothing of the request is in memory any longer.
        """
        checked = self._broker_clock.now()
        try:
            packed = await self._pack(body, checked)
            del body
            self._count_skipped(packed)
        except BaseException:
            reservation.release()
            raise
        if packed.records:
            reservation.resize(packed.record_bytes + RECORD_OVERHEAD * len(packed.records))
            await self._deliver(packed.records, reservation, partial(self._count_written, packed))
        elif packed.has_out_of_range_samples and not self._broker_clock.is_compared(checked):
            # The clock by which all samples are rejected was not compared recently, or was set since.
            reservation.resize(RECORD_OVERHEAD)
            await self._deliver((_EMPTY_RECORD,), reservation, lambda: None)
        else:
            reservation.release()
        if packed.dropped:
            raise self._refusal(packed, checked)

    def _refusal(self, packed: Packed, checked: OwnTime) -> WriteRejected:
        """The response to a request of which something was dropped. If samples were dropped for their time and the
        clock may be wrong, the response is 503, because the sender would drop the samples after a 400.
        """
        if packed.has_out_of_range_samples and (disagreement := self._broker_clock.disagreement(checked)):
            return clocks_disagree(disagreement, loss_error(packed))
        for one in packed.dropped:
            dropped = self._counters.dropped_series
            dropped[one.reason] = dropped.get(one.reason, 0) + one.series
        return WriteRejected(
            400, Outcome.PARTLY_WRITTEN if packed.records else Outcome.REFUSED, str(loss_error(packed))
        )

    async def _pack(self, body: bytes, now: OwnTime) -> Packed:
        times = self._options.sample_times(now.time_ms)
        work = partial(pack, body, self._topic.partitions, self._options, times)
        try:
            if unpacked_length(body, limit=self._options.limits.record_bytes) < _MIN_BYTES_FOR_THREAD:
                return work()
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except (BadBlock, BadRequest) as error:
            raise refused(error) from error

    async def _deliver(
        self, records: Sequence[Record], reservation: Reservation, on_written: Callable[[], None]
    ) -> None:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[NotDelivered | None] = loop.create_future()

        def arrived(error: NotDelivered | None) -> None:
            reservation.release()
            del self._sent_at[answer]
            if error is None:
                on_written()
            if not answer.done():
                answer.set_result(error)

        def on_done(error: NotDelivered | None) -> None:
            loop.call_soon_threadsafe(arrived, error)

        self._sent_at[answer] = self._clock.monotonic()
        began = time.thread_time()
        self._producer.send(records, on_done)
        self._counters.stages[GatewayStage.PRODUCE] += time.thread_time() - began
        try:
            async with asyncio.timeout(self._options.timeout_s):
                error = await answer
        except TimeoutError:
            error = NotDelivered(f"Kafka has not acknowledged it within {self._options.timeout_s:g} s")
        if error is not None:
            self._topic.refresh_soon()
            raise kafka_unavailable(error)

    def _count_written(self, packed: Packed) -> None:
        counting = self._counters
        counting.series += packed.series
        counting.samples += packed.samples
        counting.records += len(packed.records)
        counting.bytes_out += packed.record_bytes

    def _count_skipped(self, packed: Packed) -> None:
        counting, seconds = self._counters, packed.seconds
        counting.series_without_samples += packed.without_samples
        counting.skipped_exemplars += packed.exemplars
        counting.skipped_histograms += packed.histograms
        counting.skipped_metadata += packed.metadata
        counting.stages[GatewayStage.UNPACK] += seconds.unpack
        counting.stages[GatewayStage.SPLIT] += seconds.split
        counting.stages[GatewayStage.PACK] += seconds.pack
