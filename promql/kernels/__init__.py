"""Kernels: loops over samples, windows, rows and groups, compiled by numba.

In: contiguous arrays and scalars; out: arrays that the caller has allocated. They must not know labels, plans or
queries.

Window kernels share one signature, so that a shard can look them up by name:

    kernel(first_sample, time, value, start, step, count, length, parameters, variant, out)

Series i has the samples from `first_sample[i]` up to, not including, `first_sample[i + 1]`, at ascending times and
without staleness markers. The window of step j is left-open, (start + j * step - length, start + j * step], in
milliseconds; `step` is not negative. `parameters[k, j]` is the k-th parameter at step j. `variant` selects one of the
functions that share a loop. `out[i, j]` gets the result, or `NO_SAMPLE`. `first_sample` and `out` may be slices, for a
block of series.

Operations and their order are those of Prometheus, so that results agree to the last bit. As in the other `kernels`
packages, functions have no type annotations.
"""
