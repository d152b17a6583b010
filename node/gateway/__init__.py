"""The gateway: remote writes come in over HTTP and go into Kafka, each series into its partition.

In come Prometheus remote-write 1.0 requests; out go records of the same form, one or a few for each partition, and an
answer. A request is answered with success only once Kafka has all of it for good. What waits for Kafka is bounded in
bytes. It knows the wire, Kafka's client and HTTP; it knows nothing of shards, the index or the store.

The way of a request: `headers` (is it one that we understand), `in_flight` (is there room for it), `packing` (unpack,
split, pack; in a thread), `producer` (to Kafka, and back when it is there), `gateway` (all of it together).
"""
