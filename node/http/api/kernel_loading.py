"""Compiles the kernels of answers, or loads them from numba's cache, before a client waits for them."""

import numpy as np

from strandline.index.key_bytes import KeyBytes
from strandline.node.http.api.json_pieces import (
    Points,
    matrix_json,
    scalar_json,
    series_json,
    string_json,
    terms_json,
    vector_json,
)
from strandline.node.query.answer_merging import merge_samples_answers, merge_series, merge_terms
from strandline.node.query.answer_messages import answer_message, answer_of
from strandline.node.query.answers import SamplesAnswer, SeriesAnswer, TermsAnswer
from strandline.node.query.frames import decode_frame, encode_joined
from strandline.promql import kernel_loading as promql_kernels


def load_kernels() -> None:
    """Load the kernels that answers call. May take seconds, so it must not run in an event loop."""
    offsets, data, one = np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.uint8), np.ones(1, dtype=np.int64)
    samples = SamplesAnswer(KeyBytes(offsets, data), np.array([0, 1]), one, np.ones(1))
    points = Points(samples.keys, np.array([0, 1]), one, np.ones(1, dtype=np.uint64))
    for made in (
        series_json(samples.keys),
        vector_json(points, 1),
        matrix_json(points),
        scalar_json(1, 1.0),
        string_json(1, ""),
    ):
        b"".join(made)
    terms, series = TermsAnswer(offsets, data, one, more=False), SeriesAnswer(samples.keys, more=False)
    b"".join(terms_json(terms))
    for answer in (series, terms, samples):
        answer_of(decode_frame(bytearray(encode_joined(answer_message(answer)))))
    # The merging of several shards.
    merge_terms([terms, terms], 1)
    merge_series([series, series], 1)
    merge_samples_answers([samples, samples])
    promql_kernels.load_kernels()
