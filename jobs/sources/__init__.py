"""Sources: the files that a job reads, on any file system that pyarrow supports, and the records in them.

In: URIs (`uris.py`) and byte ranges. Out: files with their identities (`files.py`), uncompressed bytes
(`compressed.py`), and complete records with their offsets (`text_records.py`). `s3.py` makes the clients of S3, and
`source_errors.py` says what the errors of file systems mean; exports use both for their targets. A record belongs to
the range that contains its first byte, so that ranges can be read independently and in any order. The package must not
know formats, except where a record ends.
"""
