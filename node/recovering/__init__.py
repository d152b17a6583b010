"""The reports of `strandline recover plan` and `strandline recover status`.

In: the manifest, the replay jobs and Kafka's offsets. Out: reports as values. It takes no ownership and must not write
anything. `formatting` is also used by the reports of bulk jobs.
"""
