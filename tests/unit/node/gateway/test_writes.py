"""The responses to `POST /api/v1/write` over real HTTP."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from strandline.clock import ManualClock, SystemClock
from strandline.node.gateway.figures import Outcome
from strandline.node.gateway.options import GatewayOptions
from strandline.wire.encoding import Series
from strandline.wire.snappy import compress
from support.gateway_runs import outcomes, run
from support.gateways import InProcessGateway, body_of, decoded, eventually_in_loop, serving, up
from support.http_servers import in_loop, secret_file

pytestmark = pytest.mark.unit

BAD = Series([("a", "1"), ("a", "2")], [(1, 1.0)])


BOMB = b"\xff\xff\xff\x7f" + bytes(100)
"""A snappy block whose header announces 256 MB."""


def test_a_request_is_answered_with_success_once_all_of_it_is_in_kafka() -> None:
    async def test(gateway: InProcessGateway) -> None:
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
    async def test(gateway: InProcessGateway) -> None:
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
        async def test(gateway: InProcessGateway) -> None:
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
        async def test(gateway: InProcessGateway) -> None:
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

        async def test(gateway: InProcessGateway) -> None:
            gateway.producer.holding = True
            answer = asyncio.create_task(gateway.write(body_of(up(1), BAD)))
            await eventually_in_loop(lambda: len(gateway.producer.held) == 1)
            gateway.producer.held[0].fail()
            assert (await answer).status == 503

        run(test)

    def test_a_request_without_valid_series_writes_no_record(self) -> None:
        async def test(gateway: InProcessGateway) -> None:
            answer = await gateway.write(body_of(BAD))
            assert answer.status == 400
            assert "nothing was written" in answer.text

        gateway = run(test)
        assert gateway.written() == []
        assert outcomes(gateway) == {Outcome.REFUSED: 1}

    def test_the_answer_is_one_line_that_prometheus_logs_completely(self) -> None:
        async def test(gateway: InProcessGateway) -> None:
            long = [(f"\n{number}" + "n" * 50, "v" * 100) for number in range(4)]
            invalid = [[*long, *long], [*long, ("", "v")], [*long, ("n" * 1100, "v")], [*long, ("n", "v" * 5000)]]
            answer = await gateway.write(body_of(*(Series(labels, [(1, 1.0)]) for labels in invalid)))
            assert len(answer.text) == 501
            assert answer.text.count("\n") == 1

        run(test)


class TestRefusedRequests:
    @pytest.mark.parametrize("body", [b"", b"not snappy at all", compress(b"\x0a\xff\xff"), BOMB])
    def test_an_invalid_request_is_refused(self, body: bytes) -> None:
        async def test(gateway: InProcessGateway) -> None:
            assert (await gateway.write(body)).status == 400

        assert outcomes(run(test)) == {Outcome.REFUSED: 1}

    def test_another_encoding_is_unsupported_and_the_body_is_not_read(self) -> None:
        async def test(gateway: InProcessGateway) -> None:
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

        async def test(gateway: InProcessGateway) -> None:
            assert (await gateway.write(bytes(33 << 10))).status == 413
            answer = await gateway.write(send_endlessly())
            assert answer.status == 413
            assert "max_samples_per_send" in answer.text

        # A body with a Content-Length is refused by the server, before it reaches the gateway.
        assert outcomes(run(test, GatewayOptions(max_body=32 << 10))) == {Outcome.TOO_LARGE: 1}

    def test_too_many_series_are_refused(self) -> None:
        async def test(gateway: InProcessGateway) -> None:
            answer = await gateway.write(body_of(up(1), up(2), up(3)))
            assert answer.status == 400
            assert "over the limit of 2" in answer.text

        assert run(test, GatewayOptions(max_series=2)).written() == []


def test_latency_buckets_are_cumulative() -> None:
    async def test(gateway: InProcessGateway) -> None:
        await gateway.write(body_of(up(1)))
        await gateway.write(b"")

    figures = run(test).gateway.figures()
    assert figures.latency_count == figures.latency_buckets[-1] == 2
    assert list(figures.latency_buckets) == sorted(figures.latency_buckets)
    assert figures.latency_seconds > 0
