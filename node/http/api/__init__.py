"""Prometheus' HTTP API over a node's queries: series, labels, PromQL, and the other paths that Grafana calls.

A handler reads the parameters, calls `NodeQueries`, and writes the columns of the answer as JSON (`json_pieces`,
`sending`). PromQL is planned here: shards evaluate the fragments of a query, and the front the rest. It must not know
how shards are reached.
"""
