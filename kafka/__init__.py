"""Code that all users of Kafka share: creating clients of librdkafka, and mapping their errors to ours.

`clients` creates clients from options, and logs what librdkafka reports outside of requests. `error_mapping` converts a
`KafkaError` into an error of `errors`, which says whether a retry may succeed. This package knows neither shards nor
jobs: the caller passes the remedies for missing ACLs, since it knows which rights its client needs.
"""
