"""Answers of look-ups as they come from a shard, and where they come from: what is not one is refused."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.query.frames import PLAIN_MAGIC, PREFIX, FrameDamaged, frame_size
from strandline.node.query.plain_lookups import DECLINED, FewJson, answer_in, lookups_path
from strandline.node.supervisor.socket_folder import socket_path

pytestmark = pytest.mark.unit

FOUND = FewJson(2, b'["a","b"]')


def frame_of(answer: FewJson) -> bytes:
    body = struct.pack("<I", answer.series) + answer.text
    return PREFIX.pack(PLAIN_MAGIC, 0, len(body)) + body


def changed(place: int, form: str, value: bytes | int) -> bytes:
    """A sound answer, but for one number in its prefix."""
    frame = bytearray(frame_of(FOUND))
    struct.pack_into(form, frame, place, value)
    return bytes(frame)


@given(st.integers(0, 2**32 - 1), st.binary(max_size=40))
def test_an_answer_is_read_as_it_was_written(series: int, text: bytes) -> None:
    frame = frame_of(FewJson(series, text))
    assert frame_size(frame) == len(frame), "whoever receives it knows when it is whole"
    assert answer_in(frame) == FewJson(series, text)


@pytest.mark.parametrize("cut", range(len(frame_of(FOUND))))
def test_one_that_is_cut_off_is_refused(cut: int) -> None:
    with pytest.raises(FrameDamaged):
        answer_in(frame_of(FOUND)[:cut])


@pytest.mark.parametrize(
    "frame",
    [
        frame_of(FOUND) + b"x",
        changed(0, "4s", b"SLQ1"),
        changed(0, "4s", b"HTTP"),
        changed(4, "<I", 1),
        changed(8, "<Q", 4 + len(FOUND.text) - 1),
        changed(8, "<Q", 2**64 - 1),
        PREFIX.pack(PLAIN_MAGIC, 0, 3) + b"abc",
        PREFIX.pack(PLAIN_MAGIC, 4, 0) + b"abcd",
    ],
)
def test_one_that_is_not_what_it_says_is_refused(frame: bytes) -> None:
    with pytest.raises(FrameDamaged):
        answer_in(frame)


@given(st.binary(max_size=40))
def test_whatever_else_comes_is_refused_and_nothing_worse(data: bytes) -> None:
    try:
        found = answer_in(data)
    except FrameDamaged:
        return
    assert frame_of(found) == data


def test_a_shard_that_declines_is_known_by_what_it_says_and_has_given_no_answer() -> None:
    """Not even an empty one: a list without anything in it is an answer."""
    assert frame_size(DECLINED) == len(DECLINED)
    assert frame_of(FewJson(0, b"")) != DECLINED
    with pytest.raises(FrameDamaged):
        answer_in(DECLINED)


def test_each_shard_answers_look_ups_beside_its_link_and_at_a_place_of_its_own() -> None:
    links = [socket_path(Path("/run/strandline"), shard) for shard in range(200)]
    beside = [lookups_path(link) for link in links]
    assert {one.parent for one in beside} == {Path("/run/strandline")}
    assert len({*links, *beside}) == 2 * len(links)
