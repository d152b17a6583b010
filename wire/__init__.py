"""The wire: remote-write bodies as they travel through Kafka, bytes in and bytes out.

In come the bytes of Prometheus remote-write 1.0 requests in snappy's block format; out go plain values, and the other
way round. It knows the protocol and nothing else: no Kafka, no index, no store, no settings.
"""
