"""The demonstration: every part of the stack at work on the same data, one after the other.

In go the addresses of real servers and the Spark to use; out go short reports of what each part saw. Each part checks
what the one before it did, so a report is also a proof; a part that sees something else raises `PartFailed`.
"""
