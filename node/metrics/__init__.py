"""The metrics of nodes and gateways, and the readiness of hours over HTTP.

`catalogue` lists all metrics with name, labels, meaning and action. The `*_families` modules turn values (the status of
the processes, the counters of the HTTP front, how far the dataset is stored) into metric families, and `exposition`
encodes them. A scrape uses values in memory only: it must not send requests to shards, the store or Kafka.
`readiness_watch` reads the manifests in the background.
"""
