"""For any requests and any behaviour of Kafka: acknowledged series are in the log, each in its partition."""

import asyncio
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.node.gateway.options import GatewayOptions
from strandline.wire.encoding import Series
from support.gateways import Answer, InProcessGateway, body_of, decoded, serving, up
from support.http_servers import in_loop
from support.splitting import partition_of

pytestmark = pytest.mark.unit

PARTITIONS = 3
BAD = Series([("a", "1"), ("a", "2")], [(1, 1.0)])


@dataclass(frozen=True)
class SentRequest:
    """A request with a number of valid series, with or without an invalid one, and its fate in Kafka."""

    series: int
    has_invalid: bool
    fate: str
    delivered: int


REQUESTS = st.builds(
    SentRequest,
    series=st.integers(0, 12),
    has_invalid=st.booleans(),
    fate=st.sampled_from(["deliver", "fail", "late", "client-gone"]),
    delivered=st.integers(0, 3),
)


def series_of(number: int, sent: SentRequest) -> list[Series]:
    # The time of a sample identifies its request.
    return [up(series, time=number + 1) for series in range(sent.series)]


async def exchange(gateway: InProcessGateway, number: int, sent: SentRequest) -> Answer | None:
    body = body_of(*series_of(number, sent), *([BAD] if sent.has_invalid else []))
    answer = asyncio.create_task(gateway.write(body))
    if sent.fate == "client-gone":
        await asyncio.sleep(0.001 * (number % 3))
        answer.cancel()
    try:
        return await answer
    except asyncio.CancelledError:
        return None


def settle(gateway: InProcessGateway, requests: list[SentRequest], *, late: bool) -> None:
    """Settle the held batches, the newest first, since Kafka may answer in any order."""
    for batch in reversed(list(gateway.producer.held)):
        ((_, _, samples), *_) = decoded({0: [batch.records[0].value]})
        sent = requests[samples[0][0] - 1]
        if sent.fate == "late" and not late:
            continue
        if sent.fate == "fail":
            batch.fail(min(sent.delivered, len(batch.records) - 1))
        else:
            batch.deliver()


async def send_and_check(requests: list[SentRequest], room: int) -> None:
    options = GatewayOptions(timeout_s=0.05, max_in_flight=room)
    async with serving(options, partitions=PARTITIONS) as gateway:
        gateway.producer.holding = True
        answers_of_all = asyncio.gather(*(exchange(gateway, number, sent) for number, sent in enumerate(requests)))
        while not answers_of_all.done():
            settle(gateway, requests, late=False)
            await asyncio.sleep(0.002)
        answers = await answers_of_all
        check(gateway, requests, answers)
        async with asyncio.timeout(60):
            while gateway.gateway.figures().in_flight_bytes or gateway.producer.held:
                settle(gateway, requests, late=True)
                await asyncio.sleep(0.002)


def check(gateway: InProcessGateway, requests: list[SentRequest], answers: list[Answer | None]) -> None:
    stored = gateway.written()
    for number, (sent, answer) in enumerate(zip(requests, answers, strict=True)):
        if answer is None:
            continue
        assert answer.status in {204, 400, 503}
        assert (answer.status == 503) == ("Retry-After" in answer.headers)
        if answer.status == 204:
            assert not sent.has_invalid
        elif answer.status == 400:
            assert sent.has_invalid
        else:
            continue
        expected = decoded({0: [body_of(*series_of(number, sent))]})
        for _, labels, samples in expected:
            assert (partition_of(labels, PARTITIONS), labels, samples) in stored
    for partition, labels, _ in stored:
        assert partition == partition_of(labels, PARTITIONS)


@settings(max_examples=40)
@given(st.lists(REQUESTS, min_size=1, max_size=8), st.sampled_from([2 << 10, 8 << 10, 1 << 20]))
def test_success_means_that_all_valid_series_are_in_the_log_and_none_is_in_flight(
    requests: list[SentRequest], room: int
) -> None:
    in_loop(send_and_check(requests, room))
