"""The gateway: receives remote-write requests over HTTP, and writes them to Kafka, each series to its partition.

Input: Prometheus remote-write 1.0 requests. Output: records in the same format, one or a few for each partition, and an
HTTP response. A request succeeds only after Kafka has acknowledged all of its records. The bytes in flight are limited.

A request passes through `headers` (is the format supported), `in_flight` (is there room for it), `packing`
(decompress, split by partition, compress; in a thread) and `producer` (send to Kafka). `gateway` connects these, and
`rejections` has the responses to requests that fail. `topic` keeps the number of partitions up to date, `broker_clock`
compares the clocks of the gateway and the brokers, and `serving` is the life of the process.

The gateway must not know shards' state, the index or the store.
"""
