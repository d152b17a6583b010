"""Benchmarks: figures of the real parts, with the machine that they were taken on.

In goes how much; out come reports (frozen dataclasses), which the command shows as tables or JSON, and plots. A
benchmark measures what users would have: the code that runs in a node, on data of the shape that nodes see.
"""
