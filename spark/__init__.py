"""The PySpark jobs.

In come offset ranges of Kafka topics and parts of bulk jobs, out go compact results for the node. It knows Spark and
the packages below it (`wire`, `index`, `store`, `recovery`, `jobs`); it knows no settings, no HTTP and no manifest: the
node hands it plain values.
"""
