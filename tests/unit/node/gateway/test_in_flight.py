"""The limit of bytes in flight, and its queue."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.gateway.in_flight import InFlight, NoRoom, Reservation
from support.http_servers import in_loop

pytestmark = pytest.mark.unit

LONG = 60.0


def run(test: Callable[[], Awaitable[None]]) -> None:
    in_loop(test())


async def reserve_later(room: InFlight, size: int, timeout: float = LONG) -> "asyncio.Task[Reservation]":
    task = asyncio.create_task(room.reserve(size, timeout))
    await asyncio.sleep(0)
    return task


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_room_is_reserved_immediately_and_released_once() -> None:
    async def test() -> None:
        room = InFlight(100)
        reservation = await room.reserve(60, LONG)
        two = await room.reserve(40, LONG)
        assert room.used == 100
        reservation.release()
        reservation.release()
        assert room.used == 40
        two.release()
        assert room.used == 0

    run(test)


def test_waiting_requests_are_admitted_in_order() -> None:
    async def test() -> None:
        room = InFlight(100)
        first = await room.reserve(90, LONG)
        large, small = await reserve_later(room, 50), await reserve_later(room, 5)
        await settle()
        # There would be room for the small request, which came later.
        assert not small.done()
        assert room.waiting == 2
        first.release()
        await settle()
        assert large.done()
        assert small.done()
        assert room.used == 55

    run(test)


def test_a_request_larger_than_the_limit_is_admitted_alone() -> None:
    async def test() -> None:
        room = InFlight(100)
        other = await room.reserve(1, LONG)
        giant = await reserve_later(room, 500)
        await settle()
        assert not giant.done()
        other.release()
        (await giant).release()
        assert room.used == 0

    run(test)


def test_a_request_that_waits_too_long_leaves_the_queue_and_the_next_ones_move_up() -> None:
    async def test() -> None:
        room = InFlight(100)
        await room.reserve(90, LONG)
        large, small = await reserve_later(room, 50, timeout=0.01), await reserve_later(room, 10)
        with pytest.raises(NoRoom):
            await large
        await settle()
        assert small.done()
        assert (room.used, room.waiting) == (100, 0)

    run(test)


def test_a_cancelled_request_leaves_the_queue() -> None:
    async def test() -> None:
        room = InFlight(100)
        first = await room.reserve(100, LONG)
        waiting, next_one = await reserve_later(room, 100), await reserve_later(room, 100)
        waiting.cancel()
        await settle()
        assert room.waiting == 1
        first.release()
        (await next_one).release()
        assert (room.used, room.waiting) == (0, 0)

    run(test)


def test_a_request_that_is_admitted_while_it_is_cancelled_releases_its_room() -> None:
    async def test() -> None:
        room = InFlight(100)
        first = await room.reserve(100, LONG)
        waiting = await reserve_later(room, 100)
        first.release()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (room.used, room.waiting) == (0, 0)

    run(test)


def test_a_request_that_is_cancelled_while_room_is_released_is_passed_over() -> None:
    async def test() -> None:
        room = InFlight(100)
        first = await room.reserve(100, LONG)
        waiting, next_one = await reserve_later(room, 100), await reserve_later(room, 30)
        waiting.cancel()
        first.release()
        await settle()
        assert next_one.done()
        assert (room.used, room.waiting) == (30, 0)

    run(test)


def test_an_estimate_is_corrected_in_either_direction() -> None:
    async def test() -> None:
        room = InFlight(100)
        reservation = await room.reserve(80, LONG)
        waiting = await reserve_later(room, 60)
        reservation.resize(40)
        await settle()
        assert waiting.done()
        reservation.resize(70)
        assert room.used == 130
        (await waiting).release()
        reservation.release()
        assert room.used == 0

    run(test)


class TestBodiesThatArrive:
    def test_a_reservation_grows_with_the_bytes_that_arrive(self) -> None:
        async def test() -> None:
            room = InFlight(100)
            reservation = await room.reserve(10, LONG)
            for size in (20, 30):
                await reservation.grow(size, LONG)
            assert room.used == 60
            reservation.resize(25)
            assert room.used == 25
            reservation.release()
            assert room.used == 0

        run(test)

    def test_the_oldest_gets_room_even_if_other_partial_requests_have_all_of_it(self) -> None:
        async def test() -> None:
            room = InFlight(100)
            oldest, other = await room.reserve(50, LONG), await room.reserve(50, LONG)
            waiting = await grow_later(other, 10)
            await oldest.grow(200, LONG)
            await settle()
            assert not waiting.done()
            assert room.used == 300
            # It is complete, so that the other one is the oldest; but complete requests have to be released first.
            oldest.resize(250)
            await settle()
            assert not waiting.done()
            oldest.release()
            await settle()
            assert waiting.done()
            assert room.used == 60

        run(test)

    def test_while_complete_requests_wait_for_kafka_the_limit_is_exceeded_by_at_most_one_request(self) -> None:
        """For any number of arriving requests, each of which becomes the oldest at some time."""

        async def receive_body(room: InFlight, complete: list[Reservation]) -> None:
            reservation = await room.reserve(1, LONG)
            for _ in range(8):
                await reservation.grow(10, LONG)
                assert room.used <= 100 + 81
            reservation.resize(81)
            complete.append(reservation)

        async def test() -> None:
            room, complete = InFlight(100), list[Reservation]()
            tasks = [asyncio.create_task(receive_body(room, complete)) for _ in range(50)]
            for count in range(50):
                while len(complete) <= count:
                    await asyncio.sleep(0)
                await settle()
                assert room.used <= 100 + 81
                complete[count].release()
            await asyncio.gather(*tasks)
            assert (room.used, room.waiting) == (0, 0)

        run(test)

    def test_the_oldest_is_not_blocked_by_requests_before_it_in_the_queue(self) -> None:
        async def test() -> None:
            room = InFlight(100)
            oldest = await room.reserve(10, LONG)
            arrived = await room.reserve(70, LONG)
            arrived.resize(70)
            newcomer = await reserve_later(room, 50)
            await oldest.grow(20, 0.01)
            waiting = await grow_later(oldest, 20)
            assert (newcomer.done(), waiting.done()) == (False, False)
            arrived.resize(40)
            await settle()
            assert (newcomer.done(), waiting.done(), room.used) == (False, True, 90)

        run(test)

    def test_bodies_that_have_arrived_in_part_do_not_block_each_other(self) -> None:
        """Together they exceed the limit. Each is admitted, in the order of arrival."""

        async def receive_body(room: InFlight, name: int, ended: list[int]) -> None:
            reservation = await room.reserve(10, LONG)
            for _ in range(9):
                await reservation.grow(10, LONG)
                await asyncio.sleep(0)
            ended.append(name)
            reservation.release()

        async def test() -> None:
            room, ended = InFlight(100), list[int]()
            await asyncio.gather(*(receive_body(room, name, ended) for name in range(20)))
            assert ended == list(range(20))
            assert (room.used, room.waiting) == (0, 0)

        run(test)

    def test_a_growing_body_waits_behind_a_request_that_queued_earlier(self) -> None:
        async def test() -> None:
            room = InFlight(100)
            arrived = await room.reserve(60, LONG)
            arrived.resize(60)
            oldest, growing = await room.reserve(10, LONG), await room.reserve(10, LONG)
            newcomer = await reserve_later(room, 50)
            waiting = await grow_later(growing, 10)
            await settle()
            # There would be room for the ten bytes.
            assert (newcomer.done(), waiting.done(), room.waiting) == (False, False, 2)
            arrived.release()
            await settle()
            assert (newcomer.done(), waiting.done(), room.used) == (True, True, 80)
            oldest.release()

        run(test)

    def test_a_body_that_waits_too_long_keeps_its_reservation_and_the_next_ones_move_up(self) -> None:
        async def test() -> None:
            room = InFlight(100)
            await room.reserve(50, LONG)
            other = await room.reserve(40, LONG)
            large, small = await grow_later(other, 50, timeout=0.01), await reserve_later(room, 10)
            with pytest.raises(NoRoom):
                await large
            await settle()
            assert small.done()
            assert (room.used, room.waiting) == (100, 0)
            other.release()
            assert room.used == 60

        run(test)

    def test_a_client_that_disconnects_while_it_waits_releases_all_of_its_room(self) -> None:
        async def test() -> None:
            room = InFlight(100)
            oldest, other = await room.reserve(50, LONG), await room.reserve(50, LONG)
            waiting = await grow_later(other, 30)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            other.release()
            assert (room.used, room.waiting) == (50, 0)
            oldest.release()
            assert room.used == 0

        run(test)

    def test_a_request_that_is_admitted_while_it_is_cancelled_releases_all_of_its_room(self) -> None:
        async def test() -> None:
            room = InFlight(100)
            oldest, other = await room.reserve(50, LONG), await room.reserve(50, LONG)
            waiting = await grow_later(other, 30)
            oldest.release()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            other.release()
            assert (room.used, room.waiting) == (0, 0)

        run(test)

    def test_when_the_oldest_is_cancelled_the_next_one_gets_room(self) -> None:
        async def test() -> None:
            room = InFlight(100)
            oldest, second, third = [await room.reserve(33, LONG) for _ in range(3)]
            waiting, behind = await grow_later(second, 40), await grow_later(third, 40)
            oldest.release()
            await settle()
            assert (waiting.done(), behind.done(), room.used) == (True, False, 33 + 33 + 40)
            second.release()
            await settle()
            assert (behind.done(), room.used) == (True, 33 + 40)

        run(test)


async def grow_later(reservation: Reservation, size: int, timeout: float = LONG) -> "asyncio.Task[None]":
    task = asyncio.create_task(reservation.grow(size, timeout))
    await asyncio.sleep(0)
    return task


@given(
    st.lists(st.lists(st.integers(1, 60), min_size=1, max_size=6), min_size=1, max_size=12),
    st.lists(st.integers(0, 100), max_size=12),
)
def test_all_room_is_released_whatever_arrives_or_is_cancelled(
    bodies: list[list[int]], cancellations: list[int]
) -> None:
    async def receive_body(room: InFlight, body: list[int]) -> None:
        reservation = await room.reserve(1, LONG)
        try:
            for size in body:
                await reservation.grow(size, LONG)
                assert room.used <= 100 + 1 + max(map(sum, bodies))
                await asyncio.sleep(0)
            reservation.resize(sum(body) // 2)
            await asyncio.sleep(0)
        finally:
            reservation.release()

    async def test() -> None:
        room = InFlight(100)
        tasks = [asyncio.create_task(receive_body(room, body)) for body in bodies]
        for number in cancellations:
            for _ in range(number % 7):
                await asyncio.sleep(0)
            tasks[number % len(tasks)].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [result for result in results if isinstance(result, Exception)] == []
        assert (room.used, room.waiting) == (0, 0)

    run(test)


@given(st.lists(st.tuples(st.integers(1, 150), st.sampled_from(["take", "release", "cancel"])), max_size=60))
def test_the_used_room_stays_within_the_limit_and_is_released(steps: list[tuple[int, str]]) -> None:
    async def test() -> None:
        room = InFlight(100)
        tasks: list[asyncio.Task[Reservation]] = []
        for size, action in steps:
            if action == "take":
                tasks.append(await reserve_later(room, size))
            elif tasks:
                task = tasks.pop(size % len(tasks))
                if action == "cancel" or not task.done():
                    task.cancel()
                if task.done() and not task.cancelled():
                    task.result().release()
            holders = [task.result()._size for task in tasks if task.done()]
            assert room.used <= 100 or len(holders) <= 1
            await settle()
        for task in tasks:
            task.cancel()
        await settle()
        for task in tasks:
            if not task.cancelled():
                task.result().release()
        await settle()
        assert (room.used, room.waiting) == (0, 0)

    run(test)
