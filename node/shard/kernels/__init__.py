"""Compiled code of the ingest path, over columns. Functions here carry no annotations: numba infers machine types."""
