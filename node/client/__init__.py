"""A client of a node's HTTP API, for the commands that query a node and for bulk jobs.

In: an address, a token, and requests (selectors as text, times in milliseconds). Out: values that are checked against
the format of Prometheus' API, and errors with a remedy. It depends only on the HTTP API, so that it works with any
server that implements it. Its imports must be cheap, because commands use it interactively.
"""
