"""A small client of a node's HTTP API, for the commands that people without curl use.

In: an address, a token, and questions (selectors as text, times in milliseconds). Out: values that are checked to be
what Prometheus' API promises, and errors that say what to do. It knows the API only by its HTTP form, so that it can
ask any server that speaks it; and it imports nothing that takes long, since a person waits in front of it.
"""
