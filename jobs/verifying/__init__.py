"""Verification of jobs: reads back what a job has landed, and compares it with the source.

In: the parts of a job, and a `SampleReader`, or the number of messages in a topic. Out: how much was compared, and what
is missing, different or not readable yet. Imports are compared by value (`imports.py`), sends by count (`sends.py`).
The package must not know HTTP, or where samples are stored.
"""
