"""The formats of imports. In: the bytes of complete records. Out: `SampleBlock`s.

The parser of a text format (`parse_csv`, `parse_openmetrics`, `parse_json_lines`) is a pure function of bytes and the
format's options. The formats with an index, `prometheus_blocks` and `parquet`, read ranges of files with `pyarrow.fs`
(`byte_ranges.py`), because the index determines the ranges. A bad record is counted and reported, and does not affect
the others.

The package must not know parts, or Kafka. The parsers of text formats must not know files either.
"""
