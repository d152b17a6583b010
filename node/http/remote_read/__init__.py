"""Remote read, Prometheus' protocol for samples: `POST /api/v1/read`.

In comes a snappy block with a `ReadRequest` (`requests`): selectors with a time range each, and the forms of answer
that the client takes. Each selector is asked of the node (`asking`), and the columns that come back are written as
bytes, part by part, while the client takes them: as plain samples (`sampled`) or as frames of XOR chunks (`streamed`).
It must not know where samples come from, nor what PromQL does with them.
"""
