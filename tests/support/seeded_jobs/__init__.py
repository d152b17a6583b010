"""A seeded simulation of bulk jobs, with Kafka, store, file system and clocks in memory.

A history is generated from a seed: a list of steps, each with its own seed for random numbers. Processes run the real
code of worker, board, part log and import. Each has a thread, of which one runs at a time, and the scheduler may switch
at any call to the store, the brokers or the file system. So a process can crash, stall or be overtaken inside any of
them. The invariants are checked against a model in plain Python (`model.py`). A history is deterministic.
"""
