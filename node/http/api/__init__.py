"""Prometheus' HTTP API over a node's queries: series, labels, PromQL, and what Grafana asks beside them.

A handler reads parameters, asks `NodeQueries`, and writes the answer's columns as JSON. PromQL is planned here: shards
evaluate the fragments of a query, and the rest is evaluated in the front.
"""
