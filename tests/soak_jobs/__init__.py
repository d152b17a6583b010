"""`make soak-jobs`: a job on a real stack while its processes are killed at random, over and over.

Two workers import a file, or send the series of one that was imported before (`KIND=send`), beside a node and a gateway
under light load. Workers, node and gateway are killed with SIGKILL and started again. At the end the samples or
messages in the topic are counted, by the headers that name job, part and chunk, and compared with the file and with the
job's counts. Reading back from the node would show no double, since equal samples fall together.
"""
