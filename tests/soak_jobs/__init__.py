"""`make soak-jobs`: an import on a real stack while its processes are killed at random, over and over.

A file is imported by two workers, beside a node and a gateway under light load. Workers, node and gateway are killed
with SIGKILL and started again. At the end the samples in the topic are counted, by the headers that name job, part and
chunk, and compared with the file and with the job's report. Reading back from the node would show no double, since
equal samples fall together.
"""
