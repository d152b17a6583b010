"""Compiled kernels of the store, over the columns of runs and segments.

In and out: arrays of times, values and key hashes, raw or in the form that compresses well. Kernels know nothing of
bytes, rows or checksums. As in the other `kernels` packages, functions have no annotations; their docstrings describe
parameters and results.
"""
