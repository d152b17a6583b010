"""Comparing the gateway's clock with the brokers', and the responses while they disagree."""

import asyncio

import pytest

from strandline.clock import ManualClock, SystemClock
from strandline.index.sample_limits import SampleLimits
from strandline.node.gateway.broker_clock import (
    TOLERANCE_MS,
    BrokerClock,
    Comparison,
    OwnTime,
    described,
    difference_ms,
)
from strandline.node.gateway.figures import Outcome
from strandline.node.gateway.options import GatewayOptions
from strandline.wire.encoding import Series
from support.gateways import InProcessGateway, body_of, serving, up
from support.http_servers import in_loop

pytestmark = pytest.mark.unit

MINUTE = 60_000
NOW = 1_790_000_000_000
SENT = OwnTime(NOW, 0.0)
LIMITED = GatewayOptions(sample_limits=SampleLimits(behind=30 * MINUTE, ahead=10 * MINUTE))


@pytest.mark.parametrize(
    ("at_broker", "difference"),
    [(NOW, 0), (NOW + 500_000, 0), (NOW + 250_000, 0), (NOW - 1, -1), (NOW + 500_001, 1), (0, -NOW)],
)
def test_a_broker_agrees_if_its_time_is_between_sending_and_acknowledgement(at_broker: int, difference: int) -> None:
    """A delivery that takes minutes does not mean that a clock is wrong."""
    assert difference_ms(NOW, at_broker, NOW + 500_000) == difference


def test_clocks_that_disagree_past_the_tolerance_may_agree_with_the_next_comparison() -> None:
    clock = ManualClock(NOW)
    compared = BrokerClock(clock)
    assert compared.newest is None
    for difference in (TOLERANCE_MS, -TOLERANCE_MS):
        compared.acknowledged(SENT, NOW + difference)
        assert compared.newest == Comparison(difference, SENT)
        assert not compared.newest.disagrees
    for difference in (TOLERANCE_MS + 1, -TOLERANCE_MS - 1):
        compared.acknowledged(SENT, NOW + difference)
        assert compared.newest.disagrees
    compared.acknowledged(SENT, NOW)
    assert not compared.newest.disagrees


def test_a_comparison_is_fresh_for_a_minute() -> None:
    clock = ManualClock(NOW)
    compared = BrokerClock(clock)
    assert not compared.is_compared(compared.now())
    compared.acknowledged(SENT, None)
    clock.sleep(59)
    assert compared.is_compared(compared.now())
    clock.sleep(1)
    assert not compared.is_compared(compared.now())


@pytest.mark.parametrize("leap", [-60 * MINUTE, -2_000, 2_000, 60 * MINUTE])
def test_a_clock_step_while_a_record_is_in_flight_invalidates_its_comparison(leap: int) -> None:
    compared = BrokerClock(ManualClock(NOW))
    compared.acknowledged(OwnTime(NOW - leap, 0.0), NOW)
    assert compared.newest is None


@pytest.mark.parametrize("leap", [-60 * MINUTE, -2_000, 2_000, 60 * MINUTE])
def test_a_comparison_is_invalid_after_a_clock_step(leap: int) -> None:
    compared = BrokerClock(ManualClock(NOW))
    compared.acknowledged(SENT, NOW)
    assert not compared.disagreement(OwnTime(NOW + 20_000, 20.0))
    leapt = OwnTime(NOW + 20_000 + leap, 20.0)
    assert not compared.is_compared(leapt)
    assert "leapt" in compared.disagreement(leapt)


def test_a_topic_with_producers_times_allows_no_comparison() -> None:
    compared = BrokerClock(ManualClock(NOW))
    compared.acknowledged(SENT, None)
    assert compared.newest == Comparison(None, SENT)
    assert not compared.newest.disagrees


def test_the_description_names_the_clock_that_is_ahead() -> None:
    assert described(Comparison(900_500, SENT)) == "the gateway's clock is 900 s behind Kafka's"
    assert described(Comparison(-61_000, SENT)) == "the gateway's clock is 61 s ahead of Kafka's"


class WrongClock(SystemClock):
    """A clock that is wrong by `wrong_by` milliseconds. Tests advance its monotonic time with `later_s`."""

    def __init__(self, error_ms: int) -> None:
        self.error_ms, self.later_s = error_ms, 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.later_s

    def now_ms(self) -> int:
        return super().now_ms() + self.error_ms


def outcomes(gateway: InProcessGateway) -> dict[Outcome, int]:
    return {outcome: count for outcome, count in gateway.gateway.figures().requests.items() if count}


@pytest.mark.parametrize(("error_ms", "words"), [(-15 * MINUTE, "behind"), (3 * 60 * MINUTE, "ahead of")])
def test_samples_out_of_range_by_a_wrong_clock_get_503_and_are_accepted_once_it_is_right(
    error_ms: int, words: str
) -> None:
    async def test() -> None:
        clock = WrongClock(error_ms)
        async with serving(LIMITED, clock=clock) as gateway:
            body = body_of(up(1, time=SystemClock().now_ms()))
            # The first request: there was no comparison yet.
            answer = await gateway.write(body)
            assert answer.status == 503
            assert words in answer.text
            assert "time synchronisation" in answer.text
            assert int(answer.headers["Retry-After"]) > 0
            assert gateway.written() == []
            figures = gateway.gateway.figures()
            assert figures.dropped_series == {}, "no sample is lost"
            assert abs(figures.clock_difference_ms + error_ms) < 10_000
            clock.error_ms = 0
            assert (await gateway.write(body)).status == 204
            assert len(gateway.written()) == 1
            assert gateway.gateway.figures().clock_difference_ms == 0
            assert outcomes(gateway) == {Outcome.CLOCKS_DISAGREE: 1, Outcome.WRITTEN: 1}

    in_loop(test())


@pytest.mark.parametrize("leap", [-15 * MINUTE, 3 * 60 * MINUTE])
def test_a_clock_that_steps_after_its_comparison_drops_no_samples(leap: int) -> None:
    async def test() -> None:
        clock = WrongClock(0)
        async with serving(LIMITED, clock=clock) as gateway:
            body = body_of(up(1, time=SystemClock().now_ms()))
            assert (await gateway.write(body)).status == 204
            clock.error_ms = leap
            assert (await gateway.write(body)).status == 503
            # A comparison from the time when the clock was wrong does not count, either.
            clock.error_ms = 0
            old = body_of(up(1, time=SystemClock().now_ms() - 60 * MINUTE))
            assert (await gateway.write(old)).status == 400

    in_loop(test())


@pytest.mark.parametrize("leap", [-15 * MINUTE, 3 * 60 * MINUTE])
def test_a_clock_that_is_wrong_only_while_a_request_is_checked_drops_no_samples(leap: int) -> None:
    async def test() -> None:
        clock = WrongClock(0)
        async with serving(LIMITED, clock=clock) as gateway:
            now = SystemClock().now_ms()
            assert (await gateway.write(body_of(up(1, time=now)))).status == 204
            gateway.producer.holding = True
            clock.error_ms = leap
            timely = now + leap
            writing = asyncio.ensure_future(gateway.write(body_of(up(1, time=now), up(2, time=timely))))
            while not gateway.producer.held:
                await asyncio.sleep(0)
            clock.error_ms = 0
            gateway.producer.held[0].deliver()
            answer = await writing
            assert answer.status == 503
            assert "leapt" in answer.text

    in_loop(test())


def test_a_request_out_of_range_by_a_right_clock_is_refused_once_the_clocks_were_compared() -> None:
    async def test() -> None:
        async with serving(LIMITED) as gateway:
            old = body_of(up(1, time=SystemClock().now_ms() - 60 * MINUTE))
            for _ in range(3):
                assert (await gateway.write(old)).status == 400
            assert gateway.written() == []
            records = [value for values in gateway.producer.log.values() for value in values]
            assert records == [b"\x00"], "one empty record, to get a timestamp from Kafka"
            figures = gateway.gateway.figures()
            assert figures.dropped_series == {"too-old": 3}
            assert (figures.records, figures.in_flight_bytes) == (0, 0)

    in_loop(test())


def test_an_old_agreement_of_clocks_is_checked_again_before_samples_are_dropped() -> None:
    async def test() -> None:
        clock = WrongClock(0)
        async with serving(LIMITED, clock=clock) as gateway:
            assert (await gateway.write(body_of(up(1, time=SystemClock().now_ms())))).status == 204
            clock.error_ms, clock.later_s = 3 * 60 * MINUTE, 120.0
            assert (await gateway.write(body_of(up(2, time=SystemClock().now_ms())))).status == 503
            assert outcomes(gateway) == {Outcome.CLOCKS_DISAGREE: 1, Outcome.WRITTEN: 1}

    in_loop(test())


def test_samples_in_range_by_a_wrong_clock_are_written_and_the_request_gets_503() -> None:
    async def test() -> None:
        async with serving(LIMITED, clock=WrongClock(-15 * MINUTE)) as gateway:
            now = SystemClock().now_ms()
            answer = await gateway.write(body_of(up(1, time=now), up(2, time=now - 10 * MINUTE)))
            assert answer.status == 503
            assert "the other 1 are written" in answer.text
            assert len(gateway.written()) == 1

    in_loop(test())


def test_invalid_series_are_refused_regardless_of_the_clocks() -> None:
    async def test() -> None:
        async with serving(LIMITED, clock=WrongClock(-15 * MINUTE)) as gateway:
            timely = SystemClock().now_ms() - 10 * MINUTE
            answer = await gateway.write(body_of(up(1, time=timely), Series([("", "x")], [(timely, 1.0)])))
            assert answer.status == 400
            assert outcomes(gateway) == {Outcome.PARTLY_WRITTEN: 1}

    in_loop(test())


def test_kafka_is_unavailable_if_the_clocks_can_not_be_compared() -> None:
    async def test() -> None:
        async with serving(GatewayOptions(sample_limits=LIMITED.sample_limits, timeout_s=0.2)) as gateway:
            gateway.producer.holding = True
            answer = await gateway.write(body_of(up(1, time=1)))
            assert answer.status == 503
            assert outcomes(gateway) == {Outcome.KAFKA_UNAVAILABLE: 1}
            gateway.producer.held[0].deliver()

    in_loop(test())
