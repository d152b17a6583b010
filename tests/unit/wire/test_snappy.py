import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.wire.snappy import BadBlock, compress, decompress, unpacked_length
from support.capture import captured_bodies
from support.remote_write import WriteRequest

pytestmark = pytest.mark.unit


@given(st.binary(max_size=5000))
def test_compressed_data_is_decompressed_unchanged(data: bytes) -> None:
    assert decompress(compress(data), limit=5000) == data
    assert unpacked_length(compress(data), limit=5000) == len(data)


def test_bodies_of_a_real_prometheus_decompress_to_write_requests() -> None:
    bodies = captured_bodies()
    assert len(bodies) == 40
    for body in bodies:
        assert len(WriteRequest.FromString(decompress(body, limit=10_000_000)).timeseries) > 0


def test_a_block_over_the_limit_is_refused_by_its_header_alone() -> None:
    bomb = b"\xff\xff\xff\xff\x0f" + b"\x00" * 10  # promises 4 GiB
    with pytest.raises(BadBlock, match="4294967295, over the limit of 1000"):
        decompress(bomb, limit=1000)
    assert decompress(compress(b"x" * 1000), limit=1000) == b"x" * 1000
    with pytest.raises(BadBlock, match="over the limit of 1000"):
        decompress(compress(b"x" * 1001), limit=1000)


@pytest.mark.parametrize("block", [b"", b"\x80", b"\xff\xff\xff\xff\xff", b"\xff\xff\xff\xff\x1f\x00", b"\x05\x10ab"])
def test_an_invalid_block_is_refused(block: bytes) -> None:
    with pytest.raises(BadBlock, match=f"a snappy block of {len(block)} bytes"):
        decompress(block, limit=1 << 33)


@given(st.binary(max_size=300))
def test_any_bytes_are_either_decompressed_or_refused(block: bytes) -> None:
    try:
        data = decompress(block, limit=100_000)
    except BadBlock:
        return
    assert len(data) == unpacked_length(block, limit=100_000)
