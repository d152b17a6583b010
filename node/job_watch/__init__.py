"""Bulk jobs in the HTTP front of a node: reads them from the store, for metrics, the status page and clients, and
pauses, resumes and cancels them for operators.

In: rows of the store. Out: figures (`figures`) and HTTP answers (`routes`). The event loop never waits for the store:
one thread calls it (`store_thread`), and calls have a timeout. It runs no parts, and must not import what reads files
or encodes records: workers do that, see `strandline.node.bulk`.
"""
