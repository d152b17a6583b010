"""A seeded simulation of bulk jobs over twins of Kafka, store, file system and clocks.

A seed gives a history: a list of steps, each with random numbers of its own. Workers run the real code of worker,
board, part log and import, each in a thread of its own, of which one runs at a time: which one goes on may be decided
at any call to store, brokers or file system. So a process can crash, stall or be overtaken inside any of them. What has
to hold is checked beside a model in plain Python (`model.py`). The same history always runs the same way.
"""
