"""Compiled code of the verification. As in all kernels there are no annotations; docstrings say what is taken."""
