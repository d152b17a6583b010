"""The format of records: encodes, decodes and splits Prometheus remote-write 1.0 requests as they are stored in Kafka.

Inputs are requests in snappy's block format; outputs are columns of series and samples (`decode.Decoder` returns
`columns.Columns`), and the reverse (`encoding.encode_request`). `splitting.split_request` divides a request by
partition without decoding it. `kernels` does the work over bytes.

It must know only the protocol: no Kafka client, index, store or settings.
"""
