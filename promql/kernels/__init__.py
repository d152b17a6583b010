"""Compiled loops over samples, windows and groups.

Window kernels share one signature, so that a shard calls them by name:

    kernel(first_sample, time, value, start, step, count, length, parameters, variant, out)

Series i has the samples from `first_sample[i]` up to, not including, `first_sample[i + 1]`, at rising times and without
stale markers. The window of step j is left-open, (start + j * step - length, start + j * step], in milliseconds; `step`
is not negative. `parameters[k, j]` is the k-th parameter at step j. `variant` tells functions apart that share a loop.
`out[i, j]` gets the result, or `NO_SAMPLE`. `first_sample` and `out` may be slices: a block of series.

Operations and their order are those of Prometheus, so that results agree to the last bit. As in the other `kernels`
packages, functions carry no annotations.
"""
