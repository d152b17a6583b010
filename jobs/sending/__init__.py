"""Sends: one message to a Kafka topic for each series that a selector matches at an evaluation time.

In: a selector, a time and a template (`template.py`). Out: the messages, each exactly once, and a list of the series
that the control sample leaves out. A part is a range of key hashes, which `send_part` (`part_send.py`) sends in chunks.
`zones.py` divides a send by local time into one job per UTC offset. `SendKind` connects this to the worker.

Series come from a `SeriesSource` (`series.py`). The package must not know HTTP, or where a part runs.
"""
