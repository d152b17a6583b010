"""Landing: how the samples of a part get into Kafka, each exactly once.

In come the `SampleBlock`s of a part's chunks, out go remote-write records in the dataset's topic. A chunk lands in one
transaction, which also commits how many chunks have landed. The next worker that takes the part goes on behind them.

`packing.py` makes records of a block. `part_log.py` decides what is sent when, over the protocol in `transactions.py`,
which Kafka (`kafka_part_log.py`, `kafka_group.py`) and a twin in memory (`memory_part_log.py`) fulfil. It knows neither
where samples come from nor who leases a part.
"""
