"""What a node and a gateway tell Prometheus about themselves.

`catalogue` has every metric: its name, its labels, what it means, and what to do about it. Families are made of values
(the status of the processes, what the HTTP front counted, how far the dataset is stored) by functions, and `exposition`
writes them down. A scrape looks at what is known already: it asks neither a shard, nor the store, nor Kafka anything.
"""
