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
    by_key = {sample[:3]: sample[3] for sample in stored}
    sent_samples = last_of_each(columns(sent))
    keys = list(zip(sent_samples.low.tolist(), sent_samples.high.tolist(), sent_samples.time.tolist(), strict=True))
    assert dict(zip(keys, sent_samples.bits.tolist(), strict=True)) == wanted
    found = compare(sent_samples, columns([(*key, bits) for key, bits in by_key.items()]))
    assert {keys[row] for row in found.missing} == wanted.keys() - by_key.keys()
    assert {keys[row]: int(bits) for row, bits in zip(found.different, found.found_bits, strict=True)} == {
        key: by_key[key] for key in wanted.keys() & by_key.keys() if by_key[key] != wanted[key]
    }
