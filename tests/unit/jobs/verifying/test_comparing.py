"""Sent and found samples, compared with a model in plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.jobs.verifying.comparing import KeyedSamples, compare, last_of_each

pytestmark = pytest.mark.unit

# Few values each, so that samples agree in some or all columns.
SAMPLES = st.lists(st.tuples(*(st.integers(0, 2) for _ in range(4))), max_size=20)
Sample = tuple[int, int, int, int]


def columns(samples: list[Sample]) -> KeyedSamples:
    low, high, time, bits = np.array(samples, dtype=np.int64).reshape(-1, 4).T
    return KeyedSamples(low.astype(np.uint64), high.astype(np.uint64), time, bits.astype(np.uint64))


@given(SAMPLES, SAMPLES)
def test_each_sample_that_was_sent_is_found_missing_or_different(sent: list[Sample], stored: list[Sample]) -> None:
    wanted = {sample[:3]: sample[3] for sample in sent}
    there = {sample[:3]: sample[3] for sample in stored}
    mine = last_of_each(columns(sent))
    place = list(zip(mine.low.tolist(), mine.high.tolist(), mine.time.tolist(), strict=True))
    assert dict(zip(place, mine.bits.tolist(), strict=True)) == wanted
    found = compare(mine, columns([(*key, bits) for key, bits in there.items()]))
    assert {place[row] for row in found.missing} == wanted.keys() - there.keys()
    assert {place[row]: int(bits) for row, bits in zip(found.different, found.found_bits, strict=True)} == {
        key: there[key] for key in wanted.keys() & there.keys() if there[key] != wanted[key]
    }
