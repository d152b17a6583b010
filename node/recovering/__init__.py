"""What `recover plan` and `recover status` find and tell: the manifest, the jobs and Kafka's offsets, looked at without
changing any of them. It takes no shard and writes nothing.
"""
