"""The responses to `POST /api/v1/write` while Kafka, room or clients are unavailable, and during a stop."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from strandline.errors import Fatal
from strandline.node.gateway.figures import Outcome
from strandline.node.gateway.options import GatewayOptions
from strandline.node.shard.log import LogUnreachable
from support.gateway_runs import QUICK, outcomes, run
from support.gateways import HEADERS, InProcessGateway, body_of, eventually_in_loop, serving, up
from support.http_servers import in_loop

pytestmark = pytest.mark.unit


class TestUnavailableKafka:
    @pytest.mark.parametrize("delivered", [0, 2])
    def test_a_failed_delivery_is_answered_with_retry_after(self, delivered: int) -> None:
        async def test(gateway: InProcessGateway) -> None:
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
        async def test(gateway: InProcessGateway) -> None:
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
        async def test(gateway: InProcessGateway) -> None:
            gateway.topic.trouble = LogUnreachable("no broker answers")
            answer = await gateway.write(bytes(1 << 20))
            assert answer.status == 503
            assert "no broker answers" in answer.text
            assert gateway.gateway.figures().bytes_in == 0
            gateway.topic.trouble = None
            assert (await gateway.write(body_of(up(1)))).status == 204

        run(test)

    def test_new_partitions_are_used_from_the_next_request_on(self) -> None:
        async def test(gateway: InProcessGateway) -> None:
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
        async def test(gateway: InProcessGateway) -> None:
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
        async def test(gateway: InProcessGateway) -> None:
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

        async def test(gateway: InProcessGateway) -> None:
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
        async def test(gateway: InProcessGateway) -> None:
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
        async def test(gateway: InProcessGateway) -> None:
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

    def test_a_body_that_arrives_too_slowly_is_not_answered_with_a_4xx(self) -> None:
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
        async def test(gateway: InProcessGateway) -> None:
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
        async def test(gateway: InProcessGateway) -> None:
            gateway.producer.holding = True
            request = asyncio.create_task(gateway.write(body_of(up(1))))
            await eventually_in_loop(lambda: len(gateway.producer.held) == 1)
            await gateway.gateway.close(30)
            assert (await request).status == 204

        assert len(run(test).written()) == 1


class TestHealth:
    def test_readiness_reports_the_reason(self) -> None:
        async def test(gateway: InProcessGateway) -> None:
            assert (await gateway.get("/-/ready")).status == 200
            gateway.topic.trouble = Fatal("there is no topic up", remedy="Make it")
            not_ready = await gateway.get("/-/ready")
            assert not_ready.status == 503
            assert "there is no topic up. Make it" in not_ready.text
            assert (await gateway.get("/-/healthy")).status == 200

        run(test)

    def test_only_post_is_accepted(self) -> None:
        async def test(gateway: InProcessGateway) -> None:
            assert (await gateway.get("/api/v1/write")).status == 405

        run(test)


def test_concurrent_connections_share_the_room_and_all_succeed() -> None:
    async def test(gateway: InProcessGateway) -> None:
        bodies = [body_of(*(up(number + at) for at in range(20))) for number in range(60)]
        answers = await asyncio.gather(*(gateway.write(body) for body in bodies))
        assert {answer.status for answer in answers} == {204}

    # Room for three of them at a time.
    run(test, GatewayOptions(max_in_flight=16 << 10))
