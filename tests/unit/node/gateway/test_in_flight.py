"""Room for what waits for Kafka, and the line in front of it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.gateway.in_flight import InFlight, NoRoom, Reservation

pytestmark = pytest.mark.unit

LONG = 60.0


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())


async def in_line(room: InFlight, size: int, timeout: float = LONG) -> "asyncio.Task[Reservation]":
    task = asyncio.create_task(room.reserve(size, timeout))
    await asyncio.sleep(0)
    return task


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_room_is_taken_at_once_and_given_back_once() -> None:
    async def test() -> None:
        room = InFlight(100)
        one = await room.reserve(60, LONG)
        two = await room.reserve(40, LONG)
        assert room.used == 100
        one.release()
        one.release()
        assert room.used == 40
        two.release()
        assert room.used == 0

    run(test)


def test_those_who_wait_are_let_in_in_their_order_and_none_overtakes() -> None:
    async def test() -> None:
        room = InFlight(100)
        first = await room.reserve(90, LONG)
        large, small = await in_line(room, 50), await in_line(room, 5)
        await settle()
        # There would be room for the small one, which came later.
        assert not small.done()
        assert room.waiting == 2
        first.release()
        await settle()
        assert large.done()
        assert small.done()
        assert room.used == 55

    run(test)


def test_what_is_larger_than_all_the_room_gets_in_alone() -> None:
    async def test() -> None:
        room = InFlight(100)
        other = await room.reserve(1, LONG)
        giant = await in_line(room, 500)
        await settle()
        assert not giant.done()
        other.release()
        (await giant).release()
        assert room.used == 0

    run(test)


def test_whoever_waits_too_long_goes_and_those_behind_move_up() -> None:
    async def test() -> None:
        room = InFlight(100)
        await room.reserve(90, LONG)
        large, small = await in_line(room, 50, timeout=0.01), await in_line(room, 10)
        with pytest.raises(NoRoom):
            await large
        await settle()
        assert small.done()
        assert (room.used, room.waiting) == (100, 0)

    run(test)


def test_whoever_goes_away_leaves_nothing_behind() -> None:
    async def test() -> None:
        room = InFlight(100)
        first = await room.reserve(100, LONG)
        waiting, next_one = await in_line(room, 100), await in_line(room, 100)
        waiting.cancel()
        await settle()
        assert room.waiting == 1
        first.release()
        (await next_one).release()
        assert (room.used, room.waiting) == (0, 0)

    run(test)


def test_one_that_is_let_in_while_it_goes_away_gives_its_room_back() -> None:
    async def test() -> None:
        room = InFlight(100)
        first = await room.reserve(100, LONG)
        waiting = await in_line(room, 100)
        first.release()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (room.used, room.waiting) == (0, 0)

    run(test)


def test_one_that_goes_away_while_room_is_made_is_passed_over() -> None:
    async def test() -> None:
        room = InFlight(100)
        first = await room.reserve(100, LONG)
        waiting, next_one = await in_line(room, 100), await in_line(room, 30)
        waiting.cancel()
        first.release()
        await settle()
        assert next_one.done()
        assert (room.used, room.waiting) == (30, 0)

    run(test)


def test_an_estimate_is_put_right_in_either_direction() -> None:
    async def test() -> None:
        room = InFlight(100)
        one = await room.reserve(80, LONG)
        waiting = await in_line(room, 60)
        one.resize(40)
        await settle()
        assert waiting.done()
        one.resize(70)
        assert room.used == 130
        (await waiting).release()
        one.release()
        assert room.used == 0

    run(test)


@given(st.lists(st.tuples(st.integers(1, 150), st.sampled_from(["take", "release", "cancel"])), max_size=60))
def test_what_is_used_stays_within_the_limit_and_comes_back(steps: list[tuple[int, str]]) -> None:
    async def test() -> None:
        room = InFlight(100)
        tasks: list[asyncio.Task[Reservation]] = []
        for size, what in steps:
            if what == "take":
                tasks.append(await in_line(room, size))
            elif tasks:
                task = tasks.pop(size % len(tasks))
                if what == "cancel" or not task.done():
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
