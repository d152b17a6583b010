"""Which records count as checked, by their headers."""

import pytest

from strandline.wire.record_headers import CHECKED_HEADERS, TIMES_CHECKED, TIMES_HEADER, are_times_checked

pytestmark = pytest.mark.unit


def test_a_record_that_was_produced_as_checked_counts_as_checked_beside_other_headers() -> None:
    assert are_times_checked(CHECKED_HEADERS)
    assert are_times_checked([("trace", b"1"), *CHECKED_HEADERS])


@pytest.mark.parametrize(
    "headers",
    [None, [], [("trace", b"1")], [(TIMES_HEADER, b"")], [(TIMES_HEADER, None)], [("other", TIMES_CHECKED)]],
)
def test_no_other_header_exempts_samples_from_the_limits(headers: list[tuple[str, bytes | None]] | None) -> None:
    assert not are_times_checked(headers)
