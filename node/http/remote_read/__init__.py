"""Remote read, Prometheus' protocol for samples: `POST /api/v1/read`.

In comes a snappy block with a `ReadRequest` (`requests`): selectors with a time range each, and the response types that
the client accepts. Each selector is a query to the node (`read_execution`). The columns of the answers are written as
bytes, part by part, while the client receives them: as samples (`sampled`) or as frames of XOR chunks (`streamed`). The
package must not know where samples come from, nor PromQL.
"""
