"""Compiled kernels of the verification. Kernels have no annotations; the docstrings describe the parameters."""
