"""Everything that runs on Spark: replay jobs, parts of bulk jobs, and the data source `strandline`.

Inputs are offset ranges of Kafka topics, parts of bulk jobs and data frames; outputs are rows in the store and small
results for the driver. The main types: `replay.SparkRunner` runs replay jobs, one query per wave;
`part_runner.SparkPartRunner` runs parts, one Spark job per part; `datasource.StrandlineDataSource` reads and writes
samples; `session.spark_session` starts a session.

It may use Spark and the packages below (`wire`, `index`, `store`, `recovery`, `jobs`). It must not know HTTP, the
manifest, or settings: the node passes plain values. Only the data source, on the driver, imports `strandline.node` to
read settings. docs/spark.md explains the design.
"""
