import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.wire.encoding import Series, encode_request
from support.remote_write import WriteRequest

pytestmark = pytest.mark.unit

LABELS = st.lists(st.tuples(st.text(max_size=200), st.text(max_size=200)), max_size=4)
TIMES = st.integers(min_value=-(2**63), max_value=2**63 - 1)
SAMPLES = st.lists(st.tuples(TIMES, st.floats(width=64)), max_size=4)
SERIES = st.builds(Series, LABELS, SAMPLES)


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


@given(st.lists(SERIES, max_size=4))
def test_the_official_implementation_reads_back_what_was_encoded(series: list[Series]) -> None:
    decoded = WriteRequest.FromString(encode_request(series))
    assert [[(label.name, label.value) for label in timeseries.labels] for timeseries in decoded.timeseries] == [
        list(labels_and_samples.labels) for labels_and_samples in series
    ]
    assert [
        [(sample.timestamp, bits(sample.value)) for sample in timeseries.samples] for timeseries in decoded.timeseries
    ] == [[(time, bits(value)) for time, value in labels_and_samples.samples] for labels_and_samples in series]
