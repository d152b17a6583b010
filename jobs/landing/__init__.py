"""Landing: writes the samples of a part to Kafka, each exactly once.

In: the `SampleBlock`s of a part's chunks. Out: remote-write records in the dataset's topic. A chunk lands in one
transaction, which also commits the number of chunks landed. The next worker that takes the part continues after them.

`packing.py` turns a block into records. `PartLog` (`part_log.py`) decides what is sent when, over the protocol
`PartTransactions` (`transactions.py`). The protocol is implemented for Kafka (`kafka_part_log.py`, `kafka_group.py`)
and in memory (`memory_part_log.py`). The package must not know where samples come from, or how parts are leased.
"""
