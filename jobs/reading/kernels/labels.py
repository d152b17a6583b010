"""Part keys with the metric first, and the labels in them. The encoding is that of `strandline.index.documents`."""

import numpy as np
from numba import njit

from strandline.kernels.machine import load_u64
from strandline.wire.kernels.labels import METRIC_NAME

NAME_BYTES = 8


@njit(cache=True, nogil=True, inline="always")
def _length(data, at):
    return np.int64(data[at]) | np.int64(data[at + 1]) << 8


@njit(cache=True, nogil=True, inline="always")
def _is_metric(data, base, at, length):
    return length == NAME_BYTES and load_u64(base + at) == METRIC_NAME


@njit(cache=True, nogil=True)
def put_metric_first(data, offsets, out, out_offsets):
    """Write each part key `data[offsets[i] : offsets[i + 1]]` with `__name__` and the metric before its other labels;
    with an empty metric if it has none. `out` must have 12 extra bytes per key.
    """
    base = np.int64(data.ctypes.data)
    written = 0
    for key in range(len(offsets) - 1):
        at, end = np.int64(offsets[key]), np.int64(offsets[key + 1])
        metric, metric_end = end, end
        while at < end:
            length = _length(data, at)
            value = at + 2 + length
            next_label = value + 2 + _length(data, value)
            if _is_metric(data, base, at + 2, length):
                metric, metric_end = at, next_label
            at = next_label
        if metric == end:
            # A key without a metric sorts before all others.
            out[written], out[written + 1] = NAME_BYTES, 0
            for byte in range(NAME_BYTES):
                out[written + 2 + byte] = (METRIC_NAME >> np.uint64(8 * byte)) & np.uint64(0xFF)
            out[written + 10], out[written + 11] = 0, 0
            written += 12
        else:
            out[written : written + metric_end - metric] = data[metric:metric_end]
            written += metric_end - metric
        start = np.int64(offsets[key])
        out[written : written + metric - start] = data[start:metric]
        written += metric - start
        out[written : written + end - metric_end] = data[metric_end:end]
        written += end - metric_end
        out_offsets[key + 1] = written


@njit(cache=True, nogil=True)
def count_labels(data, offsets, counts):
    """The number of labels of each part key."""
    for key in range(len(offsets) - 1):
        at, end = offsets[key], offsets[key + 1]
        found = 0
        while at < end:
            at += 2 + _length(data, at)
            at += 2 + _length(data, at)
            found += 1
        counts[key] = found


@njit(cache=True, nogil=True)
def label_spans(data, offsets, metrics, names, values):
    """The (begin, end) positions of the texts in part keys with the metric first. `names` and `values` have a row for
    each label except the metric.
    """
    label = 0
    for key in range(len(offsets) - 1):
        at, end = offsets[key], offsets[key + 1]
        value = at + 2 + NAME_BYTES + 2
        at = value + _length(data, value - 2)
        metrics[key, 0], metrics[key, 1] = value, at
        while at < end:
            value = at + 2 + _length(data, at)
            names[label, 0], names[label, 1] = at + 2, value
            at = value + 2 + _length(data, value)
            values[label, 0], values[label, 1] = value + 2, at
            label += 1


@njit(cache=True, nogil=True)
def find_label(data, offsets, name, spans):
    """The (begin, end) positions of the value of a label in each part key; empty if the key does not have it."""
    for key in range(len(offsets) - 1):
        at, end = np.int64(offsets[key]), np.int64(offsets[key + 1])
        spans[key, 0], spans[key, 1] = at, at
        while at < end:
            length = _length(data, at)
            value = at + 2 + length
            next_label = value + 2 + _length(data, value)
            if length == len(name):
                same = True
                for byte in range(length):
                    if data[at + 2 + byte] != name[byte]:
                        same = False
                        break
                if same:
                    spans[key, 0], spans[key, 1] = value + 2, next_label
                    break
            at = next_label


@njit(cache=True, nogil=True)
def repeat_labels(first_label, samples, names, values, to_first, to_names, to_values):
    """Repeat the labels of each series, as codes of names and values, for each of its samples."""
    sample = at = 0
    to_first[0] = 0
    for series in range(len(samples)):
        begin, end = first_label[series], first_label[series + 1]
        for _ in range(samples[series]):
            for label in range(begin, end):
                to_names[at] = names[label]
                to_values[at] = values[label]
                at += 1
            sample += 1
            to_first[sample] = at


@njit(cache=True, nogil=True)
def copy_series(order, first, time, value, to_time, to_value):
    """Copy the samples of series in another order."""
    at = 0
    for series in order:
        begin, end = first[series], first[series + 1]
        to_time[at : at + end - begin] = time[begin:end]
        to_value[at : at + end - begin] = value[begin:end]
        at += end - begin
