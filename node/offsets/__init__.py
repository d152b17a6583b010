"""Questions about a dataset's offsets and hours, and the one answer that changes something: a rewind.

In come manifests from the store and facts about the topic from the brokers; out go reports, as values, for commands and
for whoever shows them otherwise. The decisions are `strandline.recovery`'s. Nothing here runs a shard.
"""
