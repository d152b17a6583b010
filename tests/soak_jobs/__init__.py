"""`make soak-jobs`: runs a job on a real stack while its processes are repeatedly killed at random.

Two workers import a file, or send the series of a file that was imported before (`KIND=send`), while a node and a
gateway run with light load. Workers, node and gateway are killed with SIGKILL and restarted. At the end, the samples or
messages in the topic are counted by the headers for job, part and chunk, and compared with the file and with the job's
counts. The node's answers would not show duplicates, because equal samples are merged.
"""
