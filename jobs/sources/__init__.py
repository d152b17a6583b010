"""Sources: files that a job reads, on any file system that pyarrow knows, and the pieces of them that parts read.

In come URIs and byte ranges, out come whole records with their places in the file. A record belongs to the part that
holds its first byte, so that parts can be read alone and in any order. It knows no format beyond where a record ends.
"""
