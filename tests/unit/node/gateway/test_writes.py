"""The responses to `POST /api/v1/write` over real HTTP."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from strandline.clock import ManualClock, SystemClock
from strandline.errors import Fatal
from strandline.node.gateway.figures import Outcome
from strandline.node.gateway.options import GatewayOptions
from strandline.node.shard.log import LogUnreachable
from strandline.wire.encoding import Series
from strandline.wire.snappy import compress
from support.gateways import HEADERS, GatewayOfATest, body_of, decoded, eventually_in_loop, serving, up
from support.http_servers import in_loop, secret_file

pytestmark = pytest.mark.unit

BAD = Series([("a", "1"), ("a", "2")], [(1, 1.0)])
BOMB = b"\xff\xff\xff\x7f" + bytes(100)
"""A snappy block whose header announces 256 MB."""
QUICK = GatewayOptions(timeout_s=0.2)


def run(test: Callable[[GatewayOfATest], Awaitable[None]], options: GatewayOptions | None = None) -> GatewayOfATest:
    async def serve_and_test() -> GatewayOfATest:
        async with serving(options) as gateway:
            await test(gateway)
        assert gateway.gateway.figures().in_flight_bytes == 0
        return gateway

    return in_loop(serve_and_test())


def outcomes(gateway: GatewayOfATest) -> dict[Outcome, int]:
    return {outcome: count for outcome, count in gateway.gateway.figures().requests.items() if count}


def test_a_request_is_answered_with_success_once_all_of_it_is_in_kafka() -> None:
    async def test(gateway: GatewayOfATest) -> None:
        gateway.producer.holding = True
        body = body_of(*(up(number) for number in range(100)))
        answer = asyncio.create_task(gateway.write(body))
        await eventually_in_loop(lambda: len(gateway.producer.held) == 1)
        assert gateway.gateway.figures().in_flight_bytes > 0
        assert gateway.gateway.figures().samples == 0
        assert not answer.done()
        gateway.producer.held[0].deliver()
        assert (await answer).status == 204
        figures = gateway.gateway.figures()
        assert (figures.series, figures.samples, figures.records) == (100, 100, 4)
        assert figures.bytes_in == len(body)
        assert figures.bytes_out == sum(len(value) for values in gateway.producer.log.values() for value in values)
        assert figures.latency_count == 1

    gateway = run(test)
    expected = {labels for _, labels, _ in decoded({0: [body_of(*(up(number) for number in range(100)))]})}
    assert {labels for _, labels, _ in gateway.written()} == expected


def test_an_empty_request_is_a_success() -> None:
    async def test(gateway: GatewayOfATest) -> None:
        assert (await gateway.write(compress(b""))).status == 204
        assert (await gateway.write(body_of(Series([("a", "b")], [])))).status == 204

    assert outcomes(run(test)) == {Outcome.WRITTEN: 2}


def test_requests_without_the_right_token_are_counted_by_code(tmp_path: Path) -> None:
    write_token, read_token = "a-token-for-writes-0123", "a-token-for-reads-0123"
    http = {
        "write_token_file": secret_file(tmp_path / "write", write_token),
        "read_token_file": secret_file(tmp_path / "read", read_token),
    }

    async def test() -> None:
        async with serving(http=http) as gateway:
            for token in ("", "unknown", "unknown", read_token, write_token):
                await gateway.write(body_of(up(1)), {"Authorization": f"Bearer {token}"})
            assert gateway.gateway.figures().unauthorized == {401: 3, 403: 1}
            assert outcomes(gateway) == {Outcome.WRITTEN: 1}

    in_loop(test())


class TestDroppedSeries:
    def test_the_other_series_are_written_and_the_answer_names_the_dropped_ones(self) -> None:
        async def test(gateway: GatewayOfATest) -> None:
            answer = await gateway.write(body_of(up(1), BAD, up(2)))
            assert answer.status == 400
            assert "1 series dropped, the other 2 are written" in answer.text
            assert '{a="1", a="2"}' in answer.text
            assert "Retry-After" not in answer.headers

        gateway = run(test)
        assert len(gateway.written()) == 2
        assert outcomes(gateway) == {Outcome.PARTLY_WRITTEN: 1}
        assert gateway.gateway.figures().dropped_series == {"duplicate-name": 1}

    def test_samples_that_shards_would_drop_are_not_acknowledged(self) -> None:
        async def test(gateway: GatewayOfATest) -> None:
            now = SystemClock().now_ms()
            answer = await gateway.write(body_of(up(1, time=now), up(2, time=now + 3_600_000)))
            assert answer.status == 400
            assert "1 series dropped, the other 1 are written" in answer.text
            assert "shard.max_sample_ahead" in answer.text
            assert (await gateway.write(body_of(up(3, time=now + 500_000)))).status == 204

        gateway = run(test)
        assert len(gateway.written()) == 2
        assert gateway.gateway.figures().dropped_series == {"too-far-ahead": 1}

    def test_the_answer_is_503_until_the_other_series_are_in_kafka(self) -> None:
        """A sender drops requests that were answered with 400, so that the other series would be lost."""

        async def test(gateway: GatewayOfATest) -> None:
            gateway.producer.holding = True
            answer = asyncio.create_task(gateway.write(body_of(up(1), BAD)))
            await eventually_in_loop(lambda: len(gateway.producer.held) == 1)
            gateway.producer.held[0].fail()
            assert (await answer).status == 503

        run(test)

    def test_a_request_without_valid_series_writes_no_record(self) -> None:
        async def test(gateway: GatewayOfATest) -> None:
            answer = await gateway.write(body_of(BAD))
            assert answer.status == 400
            assert "nothing was written" in answer.text

        gateway = run(test)
        assert gateway.written() == []
        assert outcomes(gateway) == {Outcome.REFUSED: 1}

    def test_the_answer_is_one_line_that_prometheus_logs_completely(self) -> None:
        async def test(gateway: GatewayOfATest) -> None:
            long = [(f"\n{number}" + "n" * 50, "v" * 100) for number in range(4)]
            invalid = [[*long, *long], [*long, ("", "v")], [*long, ("n" * 1100, "v")], [*long, ("n", "v" * 5000)]]
            answer = await gateway.write(body_of(*(Series(labels, [(1, 1.0)]) for labels in invalid)))
            assert len(answer.text) == 501
            assert answer.text.count("\n") == 1

        run(test)


class TestRefusedRequests:
    @pytest.mark.parametrize("body", [b"", b"not snappy at all", compress(b"\x0a\xff\xff"), BOMB])
    def test_an_invalid_request_is_refused(self, body: bytes) -> None:
        async def test(gateway: GatewayOfATest) -> None:
            assert (await gateway.write(body)).status == 400

        assert outcomes(run(test)) == {Outcome.REFUSED: 1}

    def test_another_encoding_is_unsupported_and_the_body_is_not_read(self) -> None:
        async def test(gateway: GatewayOfATest) -> None:
            answer = await gateway.write(b"x" * 1000, {"Content-Encoding": "gzip"})
            assert answer.status == 415
            assert "snappy" in answer.text
            assert (await gateway.write(b"", {"Content-Encoding": None})).status == 415

        assert outcomes(run(test)) == {Outcome.UNSUPPORTED: 2}

    def test_remote_write_2_is_counted_separately_and_logged_with_its_sender_once_a_minute(self) -> None:
        clock = ManualClock(SystemClock().now_ms())
        v2 = {"Content-Type": "application/x-protobuf;proto=io.prometheus.write.v2.Request"}

        async def test() -> None:
            async with serving(clock=clock) as gateway:
                for seconds in (0, 1, 58, 1):
                    clock.sleep(seconds)
                    answer = await gateway.write(b"", v2)
                    assert answer.status == 415
                    assert "prometheus.WriteRequest" in answer.text
                assert outcomes(gateway) == {Outcome.REMOTE_WRITE_2: 4}

        with capture_logs() as logs:
            in_loop(test())
        warnings = [line for line in logs if "remote write 2.0" in line["event"]]
        assert [(line["log_level"], line["sender"]) for line in warnings] == [("warning", "127.0.0.1")] * 2

    def test_a_body_over_the_limit_is_too_large_however_it_is_sent(self) -> None:
        async def send_endlessly() -> AsyncIterator[bytes]:
            for _ in range(64):
                yield bytes(1024)

        async def test(gateway: GatewayOfATest) -> None:
            assert (await gateway.write(bytes(33 << 10))).status == 413
            answer = await gateway.write(send_endlessly())
            assert answer.status == 413
            assert "max_samples_per_send" in answer.text

        # A body with a Content-Length is refused by the server, before it reaches the gateway.
        assert outcomes(run(test, GatewayOptions(max_body=32 << 10))) == {Outcome.TOO_LARGE: 1}

    def test_too_many_series_are_refused(self) -> None:
        async def test(gateway: GatewayOfATest) -> None:
            answer = await gateway.write(body_of(up(1), up(2), up(3)))
            assert answer.status == 400
            assert "over the limit of 2" in answer.text

        assert run(test, GatewayOptions(max_series=2)).written() == []


class TestUnavailableKafka:
    @pytest.mark.parametrize("delivered", [0, 2])
    def test_a_failed_delivery_is_answered_with_retry_after(self, delivered: int) -> None:
        async def test(gateway: GatewayOfATest) -> None:
            gateway.producer.holding = True
            answer = asyncio.create_task(gateway.write(body_of(*(up(number) for number in range(50)))))
            await eventually_in_loop(lambda: len(gateway.producer.held) == 1)
            gateway.producer.held[0].fail(delivered)
            response = await answer
            assert response.status == 503
            assert int(response.headers["Retry-After"]) > 0
            assert "the test says so" in response.text
            assert gateway.topic.refresh_requests == 1
            assert gateway.gateway.figures().samples == 0

        assert outcomes(run(test)) == {Outcome.KAFKA_UNAVAILABLE: 1}

    def test_an_answer_that_times_out_is_a_503_and_its_bytes_count_until_the_delivery_fails(self) -> None:
        async def test(gateway: GatewayOfATest) -> None:
            gateway.producer.holding = True
            answer = await gateway.write(body_of(up(1)))
            assert answer.status == 503
            assert "0.2 s" in answer.text
            assert gateway.gateway.figures().in_flight_bytes > 0
            gateway.producer.held[0].deliver()
            await eventually_in_loop(lambda: gateway.gateway.figures().in_flight_bytes == 0)
            # It reached Kafka after the timeout, and the sender's retry writes it a second time.
            assert gateway.gateway.figures().samples == 1

        run(test, QUICK)

    def test_no_body_is_read_while_brokers_are_known_to_be_unreachable(self) -> None:
        async def test(gateway: GatewayOfATest) -> None:
            gateway.topic.trouble = LogUnreachable("no broker answers")
            answer = await gateway.write(bytes(1 << 20))
            assert answer.status == 503
            assert "no broker answers" in answer.text
            assert gateway.gateway.figures().bytes_in == 0
            gateway.topic.trouble = None
            assert (await gateway.write(body_of(up(1)))).status == 204

        run(test)

    def test_new_partitions_are_used_from_the_next_request_on(self) -> None:
        async def test(gateway: GatewayOfATest) -> None:
            body = body_of(*(up(number) for number in range(100)))
            await gateway.write(body)
            assert set(gateway.producer.log) == {0, 1, 2, 3}
            gateway.topic.partitions = gateway.producer.partitions = 8
            await gateway.write(body)
            assert set(gateway.producer.log) == set(range(8))

        run(test)


class TestBackPressure:
    # A body takes its length and a kilobyte: two of these bodies fit, and a third one does not.
    OPTIONS = GatewayOptions(max_in_flight=3 << 10, timeout_s=0.8)

    def test_a_request_without_room_waits_and_then_gets_503(self) -> None:
        async def test(gateway: GatewayOfATest) -> None:
            gateway.producer.holding = True
            first = [asyncio.create_task(gateway.write(body_of(up(number)))) for number in range(2)]
            await eventually_in_loop(lambda: len(gateway.producer.held) == 2)
            third = await gateway.write(body_of(up(3)))
            assert third.status == 503, "by default, Prometheus drops requests that were answered with 429"
            assert "Kafka does not acknowledge" in third.text
            assert "look at Kafka's brokers" in third.text
            assert gateway.gateway.figures().unacknowledged_seconds >= 0.2
            assert int(third.headers["Retry-After"]) > 0
            for batch in list(gateway.producer.held):
                batch.deliver()
            assert [(await answer).status for answer in first] == [204, 204]

        assert outcomes(run(test, self.OPTIONS)) == {Outcome.WRITTEN: 2, Outcome.PUT_OFF: 1}

    def test_released_room_admits_the_next_request(self) -> None:
        async def test(gateway: GatewayOfATest) -> None:
            gateway.producer.holding = True
            answers = [asyncio.create_task(gateway.write(body_of(up(number)))) for number in range(3)]
            await eventually_in_loop(lambda: gateway.gateway.figures().waiting_requests == 1)
            gateway.producer.holding = False
            for batch in list(gateway.producer.held):
                batch.deliver()
            assert [(await answer).status for answer in answers] == [204] * 3

        run(test, replace(self.OPTIONS, timeout_s=60.0))

    def test_requests_get_503_if_all_room_is_taken_while_brokers_are_unreachable(self) -> None:
        """By default, Prometheus drops requests that were answered with 429."""

        async def test(gateway: GatewayOfATest) -> None:
            gateway.producer.holding = True
            first = [asyncio.create_task(gateway.write(body_of(up(number)))) for number in range(2)]
            await eventually_in_loop(lambda: len(gateway.producer.held) == 2)
            third = asyncio.create_task(gateway.write(body_of(up(3))))
            await eventually_in_loop(lambda: gateway.gateway.figures().waiting_requests == 1)
            gateway.topic.trouble = LogUnreachable("no broker answers")
            assert (await third).status == 503
            for batch in list(gateway.producer.held):
                batch.fail()
            assert [(await answer).status for answer in first] == [503, 503]

        run(test, self.OPTIONS)


class TestDisconnectedClients:
    def test_records_given_to_kafka_are_delivered_and_their_room_is_released(self) -> None:
        async def test(gateway: GatewayOfATest) -> None:
            gateway.producer.holding = True
            answer = asyncio.create_task(gateway.write(body_of(up(1))))
            await eventually_in_loop(lambda: len(gateway.producer.held) == 1)
            answer.cancel()
            await eventually_in_loop(lambda: gateway.gateway.figures().requests[Outcome.CLIENT_GONE] == 1)
            assert gateway.gateway.figures().in_flight_bytes > 0
            gateway.producer.held[0].deliver()
            await eventually_in_loop(lambda: gateway.gateway.figures().in_flight_bytes == 0)
            assert gateway.gateway.figures().samples == 1

        assert len(run(test).written()) == 1

    def test_a_partial_body_releases_its_room(self) -> None:
        async def test(gateway: GatewayOfATest) -> None:
            host, port = gateway.url.removeprefix("http://").split(":")
            _, writer = await asyncio.open_connection(host, int(port))
            head = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
            writer.write(
                f"POST /api/v1/write HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100\r\n{head}\r\nabc".encode()
            )
            await writer.drain()
            await eventually_in_loop(lambda: gateway.gateway.figures().in_flight_bytes > 0)
            writer.close()
            await eventually_in_loop(lambda: gateway.gateway.figures().in_flight_bytes == 0)
            assert gateway.gateway.figures().requests[Outcome.CLIENT_GONE] == 1

        run(test)

    def test_a_body_that_comes_too_slowly_is_not_answered_with_a_4xx(self) -> None:
        async def send_slowly() -> AsyncIterator[bytes]:
            yield b"abc"
            await asyncio.sleep(60)

        async def test() -> None:
            async with serving(http={"request_timeout": "1s"}) as gateway:
                answer = await gateway.write(send_slowly())
                assert answer.status == 503
                assert gateway.gateway.figures().in_flight_bytes == 0

        in_loop(test())


class TestStopping:
    def test_requests_in_progress_finish_and_new_ones_get_503(self) -> None:
        async def test(gateway: GatewayOfATest) -> None:
            gateway.producer.holding = True
            request = asyncio.create_task(gateway.write(body_of(up(1))))
            await eventually_in_loop(lambda: len(gateway.producer.held) == 1)
            gateway.gateway.begin_stop()
            late = await gateway.write(body_of(up(2)))
            assert late.status == 503
            assert "Retry-After" in late.headers
            assert (await gateway.get("/-/ready")).status == 503
            gateway.producer.held[0].deliver()
            assert (await request).status == 204

        assert outcomes(run(test)) == {Outcome.WRITTEN: 1, Outcome.STOPPING: 1}

    def test_closing_waits_until_records_given_to_kafka_are_delivered(self) -> None:
        async def test(gateway: GatewayOfATest) -> None:
            gateway.producer.holding = True
            request = asyncio.create_task(gateway.write(body_of(up(1))))
            await eventually_in_loop(lambda: len(gateway.producer.held) == 1)
            await gateway.gateway.close(30)
            assert (await request).status == 204

        assert len(run(test).written()) == 1


class TestHealth:
    def test_readiness_reports_the_reason(self) -> None:
        async def test(gateway: GatewayOfATest) -> None:
            assert (await gateway.get("/-/ready")).status == 200
            gateway.topic.trouble = Fatal("there is no topic up", remedy="Make it")
            not_ready = await gateway.get("/-/ready")
            assert not_ready.status == 503
            assert "there is no topic up. Make it" in not_ready.text
            assert (await gateway.get("/-/healthy")).status == 200

        run(test)

    def test_only_post_is_accepted(self) -> None:
        async def test(gateway: GatewayOfATest) -> None:
            assert (await gateway.get("/api/v1/write")).status == 405

        run(test)


def test_concurrent_connections_share_the_room_and_all_succeed() -> None:
    async def test(gateway: GatewayOfATest) -> None:
        bodies = [body_of(*(up(number + at) for at in range(20))) for number in range(60)]
        answers = await asyncio.gather(*(gateway.write(body) for body in bodies))
        assert {answer.status for answer in answers} == {204}

    # Room for three of them at a time.
    run(test, GatewayOptions(max_in_flight=16 << 10))


def test_latency_buckets_are_cumulative() -> None:
    async def test(gateway: GatewayOfATest) -> None:
        await gateway.write(body_of(up(1)))
        await gateway.write(b"")

    figures = run(test).gateway.figures()
    assert figures.latency_count == figures.latency_buckets[-1] == 2
    assert list(figures.latency_buckets) == sorted(figures.latency_buckets)
    assert figures.latency_seconds > 0
