"""Prometheus' HTTP API over a node's queries: series, labels, plain selectors, and what Grafana asks beside them.

A handler reads parameters, asks `NodeQueries` in a worker thread, and writes the answer's columns as JSON. Whatever is
more than a selector is refused: a Prometheus in front, over remote read, has all of PromQL.
"""
