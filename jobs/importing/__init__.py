"""Imports: the spec of the job, its division into parts, and the reading of a part.

In: the URIs of files, their format and a mapping. Out: parts (`planning.py`), and for each part its chunks of samples
(`part_sources.py`, `chunks.py`), which `run_part` (`part_import.py`) lands in Kafka one after the other. `ImportKind`
connects this to the worker. Only `opener.py` knows Kafka, and no module knows where a part runs.
"""
