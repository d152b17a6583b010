"""The status of a node's processes: values that the supervisor publishes, and that HTTP, metrics, the status page and
queries read.

`processes` has a value for each child process, with the last report of a shard, and the protocols by which they are
read; `progress` describes one in a few words. Pure. It must not know who publishes the values, or how.
"""
