"""The status page of a node, and its JSON API.

In: the status of the processes, answers of the shards, and the readiness of hours. Out: static files, which don't
change while the node runs, and small JSON documents. Every list has a limit, so that the page stays fast with millions
of series. It must not know how the status is collected.
"""
