"""Formats that can be imported: bytes of whole records in, `SampleBlock`s out.

A parser of a text format is a pure function of bytes and the format's options. It knows no file, no part and no Kafka.
The formats with an index of their own, Prometheus blocks and Parquet, read ranges of files through `pyarrow.fs`
(`byte_ranges.py`), because the index decides which; they know no part and no Kafka either. One record that is wrong is
counted and shown, and never ends the parsing of the others.
"""
